# Every build option, in one place.
option(FLAMBEAU_TESTS "Build the C++ tests" ON)
option(FLAMBEAU_EXAMPLES "Build the examples" ON)
option(FLAMBEAU_BENCHMARKS "Build the benchmarks" ON)
option(FLAMBEAU_PYTHON "Build the Python module" ON)
option(FLAMBEAU_CUDA "Build for CUDA devices where CUDA's headers are found" ON)
option(FLAMBEAU_LLVM_STATIC "Link LLVM statically" OFF)
set(FLAMBEAU_ONEDNN_ROOT "" CACHE PATH "Prefix of oneDNN (include/, lib/); empty: search, and build without it if there is none")
set(FLAMBEAU_PYTHON_EXECUTABLE "" CACHE FILEPATH "The Python that the module is for; empty: that of .venv, or the first that is found")
set(FLAMBEAU_LIBRARY "" CACHE FILEPATH "libflambeau.so of another build folder: only the Python module is built, over this library")
set(FLAMBEAU_SANITIZE "" CACHE STRING "Sanitizers for the whole build: address;undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
# No contraction: a product and a sum are rounded twice here, as in generated code.
# g++ 12 sees impossible sizes in boost's small_vector; the four flow-based warnings below are its false alarms.
add_compile_options(-Wall -Wextra -Werror -ffp-contract=off -fno-semantic-interposition)
add_compile_options(-Wno-stringop-overread -Wno-stringop-overflow -Wno-array-bounds -Wno-maybe-uninitialized
                    -Wno-missing-field-initializers)
if(FLAMBEAU_SANITIZE)
  string(REPLACE ";" "," FLAMBEAU_SANITIZE_FLAG "${FLAMBEAU_SANITIZE}")
  # -O1: compiles in two thirds of -O2's time, and stack traces keep more of their frames.
  add_compile_options(-fsanitize=${FLAMBEAU_SANITIZE_FLAG} -O1 -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${FLAMBEAU_SANITIZE_FLAG})
  if("undefined" IN_LIST FLAMBEAU_SANITIZE)
    # With these g++ 12 takes std::string_view::find() in a constant expression, as schemas are parsed, for one that
    # is not constant. A null pointer that is read or written is the address sanitizer's find.
    add_compile_options(-fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute)
  endif()
endif()
find_program(FLAMBEAU_MOLD mold)
if(FLAMBEAU_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(FLAMBEAU_CCACHE ccache)
  if(FLAMBEAU_CCACHE)
    # Precompiled headers are cached, too.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${FLAMBEAU_CCACHE})
  endif()
endif()
