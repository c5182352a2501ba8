/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/shared_memory/signal_access.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "fbfft/shared_memory/layout.h"
#include "fbfft/shared_memory/radices.h"

/* The smallest and the largest coordinate of any element of any plane. */
static void coordinates(const cf_axis_window *a, int64_t *low, int64_t *high) {
    const int64_t counts[3] = {a->tiles, a->shifts, a->phases}, steps[3] = {a->tile_step, a->shift_step, a->phase_step};
    *low = *high = a->origin;
    for (int i = 0; i < 3; ++i) {
        const int64_t far = (counts[i] - 1) * steps[i];
        *low += cf_min(far, 0);
        *high += cf_max(far, 0);
    }
    *high += cf_max(a->count - 1, 0) * a->step;
}

bool cf_shared_fft_checked(const cf_axis_window *a) {
    int64_t low, high;
    coordinates(a, &low, &high);
    return low < cf_max(a->lower, 0) || high >= cf_min(a->upper, a->size);
}

static bool axis_reaches(const cf_axis_window *a) {
    const int64_t limit = (int64_t)1 << 30;
    int64_t low, high;
    coordinates(a, &low, &high);
    return low >= -limit && high <= limit && a->size <= limit;
}

bool cf_shared_fft_reaches(const cf_window *w) {
    return axis_reaches(&w->axis[0]) && axis_reaches(&w->axis[1]) && axis_reaches(&w->axis[2]);
}

conv_fft_status cf_shared_fft_check_extents(const cf_fft_problem *p) {
    for (int x = 0; x < 3; ++x) {
        int64_t low, high;
        coordinates(&p->transform.window.axis[x], &low, &high);
        if (!axis_reaches(&p->transform.window.axis[x]))
            return cf_fail(CONV_FFT_NOT_SUPPORTED,
                           "the signal's axis %d reaches from %lld to %lld of %lld; the GPU's transforms take 2^30", x,
                           (long long)low, (long long)high, (long long)p->transform.window.axis[x].size);
    }
    return CONV_FFT_SUCCESS;
}

static bool is_staged(const cf_shared_fft_config *c) {
    return c->kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX && cf_shared_fft_number_bytes(c) == 4 && c->radix[2][1] == 1 &&
           (c->packs_nyquist || cf_shared_fft_points(c->radix[2]) % 4 == 0) && cf_shared_fft_extent(c, 2) > 0;
}

/* Whether staging pays if the points of a line are no multiple of four. The inverse stores single numbers faster from
 * lines that are not staged. Forward, 16-bit numbers pass through registers, which such kernels need for themselves. */
static bool staging_pays(const cf_shared_fft_config *c) {
    const cf_transform_desc *t = &c->problem.fft.transform;
    if (cf_shared_fft_points(c->radix[2]) % 4 == 0)
        return true;
    if (t->inverse)
        return c->vector_width > 1;
    return t->tensor.dtype == CONV_FFT_FP32 && t->tensor.axis_stride[2] == 1 && t->window.axis[2].step == 1;
}

bool cf_shared_fft_has_vectors(const cf_shared_fft_config *c, int64_t vector_width) {
    const cf_transform_desc *t = &c->problem.fft.transform;
    const cf_axis_window *w = &t->window.axis[2];
    const int64_t counts[] = {2, w->tiles, w->shifts, w->phases},
                  steps[] = {w->origin, w->tile_step, w->shift_step, w->phase_step};
    bool whole = t->tensor.axis_stride[2] == 1 && w->first % vector_width == 0 && w->spread == 1 && w->step == 1 &&
                 w->count % vector_width == 0;
    if (cf_shared_fft_checked(w))
        whole = whole && w->mode == CONV_FFT_PAD_ZEROS && cf_max(w->lower, 0) % vector_width == 0 &&
                cf_min(w->upper, w->size) % vector_width == 0;
    for (int i = 0; i < 4; ++i)
        whole = whole && (counts[i] == 1 || steps[i] % vector_width == 0);
    for (int x = 0; x < 2; ++x)
        whole = whole && (t->window.axis[x].size == 1 || t->tensor.axis_stride[x] % vector_width == 0);
    return whole && t->tensor.sample_stride % vector_width == 0 && t->tensor.channel_stride % vector_width == 0 &&
           t->tensor.group_stride % vector_width == 0;
}

/* Forward: whether rows can be read as aligned vectors although rows begin anywhere. Returns how many numbers before
 * the row the first vector begins, or -1. Numbers of a vector outside the window are not used. */
static int shift_for_vectors(const cf_shared_fft_config *c, int64_t vector_width) {
    const cf_transform_desc *t = &c->problem.fft.transform;
    cf_shared_fft_config even = *c;
    cf_axis_window *const w = &even.problem.fft.transform.window.axis[2];
    const int64_t first = w->origin - w->first;
    const int alignment_shift = (int)((first % vector_width + vector_width) % vector_width);
    if (t->inverse || !c->staged || c->planes_interleaved ||
        (cf_shared_fft_checked(w) && w->mode != CONV_FFT_PAD_ZEROS) || cf_max(w->lower, 0) % vector_width ||
        cf_min(w->upper, w->size) % vector_width || (alignment_shift == 0 && w->first % vector_width))
        return -1;
    w->origin = w->first = 0;
    w->count = w->count / vector_width * vector_width;
    return cf_shared_fft_has_vectors(&even, vector_width) ? alignment_shift : -1;
}

void cf_shared_fft_choose_access(cf_shared_fft_config *c) {
    const cf_transform_desc *t = &c->problem.fft.transform;
    c->planes_interleaved = t->tensor.channel_stride == 1 && t->tensor.axis_stride[2] != 1 && t->spectrum.columns > 1;
    c->staged = is_staged(c);
    /* Kernels that multiply move rows as vectors, whatever the length of their lines: fused/plane_load.cuh. */
    const bool has_vectors =
        c->staged || (!c->packs_nyquist && cf_shared_fft_number_bytes(c) == 4 && !c->planes_interleaved &&
                      (c->kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX || c->kind == CF_SHARED_FFT_PACKED_REAL));
    c->vector_width = 1;
    c->alignment_shift = 0;
    for (int width = 4; has_vectors && width > c->vector_width; width /= 2) {
        const int alignment_shift = cf_shared_fft_has_vectors(c, width) ? 0
                                    : c->packs_nyquist                  ? shift_for_vectors(c, width)
                                                                        : -1;
        if (alignment_shift >= 0) {
            c->vector_width = width;
            c->alignment_shift = alignment_shift;
        }
    }
    if (c->staged && !staging_pays(c)) {
        c->staged = false;
        c->vector_width = 1;
        c->alignment_shift = 0;
    }
}
