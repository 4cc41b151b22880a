# Three Debian packages: bertrand, bertrand-cuda and libbertrand-dev. Configure with -DCMAKE_INSTALL_PREFIX=/usr, build, cpack.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME bertrand)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(BERTRAND_MAINTAINER "The bertrand authors <authors@bertrand.invalid>" CACHE STRING "Whoever builds the Debian packages")
set(CPACK_PACKAGE_CONTACT ${BERTRAND_MAINTAINER})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_COMPONENTS_ALL bertrand dev)
if(TARGET bertrand_cuda)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()

set(CPACK_DEBIAN_BERTRAND_PACKAGE_NAME bertrand)
set(CPACK_DEBIAN_BERTRAND_PACKAGE_RECOMMENDS openmpi-bin)
set(CPACK_DEBIAN_BERTRAND_DESCRIPTION "trains, fine-tunes and serves BERT models
Pre-training data, pre-training, fine-tuning, prediction, export to other
frameworks and an HTTP server, as native programs without Python. Models are
those of Hugging Face transformers and of TensorFlow.")

set(CPACK_DEBIAN_CUDA_PACKAGE_NAME bertrand-cuda)
# cuBLAS and NCCL come from NVIDIA's packages, which dpkg-shlibdeps knows only where they are installed as such.
set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "bertrand (= ${PROJECT_VERSION}), libc6, libstdc++6, libfmt9")
string(REGEX REPLACE "^([0-9]+)\\.([0-9]+).*" "\\1-\\2" cuda_release "${CMAKE_CUDA_COMPILER_VERSION}")
set(CPACK_DEBIAN_CUDA_PACKAGE_RECOMMENDS "libcublas-${cuda_release}, libnccl2")
set(CPACK_DEBIAN_CUDA_DESCRIPTION "trains BERT models on NVIDIA GPUs
The modules that the programs of the package bertrand load for --device cuda:
kernels, cuBLAS, and NCCL if there are several GPUs.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libbertrand-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)  # static libraries
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
  "bertrand (= ${PROJECT_VERSION}), libfmt-dev, nlohmann-json3-dev, zlib1g-dev, libutf8proc-dev, pkg-config")
set(CPACK_DEBIAN_DEV_DESCRIPTION "tensors, automatic differentiation and BERT for C++
Static libraries, headers, and what CMake and pkg-config need to find them.")

# What every package says of itself.
configure_file(changelog.in ${CMAKE_CURRENT_BINARY_DIR}/changelog @ONLY)
set(changelog ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz)
add_custom_command(OUTPUT ${changelog} DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/changelog COMMAND gzip -9nk ${CMAKE_CURRENT_BINARY_DIR}/changelog)
add_custom_target(debian_changelog ALL DEPENDS ${changelog})
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(documents share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  install(FILES ${changelog} copyright DESTINATION ${documents} COMPONENT ${component})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/lintian/${component})
    install(FILES lintian/${component} DESTINATION share/lintian/overrides RENAME ${CPACK_DEBIAN_${upper}_PACKAGE_NAME} COMPONENT ${component})
  endif()
endforeach()
include(CPack)
