/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/gpu/slices.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "core/status.h"
#include "core/text.h"
#include "cuda/jit/kernel_sources.h"
#include "fbfft/common/kernel_text.h"
#include "fbfft/warp/config.h"

static int shared_of(cf_slice_adder adder, conv_fft_dtype dtype) {
    return cf_slice_adder_shared(adder, 2 * (int)cf_dtype_bytes(dtype));
}

/* With few slices, a next kernel beside this one made ConvNeXt's and RepLKNet's small layers slower on an H200. */
conv_fft_status cf_slices_source(int64_t max_slices, conv_fft_dtype dtype, cf_source *source) {
    const cf_slice_adder adder = cf_slice_adder_of(max_slices);
    char tail[100];
    cf_text t = {tail, sizeof tail, 0};
    cf_text_add(&t, "CF_ADD_SLICES_KERNEL(%d, %d, %s)\n", adder.sums, adder.shares,
                max_slices > CF_FEW_SLICES ? "true" : "false");
    *source = (cf_source){.name = "cf_add_slices",
                          .headers = {cf_slices_kernel_text, NULL},
                          .options = {CF_FFT_OPTION, dtype == CONV_FFT_FP64 ? "-DCF_REAL=double" : NULL},
                          .dynamic_shared = (size_t)shared_of(adder, dtype),
                          .pdl_wait = true};
    return cf_source_set_text(source, &t);
}

conv_fft_status cf_slices_add(const cf_kernel *kernel, const cf_slice_sums *sums, int64_t max_slices,
                              conv_fft_dtype dtype, struct CUstream_st *stream) {
    static const cf_parameter types[] = {{sizeof(void *), 1},  {sizeof(void *), 1},  {sizeof(int64_t), 0},
                                         {sizeof(int64_t), 0}, {sizeof(int64_t), 0}, {0, 0}};
    const cf_slice_adder adder = cf_slice_adder_of(max_slices);
    const cf_launch shape = {{(unsigned)cf_ceil_div(sums->count, adder.sums), 1, 1},
                             {(unsigned)(adder.sums * adder.shares), 1, 1},
                             (size_t)shared_of(adder, dtype),
                             types};
    void *to = sums->to;
    const void *from = sums->sums;
    int64_t count = sums->count, slices = sums->slices, accumulate = sums->accumulate;
    void *parameters[] = {&to, (void *)&from, &count, &slices, &accumulate};
    return cf_kernel_launch(kernel, &shape, parameters, stream);
}
