/* SPDX-License-Identifier: Apache-2.0 */
/* The library itself. */
#ifndef BENCH_OURS_H
#define BENCH_OURS_H

#include "common/impl.h"

bool bench_ours_open(bench_impl *impl, const bench_job *job);

/* The algorithm of cuDNN that the cost model chooses. It writes no message if the model chooses another family. */
bool bench_choice_open(bench_impl *impl, const bench_job *job);

/* The plan that the library finds by measurement. */
bool bench_tuned_open(bench_impl *impl, const bench_job *job);

/* The best candidate of one family by the cost model. It writes no message if there is none. */
bool bench_staged_open(bench_impl *impl, const bench_job *job);
bool bench_fused_open(bench_impl *impl, const bench_job *job);
bool bench_long1d_open(bench_impl *impl, const bench_job *job);
bool bench_toeplitz_open(bench_impl *impl, const bench_job *job);
bool bench_dft_open(bench_impl *impl, const bench_job *job);
bool bench_implicit_gemm_open(bench_impl *impl, const bench_job *job);
bool bench_spatial_open(bench_impl *impl, const bench_job *job);
bool bench_cufft_family_open(bench_impl *impl, const bench_job *job);

/* The plan of a pass with kept spectra, used without them: every run makes the spectra. */
bool bench_unkept_open(bench_impl *impl, const bench_job *job);

/* Milliseconds of the transforms whose spectra are kept, by the library's profile, and a text. impl: an open pass
 * with kept spectra. False: a message has been written. */
bool bench_ours_transforms(const bench_impl *impl, double *ms, char *text, size_t bytes);

/* Bytes, operations and time of each stage of the library's plan, by its profile. The job needs no tensors. False:
 * a message has been written. */
bool bench_ours_profile(const bench_job *job, conv_fft_description *description);

/* Make the plans of all cases and passes of the set on several threads and destroy them. Their kernels are then in
 * the cache. Plans that cannot be made are left out. threads 0: one for each processor. */
void bench_prepare(conv_fft_context *context, const bench_case *cases, size_t count, unsigned pass_set, long threads);

#endif
