# bertrand_module(<folder> SOURCES <files>... [DEPENDS <targets>...])
#
# One static library per folder: bertrand_module(tensor ...) makes bertrand::tensor, and bertrand_module(bert/text ...)
# makes bertrand::bert_text. Its headers are included as "<folder>/file.h" through a link to the folder in the build
# tree, so that only what links the library, itself or through another one, sees them. A folder of ours that a file
# includes without its library being named in DEPENDS is an error of configuration, and so is a library of ours in
# DEPENDS that no file includes: dependencies run one way, and the CMake file of a folder lists them, all and no other.
#
# An installed library is bertrand::tensor too, with its headers under include/bertrand; those of the programs are not installed.
function(bertrand_module folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  set(include_root ${PROJECT_BINARY_DIR}/include/${name})
  get_filename_component(parent ${include_root}/${folder} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${include_root}/${folder} SYMBOLIC)

  add_library(bertrand_${name} STATIC ${ARG_SOURCES})
  add_library(bertrand::${name} ALIAS bertrand_${name})
  target_compile_features(bertrand_${name} PUBLIC cxx_std_20)
  target_include_directories(bertrand_${name} PUBLIC $<BUILD_INTERFACE:${include_root}> $<INSTALL_INTERFACE:include/bertrand>)
  target_link_libraries(bertrand_${name} PUBLIC ${ARG_DEPENDS} PRIVATE $<BUILD_INTERFACE:bertrand_warnings>)
  if(NOT folder MATCHES "^(apps/|serving$)")
    bertrand_install_library(${name})
    foreach(source IN LISTS ARG_SOURCES)  # headers lie beside them; training has folders
      cmake_path(ABSOLUTE_PATH source)
      cmake_path(GET source PARENT_PATH beside)
      list(APPEND parts ${beside})
    endforeach()
    list(REMOVE_DUPLICATES parts)
    foreach(part IN LISTS parts)
      file(GLOB headers CONFIGURE_DEPENDS ${part}/*.h)
      cmake_path(RELATIVE_PATH part)
      install(FILES ${headers} DESTINATION include/bertrand/${folder}/${part} COMPONENT dev)
    endforeach()
  endif()

  set_property(GLOBAL APPEND PROPERTY bertrand_folders ${folder})
  bertrand_check_includes(${folder} "${ARG_DEPENDS}")
endfunction()

# bertrand_install_library(<name>): bertrand_<name> becomes bertrand::<name> of the installed package, and a component of it.
function(bertrand_install_library name)
  set_target_properties(bertrand_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY bertrand_libraries ${name})
  install(TARGETS bertrand_${name} EXPORT bertrand ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
endfunction()

# bertrand_install_beside(<component> <targets>...): programs and what they open at run time lie in one folder, so that they
# find each other wherever the installed tree is moved to.
function(bertrand_install_beside component)
  install(TARGETS ${ARGN} RUNTIME DESTINATION ${BERTRAND_INSTALL_DIR} COMPONENT ${component} LIBRARY DESTINATION ${BERTRAND_INSTALL_DIR} COMPONENT ${component})
endfunction()

# The folders that the sources of `folder` include are `folder` itself and those whose libraries are in `depends`: no
# other, and each of these.
function(bertrand_check_includes folder depends)
  get_property(folders GLOBAL PROPERTY bertrand_folders)
  set(used "")
  file(GLOB_RECURSE files *.h *.cpp)
  foreach(file IN LISTS files)
    file(STRINGS ${file} includes REGEX "^#include \"")
    foreach(include IN LISTS includes)
      foreach(other IN LISTS folders)
        if(NOT include MATCHES "\"${other}/[a-z_0-9/]*\\.h\"" OR other STREQUAL folder)
          continue()
        endif()
        string(REPLACE "/" "_" library ${other})
        list(APPEND used bertrand::${library})
        if(NOT "bertrand::${library}" IN_LIST depends)
          message(FATAL_ERROR "${file}: ${include}: expected a folder whose library is in DEPENDS of ${folder}, got ${other}")
        endif()
      endforeach()
    endforeach()
  endforeach()
  foreach(library IN LISTS depends)
    if(library MATCHES "^bertrand::" AND NOT library IN_LIST used)
      message(FATAL_ERROR "${CMAKE_CURRENT_LIST_FILE}: DEPENDS: expected libraries that a file of ${folder} includes, got ${library}; hint: leave it out")
    endif()
  endforeach()
endfunction()

add_library(bertrand_warnings INTERFACE)
target_compile_options(bertrand_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers -Werror=switch)
