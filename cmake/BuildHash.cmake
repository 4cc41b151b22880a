# One number for all sources that programs and modules are made of, so that a module of another build is refused.
#
# Every build computes it anew (a script of a quarter of a second); only if it changed, one small object is compiled and
# what holds it is linked again. bertrand_module_of_this_build(<target>) puts it into a module.
if(CMAKE_SCRIPT_MODE_FILE)
  set(list "")
  foreach(folder io tensor autograd nn optim distributed training bert serving apps)
    file(GLOB_RECURSE sources RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/${folder}/*.h ${SOURCE_DIR}/${folder}/*.cpp ${SOURCE_DIR}/${folder}/*.cu)
    list(SORT sources)
    foreach(source IN LISTS sources)
      file(SHA256 ${SOURCE_DIR}/${source} hash)
      string(APPEND list "${source} ${hash}\n")
    endforeach()
  endforeach()
  string(SHA256 hash "${list}")
  string(SUBSTRING ${hash} 0 16 hash)
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
// Written by cmake/BuildHash.cmake.
extern "C" __attribute__((visibility("default"))) const char* bertrand_build_hash() { return "@hash@"; }
]] @ONLY)
  return()
endif()

set(build_hash ${PROJECT_BINARY_DIR}/generated/build_hash.cpp)
add_custom_target(bertrand_compute_build_hash BYPRODUCTS ${build_hash}
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${build_hash} -P ${CMAKE_CURRENT_LIST_FILE})
add_library(bertrand_build_hash OBJECT ${build_hash})
add_dependencies(bertrand_build_hash bertrand_compute_build_hash)

function(bertrand_module_of_this_build target)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:bertrand_build_hash>)
endfunction()
