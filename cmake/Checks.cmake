# Checks of the source text and of the object files, as tests with the label `check`.
find_package(Python COMPONENTS Interpreter REQUIRED)
function(fl_check name)
  add_test(NAME check.${name} COMMAND ${Python_EXECUTABLE} ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(check.${name} PROPERTIES LABELS check SKIP_RETURN_CODE 77 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endfunction()
fl_check(layers tools/check_layers.py)
fl_check(layers_finds_planted_violations tests/check/test_check_layers.py)
fl_check(format tools/check_format.py)
if(NOT FLAMBEAU_SANITIZE)  # sanitizers add constructors of their own
  fl_check(static_constructors tools/check_static_constructors.py ${CMAKE_BINARY_DIR})
endif()
