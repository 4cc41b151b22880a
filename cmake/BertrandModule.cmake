# bertrand_module(<name> SOURCES <files>... [DEPENDS <targets>...])
#
# One static library per top-level folder. Its headers are included as "<name>/file.h" through a link to the folder in
# the build tree, and only by targets that name the library in DEPENDS: a wrong include does not compile.
function(bertrand_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  set(include_root ${PROJECT_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${include_root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${include_root}/${name} SYMBOLIC)

  add_library(bertrand_${name} STATIC ${ARG_SOURCES})
  add_library(bertrand::${name} ALIAS bertrand_${name})
  target_include_directories(bertrand_${name} PUBLIC ${include_root})
  target_link_libraries(bertrand_${name} PUBLIC ${ARG_DEPENDS} PRIVATE bertrand_warnings)
endfunction()

add_library(bertrand_warnings INTERFACE)
target_compile_options(bertrand_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers)
