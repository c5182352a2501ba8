/* SPDX-License-Identifier: Apache-2.0 */
/* The device headers as texts for the compiler at run time. cmake/Kernels.cmake makes them and lists their files. */
#ifndef CF_CUDA_KERNEL_SOURCES_H
#define CF_CUDA_KERNEL_SOURCES_H

/* fbfft/common, fbfft/warp and fbfft/shared_memory. All other texts follow this one. */
extern const char cf_fbfft_kernel_text[];

/* fbfft/c2c_fp16: transforms from FP16 to FP16. */
extern const char cf_c2c_fp16_kernel_text[];

/* fbfft/c2c_split: FP32 transforms on tensor cores. */
extern const char cf_c2c_split_kernel_text[];

/* fbfft/tensor_core: transforms with 16-bit spectra on tensor cores. */
extern const char cf_tensor_fft_kernel_text[];

/* conv/fused and conv/long1d. */
extern const char cf_fused_kernel_text[];
extern const char cf_long1d_kernel_text[];

/* conv/toeplitz, conv/dft, conv/implicit_gemm and conv/spatial. They do not follow the text of fbfft: they have what
 * they need of fbfft/common. */
extern const char cf_toeplitz_kernel_text[];
extern const char cf_dft_kernel_text[];
extern const char cf_igemm_kernel_text[];
extern const char cf_spatial_kernel_text[];

/* conv/gpu/slices.cuh: sums of slices. It has what it needs of fbfft/common, too. */
extern const char cf_slices_kernel_text[];

/* conv/gpu/gemm: products per frequency on tensor cores. */
extern const char cf_cgemm_kernel_text[];

/* The small operations of conv/gpu, and those of families cudnn and cufft. */
extern const char cf_gpu_kernel_text[];

#endif
