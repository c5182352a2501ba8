/* SPDX-License-Identifier: Apache-2.0 */
/* Both calls of a layer on the device of support/device.h, with all their memory. A failed call is a failure of the
 * test. */
#ifndef TEST_CALL_BENCH_H
#define TEST_CALL_BENCH_H

#include "support/layer.h"

#define assert_success(call)                                  \
    do {                                                      \
        if ((call) != CONV_FFT_SUCCESS)                       \
            fail_msg("%s: %s", #call, conv_fft_last_error()); \
    } while (0)

enum {
    CALL_LINES = 5,
    CALL_RESULTS = 4 /* y, gx, gw, gbias */
};
/* Products by cuBLAS and by the library's kernels, a fold, transforms of several kernels, all types and layouts. */
extern const char *const call_lines[CALL_LINES];

/* A layer with its plan and its workspaces. Its calls have these flags, or kept spectra. */
typedef struct call_bench {
    layer layer;
    conv_fft_plan *plan;
    guarded forward, backward, x_spectrum, w_spectrum;
    unsigned flags;
    bool kept;
} call_bench;

/* Everything that the calls read and write. */
typedef struct call_places {
    void *x, *w, *bias, *gy, *y, *gx, *gw, *gbias, *forward, *backward;
} call_places;

/* options may be NULL. */
call_bench call_bench_create(const char *line, const conv_fft_plan_options *options, unsigned flags);
void call_bench_destroy(call_bench *b);

call_places call_places_of(call_bench *b);
result *call_result(layer *l, int r);

/* Results become NaN, or the old contents if the calls add to them. */
void call_reset(call_bench *b);
/* Both calls, one after the other. */
conv_fft_status call_enqueue(const call_bench *b, const call_places *p, struct CUstream_st *stream);
void call_check(call_bench *b, const char *call);

#endif
