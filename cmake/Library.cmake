# SPDX-License-Identifier: Apache-2.0
# The library: objects compiled once, for two libraries. conv_fft is installed. conv_fft_static gives tests access to
# internal functions, and lets them replace malloc.

set(src "${PROJECT_SOURCE_DIR}/src")
set(cpu_kernels "${src}/cpu/fft/instantiate.c")
file(GLOB_RECURSE cpu_sources CONFIGURE_DEPENDS "${src}/cpu/*.c")
file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${src}/*.c")
set(compiler_sources "${src}/cuda/compiler/main.c")
list(REMOVE_ITEM sources ${cpu_sources} ${compiler_sources})
list(REMOVE_ITEM cpu_sources "${cpu_kernels}")
include(cmake/Kernels.cmake)
list(APPEND sources "${PROJECT_BINARY_DIR}/kernel_text.c" "${PROJECT_BINARY_DIR}/stage_text.c"
     "${PROJECT_BINARY_DIR}/fused_text.c" "${PROJECT_BINARY_DIR}/long1d_text.c" "${PROJECT_BINARY_DIR}/toeplitz_text.c"
     "${PROJECT_BINARY_DIR}/slices_text.c" "${PROJECT_BINARY_DIR}/dft_text.c"
     "${PROJECT_BINARY_DIR}/implicit_gemm_text.c"
     "${PROJECT_BINARY_DIR}/spatial_text.c"     "${PROJECT_BINARY_DIR}/product_text.c"
     "${PROJECT_BINARY_DIR}/half_text.c" "${PROJECT_BINARY_DIR}/split_text.c" "${PROJECT_BINARY_DIR}/matrix_text.c")

check_c_compiler_flag(-ffp-contract=fast CONV_FFT_HAS_FP_CONTRACT)
check_c_compiler_flag(-fopenmp-simd CONV_FFT_HAS_OPENMP_SIMD)
set(cpu_options $<$<BOOL:${CONV_FFT_HAS_FP_CONTRACT}>:-ffp-contract=fast>
                $<$<BOOL:${CONV_FFT_HAS_OPENMP_SIMD}>:-fopenmp-simd>)

set(object_targets "")

# An object library with the settings of the library's own code.
function(conv_fft_add_objects target)
  add_library(${target} OBJECT ${ARGN})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${src}")
  target_link_libraries(${target} PRIVATE Threads::Threads ZLIB::ZLIB PkgConfig::JANSSON
                        $<TARGET_NAME_IF_EXISTS:OpenMP::OpenMP_C>)
  set(object_targets ${object_targets} ${target} PARENT_SCOPE)
endfunction()

conv_fft_add_objects(conv_fft_objects ${sources})
conv_fft_add_objects(conv_fft_cpu ${cpu_sources})
target_compile_options(conv_fft_cpu PRIVATE ${cpu_options})

# One text of the transform, compiled once for the baseline and once per instruction set.
conv_fft_add_objects(conv_fft_kernels_baseline "${cpu_kernels}")
target_compile_options(conv_fft_kernels_baseline PRIVATE ${cpu_options})

function(conv_fft_add_kernels isa)
  string(REPLACE ";" " " all_flags "${ARGN}")
  check_c_compiler_flag("${all_flags}" CONV_FFT_COMPILES_${isa})
  if(CONV_FFT_COMPILES_${isa})
    string(TOLOWER conv_fft_kernels_${isa} target)
    conv_fft_add_objects(${target} "${cpu_kernels}")
    target_compile_options(${target} PRIVATE ${cpu_options} ${ARGN})
    target_compile_definitions(${target} PRIVATE CF_ISA_${isa}=1)
    target_compile_definitions(conv_fft_cpu PRIVATE CF_HAVE_${isa}=1)
    set(object_targets ${object_targets} PARENT_SCOPE)
  endif()
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  conv_fft_add_kernels(AVX2 -mavx2 -mfma -mf16c)
  conv_fft_add_kernels(AVX512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mprefer-vector-width=512)
endif()

list(TRANSFORM object_targets REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)

file(GLOB public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*.h")

function(conv_fft_finish_library target)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${public_headers})
  target_link_libraries(${target} PRIVATE Threads::Threads ZLIB::ZLIB PkgConfig::JANSSON ${CMAKE_DL_LIBS} m
                        $<TARGET_NAME_IF_EXISTS:OpenMP::OpenMP_C>)
endfunction()

add_library(conv_fft ${objects})
add_library(ConvFFT::conv_fft ALIAS conv_fft)
conv_fft_finish_library(conv_fft)
# Threads of src/cpu/parallel.c sleep in its code until the process ends, so dlclose() must not remove it.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  target_link_options(conv_fft PRIVATE LINKER:-z,nodelete)
endif()
set_target_properties(conv_fft PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${abi})

# The program that compiles kernels, in the folder conv_fft beside the library.
add_executable(compile-kernel ${compiler_sources} "${src}/cuda/jit/files.c" "${src}/cuda/jit/nvrtc_run.c")
target_include_directories(compile-kernel PRIVATE "${PROJECT_SOURCE_DIR}/include" "${src}")
target_link_libraries(compile-kernel PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(compile-kernel PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/conv_fft")
add_dependencies(conv_fft compile-kernel)

add_library(conv_fft_static STATIC EXCLUDE_FROM_ALL ${objects})
conv_fft_finish_library(conv_fft_static)
target_include_directories(conv_fft_static INTERFACE "${src}")
