# SPDX-License-Identifier: Apache-2.0
# Device headers as texts in the library, for the compiler at run time. The headers are in the order of their includes.
# Their #include lines are left out. src/cuda/jit/kernel_sources.h declares the texts.
function(conv_fft_embed variable output)
  set(text "")
  foreach(header IN LISTS ARGN)
    set(path "${PROJECT_SOURCE_DIR}/src/${header}")
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

set(mma fbfft/common/mma.cuh)
set(slices conv/gpu/slice_adder.h conv/gpu/slices.cuh)
conv_fft_embed(cf_fbfft_kernel_text kernel_text core/host_device.h fbfft/common/platform.cuh fbfft/common/complex.cuh
               fbfft/common/register_dft.cuh fbfft/warp/warp_line.cuh fbfft/warp/geometry.h fbfft/common/async_copy.cuh
               fbfft/warp/real2d.cuh fbfft/warp/real1d.cuh fbfft/warp/real1d_warp.cuh fbfft/common/storage.cuh
               fbfft/shared_memory/geometry.h fbfft/shared_memory/in_place_order.cuh fbfft/shared_memory/call.h
               fbfft/common/padding.cuh
               fbfft/shared_memory/geometry.cuh fbfft/shared_memory/addressing.cuh fbfft/shared_memory/signal.cuh
               fbfft/shared_memory/spectrum.cuh fbfft/shared_memory/steps.cuh fbfft/shared_memory/prefetch.cuh
               fbfft/shared_memory/kernel.cuh)
conv_fft_embed(cf_c2c_fp16_kernel_text half_text ${mma} fbfft/common/fp16_dft.cuh fbfft/c2c_fp16/lines.cuh
               fbfft/c2c_fp16/step.cuh fbfft/c2c_fp16/tile.cuh)
conv_fft_embed(cf_c2c_split_kernel_text split_text ${mma} fbfft/c2c_split/geometry.h fbfft/common/fp16_dft.cuh
               fbfft/c2c_split/lines.cuh fbfft/c2c_split/reals.cuh fbfft/c2c_split/kernel.cuh)
conv_fft_embed(cf_tensor_fft_kernel_text matrix_text ${mma} fbfft/common/fp16_dft.cuh fbfft/tensor_core/geometry.h
               fbfft/tensor_core/plane.cuh fbfft/tensor_core/plane_load.cuh fbfft/tensor_core/scales.cuh
               fbfft/tensor_core/plane_forward.cuh fbfft/tensor_core/line_addressing.cuh
               fbfft/tensor_core/plane_rows.cuh fbfft/tensor_core/plane_inverse.cuh fbfft/tensor_core/line_twiddles.cuh
               fbfft/tensor_core/line_forward.cuh fbfft/tensor_core/line_inverse.cuh
               fbfft/tensor_core/dft_matrix_config.cuh fbfft/tensor_core/dft_matrix_build.cuh
               fbfft/tensor_core/dft_matrix_taps.cuh fbfft/tensor_core/dft_matrix.cuh
               fbfft/tensor_core/short_line_io.cuh fbfft/tensor_core/short_line_forward.cuh
               fbfft/tensor_core/short_line_inverse.cuh fbfft/tensor_core/kernel.cuh)
conv_fft_embed(cf_fused_kernel_text fused_text conv/fused/plane_access.cuh conv/fused/plane_load.cuh
               conv/fused/plane_store.cuh conv/fused/pruned_dft.cuh conv/fused/pruned_fft.cuh
               conv/fused/nhwc_vectors.cuh conv/fused/nhwc_io.cuh conv/fused/call.h conv/fused/geometry.h
               conv/fused/nhwc_transpose.cuh
               conv/fused/fused_call.cuh conv/fused/load_store.cuh conv/fused/bins.cuh conv/fused/products.cuh
               conv/fused/shared_memory.cuh conv/fused/weight_sums.cuh
               conv/fused/register_tasks.cuh conv/fused/packed_words.cuh conv/fused/bulk_copy.cuh
               conv/fused/prefetch_weights.cuh conv/fused/whole_rows.cuh conv/fused/whole_rows_fft.cuh
               conv/fused/register_resident.cuh conv/fused/kernel.cuh)
