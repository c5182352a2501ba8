# SPDX-License-Identifier: Apache-2.0
# The Debian packages, one for each component of the installation: `make package`, and the test consumer_debian.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME conv-fft)
set(CPACK_PACKAGE_VENDOR conv_fft)
set(CPACK_PACKAGE_CONTACT "conv_fft maintainers <maintainers@conv-fft.invalid>")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library development tools)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

# dpkg-shlibdeps finds the dependencies of each file. The library is not installed, so it is named below.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libconv-fft${abi})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "libopenblas0-openmp | libopenblas0") # opened at run time
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "The library: the forward pass and both gradients, in one, two or three
dimensions, on NVIDIA GPUs and on CPUs. CUDA is opened at run time, if it is
installed.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libconv-fft-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "The headers conv_fft.h and fbfft.h, and files for pkg-config and CMake.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME conv-fft-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} (>= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The program conv-fft, which shows how a layer is computed and tunes networks;
networks and tuning records.")

# Debian wants the licence under the name of each package.
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/package_licence.cmake")
include(CPack)
