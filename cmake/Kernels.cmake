# SPDX-License-Identifier: Apache-2.0
# Device headers as texts in the library, for the compiler at run time. The headers stand in the order of their includes;
# their #include lines are left out. src/cuda/jit/kernel_sources.h declares the texts.
function(conv_fft_embed variable output)
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
  set(source "#include \"cuda/jit/kernel_sources.h\"\nconst char ${variable}[] = {${bytes}0};\n")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${output}.c" CONTENT "${source}" @ONLY)
endfunction()

set(mma fbfft/common/mma)
conv_fft_embed(cf_fbfft_kernel_text kernel_text fbfft/common/platform fbfft/common/complex
               fbfft/common/register_dft fbfft/warp/warp_line fbfft/common/async_copy fbfft/warp/real2d fbfft/warp/real1d
               fbfft/warp/real1d_warp fbfft/common/storage fbfft/shared_memory/in_place_order
               fbfft/shared_memory/geometry fbfft/shared_memory/addressing fbfft/shared_memory/signal fbfft/shared_memory/spectrum
               fbfft/shared_memory/steps fbfft/shared_memory/kernel)
conv_fft_embed(cf_c2c_fp16_kernel_text half_text ${mma} fbfft/common/fp16_dft
               fbfft/c2c_fp16/lines fbfft/c2c_fp16/step fbfft/c2c_fp16/tile)
conv_fft_embed(cf_tensor_fft_kernel_text matrix_text ${mma} fbfft/common/fp16_dft
               fbfft/tensor_core/plane fbfft/tensor_core/plane_load fbfft/tensor_core/scales fbfft/tensor_core/plane_forward
               fbfft/tensor_core/plane_inverse fbfft/tensor_core/line_twiddles fbfft/tensor_core/line_addressing
               fbfft/tensor_core/line_forward fbfft/tensor_core/line_inverse fbfft/tensor_core/dft_matrix_config
               fbfft/tensor_core/dft_matrix_build fbfft/tensor_core/dft_matrix_taps fbfft/tensor_core/dft_matrix
               fbfft/tensor_core/short_line_io fbfft/tensor_core/short_line_forward fbfft/tensor_core/short_line_inverse
               fbfft/tensor_core/kernel)
conv_fft_embed(cf_fused_kernel_text fused_text conv/fused/plane_access
               conv/fused/plane_load conv/fused/plane_store conv/fused/pruned_dft conv/fused/pruned_fft
               conv/fused/nhwc_vectors conv/fused/nhwc_io conv/fused/nhwc_transpose conv/fused/fused_call
               conv/fused/load_store conv/fused/bins conv/fused/products conv/fused/shared_memory conv/fused/weight_sums
               conv/fused/add_slices conv/fused/register_tasks conv/fused/packed_words conv/fused/bulk_copy
               conv/fused/prefetch_weights conv/fused/whole_rows conv/fused/whole_rows_fft conv/fused/register_resident)
conv_fft_embed(cf_long1d_kernel_text long1d_text conv/long1d/butterfly_tree conv/long1d/line_geometry conv/long1d/root_tables
               conv/long1d/line_fft conv/long1d/line_io conv/long1d/line conv/long1d/four_step)
conv_fft_embed(cf_cgemm_kernel_text product_text ${mma} conv/gpu/gemm/wgmma
               conv/gpu/gemm/cgemm_split_fp16 conv/gpu/gemm/cgemm_fp16_config conv/gpu/gemm/cgemm_fp16_copy
               conv/gpu/gemm/cgemm_fp16_scales conv/gpu/gemm/cgemm_fp16_multiply conv/gpu/gemm/cgemm_fp16_results
               conv/gpu/gemm/cgemm_fp16)
conv_fft_embed(cf_gpu_kernel_text stage_text conv/gpu/tensor conv/gpu/absmax conv/gpu/bias
               conv/gpu/padding_fold conv/gpu/small_gemm conv/cudnn/fallback conv/cufft/pad_crop)
