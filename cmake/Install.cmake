# SPDX-License-Identifier: Apache-2.0
# What is installed, in three components: library, development (headers, find_package(ConvFFT), pkg-config), and tools,
# which tools/CMakeLists.txt installs.
include(CMakePackageConfigHelpers)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(TARGETS conv_fft EXPORT ConvFFTTargets LIBRARY COMPONENT library NAMELINK_COMPONENT development
        FILE_SET HEADERS)
install(TARGETS compile-kernel DESTINATION "${CMAKE_INSTALL_LIBDIR}/conv_fft" COMPONENT library)

set(package_directory "${CMAKE_INSTALL_LIBDIR}/cmake/ConvFFT")
install(EXPORT ConvFFTTargets NAMESPACE ConvFFT:: DESTINATION "${package_directory}")
configure_package_config_file(cmake/ConvFFTConfig.cmake.in "${PROJECT_BINARY_DIR}/ConvFFTConfig.cmake"
                              INSTALL_DESTINATION "${package_directory}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ConvFFTConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ConvFFTConfig.cmake" "${PROJECT_BINARY_DIR}/ConvFFTConfigVersion.cmake"
        DESTINATION "${package_directory}")

# The prefix is relative to the .pc file, so that an installed tree can be moved.
file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
set(pc_private_libs -lm -lz -ljansson ${CMAKE_THREAD_LIBS_INIT})
foreach(library IN LISTS CMAKE_DL_LIBS)
  list(APPEND pc_private_libs -l${library})
endforeach()
if(OpenMP_C_FOUND)
  list(APPEND pc_private_libs ${OpenMP_C_FLAGS})
endif()
list(JOIN pc_private_libs " " pc_private_libs)
configure_file(cmake/conv_fft.pc.in "${PROJECT_BINARY_DIR}/conv_fft.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/conv_fft.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
