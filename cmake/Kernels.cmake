# SPDX-License-Identifier: Apache-2.0
# Device headers as texts inside the library, for the compiler at run time: in the order of their includes, without the
# lines that include.
function(conv_fft_embed variable declaration output)
  set(text "")
  foreach(header IN LISTS ARGN)
    set(path "${PROJECT_SOURCE_DIR}/src/${header}.cuh")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    file(READ "${path}" content)
    string(REGEX REPLACE "#(include|pragma once)[^\n]*\n" "" content "${content}")
    string(APPEND text "${content}")
  endforeach()
  file(WRITE "${PROJECT_BINARY_DIR}/${output}.cuh" "${text}")
  file(READ "${PROJECT_BINARY_DIR}/${output}.cuh" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  set(source "#include \"${declaration}\"\nconst char ${variable}[] = {${bytes}0};\n")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${output}.c" CONTENT "${source}" @ONLY)
endfunction()

set(fft_headers platform complex dft line copy real2d real1d pairs1d storage order tile)
list(TRANSFORM fft_headers PREPEND "fbfft/kernels/")
conv_fft_embed(cf_fbfft_kernel_text fbfft/kernel_text.h kernel_text ${fft_headers})
conv_fft_embed(cf_half_kernel_text fbfft/kernel_text.h half_text fbfft/kernels/multiply fbfft/kernels/half fbfft/kernels/half_lines
               fbfft/kernels/half_step fbfft/kernels/half_tile)
conv_fft_embed(cf_matrix_kernel_text fbfft/kernel_text.h matrix_text fbfft/kernels/multiply fbfft/kernels/half fbfft/kernels/matrix
               fbfft/kernels/matrix_rows fbfft/kernels/matrix_scales fbfft/kernels/matrix_forward fbfft/kernels/matrix_inverse
               fbfft/kernels/matrix_lines fbfft/kernels/matrix_dense fbfft/kernels/matrix_short)
conv_fft_embed(cf_fused_kernel_text conv/fused_text.h fused_text conv/kernels/planes conv/kernels/steps conv/kernels/abreast
               conv/kernels/fused conv/kernels/kept conv/kernels/long conv/kernels/columns)
conv_fft_embed(cf_product_kernel_text conv/product_text.h product_text fbfft/kernels/multiply conv/kernels/tensor
               conv/kernels/product conv/kernels/half_product)
conv_fft_embed(cf_stage_kernel_text conv/stage_text.h stage_text conv/kernels/stages conv/kernels/direct
               conv/kernels/reference)
conv_fft_embed(cf_scan_kernel_text conv/scan_text.h scan_text conv/kernels/scan)
