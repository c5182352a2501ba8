# SPDX-License-Identifier: Apache-2.0
# The compiler settings of all targets of this project.
include(CheckCCompilerFlag)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

if(CONV_FFT_WARNINGS AND CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Werror)
endif()

if(CONV_FFT_SANITIZE)
  set(sanitize_options -fsanitize=${CONV_FFT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_options(${sanitize_options})
  add_link_options(${sanitize_options})
endif()

# OFF: sources define the feature macros for POSIX and GNU functions (clock_gettime, dlopen, getopt_long).
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  add_compile_definitions(_GNU_SOURCE)
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
if(CONV_FFT_OPENMP)
  find_package(OpenMP COMPONENTS C)
endif()
find_package(ZLIB 1.2.9 REQUIRED) # crc32_z()
find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET GLOBAL jansson>=2.8)
