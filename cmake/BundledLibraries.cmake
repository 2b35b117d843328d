# fl_bundle_libraries(TARGET library DESTINATION folder COMPONENT name NAMES ...)
# Installs the shared libraries of these names that the target needs, each once, as the file that the loader asks for.
# Wheels hold no links, so what links stand for is copied.
function(fl_bundle_libraries)
  cmake_parse_arguments(ARG "" "TARGET;DESTINATION;COMPONENT" "NAMES" ${ARGN})
  list(JOIN ARG_NAMES "|" names)
  install(CODE "
    file(GET_RUNTIME_DEPENDENCIES LIBRARIES \"$<TARGET_FILE:${ARG_TARGET}>\" RESOLVED_DEPENDENCIES_VAR found
         PRE_INCLUDE_REGEXES \"^lib(${names})[.]so\" PRE_EXCLUDE_REGEXES \".*\")
    foreach(library IN LISTS found)
      get_filename_component(name \"\${library}\" NAME)
      file(REAL_PATH \"\${library}\" file)
      set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${ARG_DESTINATION}\")
      message(STATUS \"Bundling: \${folder}/\${name}\")
      file(MAKE_DIRECTORY \"\${folder}\")
      file(COPY_FILE \"\${file}\" \"\${folder}/\${name}\")
    endforeach()" COMPONENT ${ARG_COMPONENT})
endfunction()