conv_fft_embed(cf_long1d_kernel_text long1d_text conv/long1d/butterfly_tree.cuh conv/long1d/geometry.h
               conv/long1d/line_geometry.cuh conv/long1d/root_tables.cuh conv/long1d/line_fft.cuh conv/long1d/call.h
               conv/long1d/line_io.cuh conv/long1d/line.cuh conv/long1d/four_step.cuh)
conv_fft_embed(cf_slices_kernel_text slices_text core/host_device.h fbfft/common/platform.cuh fbfft/common/complex.cuh
               fbfft/common/storage.cuh ${slices})
conv_fft_embed(cf_toeplitz_kernel_text toeplitz_text core/host_device.h fbfft/common/platform.cuh
               fbfft/common/complex.cuh fbfft/common/storage.cuh ${mma} conv/toeplitz/call.h conv/toeplitz/geometry.h
               fbfft/common/padding.cuh conv/toeplitz/tile.cuh conv/toeplitz/folded_planes.cuh
               conv/toeplitz/tf32.cuh conv/toeplitz/signals.cuh ${slices}
               conv/toeplitz/weights.cuh conv/toeplitz/plane_rows.cuh conv/toeplitz/plane_rows_weights.cuh
               conv/toeplitz/both.cuh conv/toeplitz/channels_last.cuh
               conv/toeplitz/channels_last_weights.cuh conv/toeplitz/planes_in_place.cuh
               conv/toeplitz/planes_in_place_weights.cuh conv/toeplitz/channels_last_both.cuh
               conv/toeplitz/small_geometry.h conv/toeplitz/small_planes.cuh conv/toeplitz/small_weights.cuh
               conv/toeplitz/lines_last.cuh conv/toeplitz/lines_last_both.cuh
               conv/toeplitz/volumes.cuh conv/toeplitz/volume_weights.cuh
               conv/toeplitz/volumes_last.cuh)
conv_fft_embed(cf_dft_kernel_text dft_text core/host_device.h fbfft/common/platform.cuh
               fbfft/common/complex.cuh fbfft/common/storage.cuh ${mma} conv/dft/call.h conv/dft/geometry.h ${slices}
               conv/dft/tables.cuh conv/dft/steps.cuh conv/dft/planes.cuh conv/dft/gradient.cuh
               conv/dft/signal_steps.cuh conv/dft/signals.cuh)
conv_fft_embed(cf_igemm_kernel_text implicit_gemm_text core/host_device.h fbfft/common/platform.cuh
               fbfft/common/complex.cuh fbfft/common/storage.cuh ${mma} conv/gpu/gemm/wgmma.cuh
               ${slices} conv/implicit_gemm/call.h conv/implicit_gemm/geometry.h conv/implicit_gemm/wgmma_tile.cuh
               conv/implicit_gemm/units.cuh conv/implicit_gemm/forward.cuh conv/implicit_gemm/weights.cuh)
conv_fft_embed(cf_spatial_kernel_text spatial_text core/host_device.h fbfft/common/platform.cuh
               fbfft/common/complex.cuh fbfft/common/storage.cuh fbfft/common/padding.cuh conv/spatial/call.h
               conv/spatial/geometry.h conv/spatial/strips.cuh conv/spatial/channels_last.cuh
               conv/spatial/channels_first.cuh ${slices} conv/spatial/gradient.cuh conv/spatial/walk.cuh)
conv_fft_embed(cf_cgemm_kernel_text product_text ${mma} conv/gpu/gemm/call.h conv/gpu/gemm/geometry.h
               conv/gpu/gemm/wgmma.cuh conv/gpu/gemm/cgemm_split_fp16.cuh conv/gpu/gemm/cgemm_fp16_config.cuh
               conv/gpu/gemm/cgemm_fp16_copy.cuh conv/gpu/gemm/cgemm_fp16_scales.cuh
               conv/gpu/gemm/cgemm_fp16_multiply.cuh conv/gpu/gemm/cgemm_fp16_results.cuh conv/gpu/gemm/cgemm_fp16.cuh)
conv_fft_embed(cf_gpu_kernel_text stage_text conv/gpu/call.h conv/cudnn/call.h conv/cufft/call.h conv/gpu/tensor.cuh
               conv/gpu/absmax.cuh conv/gpu/bias.cuh conv/gpu/padding_fold.cuh conv/gpu/small_gemm.cuh
               conv/cudnn/fallback.cuh conv/cufft/pad_crop.cuh)
