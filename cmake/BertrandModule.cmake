# bertrand_module(<folder> SOURCES <files>... [DEPENDS <targets>...])
#
# One static library per folder: bertrand_module(tensor ...) makes bertrand::tensor, and bertrand_module(bert/text ...)
# makes bertrand::bert_text. Its headers are included as "<folder>/file.h" through a link to the folder in the build
# tree, so that only what links the library, itself or through another one, sees them. Folders of ours that a file
# includes without the library being named in DEPENDS are an error of configuration: dependencies run one way, and the
# CMake file of a folder lists them all.
function(bertrand_module folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  set(include_root ${PROJECT_BINARY_DIR}/include/${name})
  get_filename_component(parent ${include_root}/${folder} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${include_root}/${folder} SYMBOLIC)

  add_library(bertrand_${name} STATIC ${ARG_SOURCES})
  add_library(bertrand::${name} ALIAS bertrand_${name})
  target_include_directories(bertrand_${name} PUBLIC ${include_root})
  target_link_libraries(bertrand_${name} PUBLIC ${ARG_DEPENDS} PRIVATE bertrand_warnings)

  set_property(GLOBAL APPEND PROPERTY bertrand_folders ${folder})
  bertrand_check_includes(${folder} "${ARG_DEPENDS}")
endfunction()

# Every folder that the sources of `folder` include is `folder` itself or one whose library is in `depends`.
function(bertrand_check_includes folder depends)
  get_property(folders GLOBAL PROPERTY bertrand_folders)
  file(GLOB_RECURSE files *.h *.cpp)
  foreach(file IN LISTS files)
    file(STRINGS ${file} includes REGEX "^#include \"")
    foreach(include IN LISTS includes)
      foreach(other IN LISTS folders)
        string(REPLACE "/" "_" library ${other})
        if(include MATCHES "\"${other}/[a-z_0-9/]*\\.h\"" AND NOT other STREQUAL folder AND NOT "bertrand::${library}" IN_LIST depends)
          message(FATAL_ERROR "${file}: ${include}: expected a folder whose library is in DEPENDS of ${folder}, got ${other}")
        endif()
      endforeach()
    endforeach()
  endforeach()
endfunction()

add_library(bertrand_warnings INTERFACE)
target_compile_options(bertrand_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers -Werror=switch)
