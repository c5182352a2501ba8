/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cpu_fft_cases.h"

#include "core/arith.h"
#include "core/dtype.h"

#include <string.h>

setting simple_setting(const int64_t basis[3], conv_fft_dtype dtype, int64_t samples, int64_t channels) {
    setting s = {.samples = samples, .groups = 1};
    cf_transform_desc *d = &s.desc;
    for (int a = 0; a < 3; ++a)
        d->window.axis[a] = (cf_axis_window){.spread = 1,
                                             .count = basis[a],
                                             .step = 1,
                                             .tiles = 1,
                                             .shifts = 1,
                                             .phases = 1,
                                             .upper = basis[a],
                                             .size = basis[a]};
    d->tensor.dtype = dtype;
    memcpy(d->spectrum.basis, basis, sizeof d->spectrum.basis);
    d->spectrum.channels = channels;
    return s;
}

/* Fill in derived fields: strides, extents of the spectrum, scale. The block has rows [row, row + rows) of groups
 * [group, group + groups). */
static void complete(setting *s, conv_fft_layout layout, int64_t row, int64_t rows, int64_t group, int64_t groups) {
    cf_transform_desc *d = &s->desc;
    cf_spectrum *f = &d->spectrum;
    const cf_axis_window *w = d->window.axis;
    const int64_t extent[5] = {s->samples, s->groups * f->channels, w[0].size, w[1].size, w[2].size};
    int64_t stride[5];
    layout_strides(layout, 5, extent, stride);
    d->tensor = (cf_tensor){.dtype = d->tensor.dtype,
                            .sample_stride = stride[0],
                            .channel_stride = stride[1],
                            .group_stride = stride[1] * f->channels,
                            .axis_stride = {stride[2], stride[3], stride[4]}};
    s->elements = extent[0] * extent[1] * extent[2] * extent[3] * extent[4];
    f->dtype = cf_compute_dtype(d->tensor.dtype);
    f->groups = s->groups;
    f->bins = f->basis[0] * f->basis[1] * (f->basis[2] / 2 + 1);
    f->rows_per_sample = cf_window_tiles(&d->window) * cf_window_shifts(&d->window);
    f->columns = f->channels * cf_window_phases(&d->window);
    f->rows = s->samples * f->rows_per_sample;
    d->scale = 1.0 / (double)(f->basis[0] * f->basis[1] * f->basis[2]);
    s->bias_channels = s->groups * f->channels;
    s->block = (cf_block){.group = group,
                          .groups = groups,
                          .row = row,
                          .rows = rows,
                          .bin_stride = rows * f->columns,
                          .group_stride = f->bins * rows * f->columns + 3};
    s->planes = groups * rows * f->columns;
}

void complete_whole(setting *s, conv_fft_layout layout) {
    complete(s, layout, 0, s->samples * cf_window_tiles(&s->desc.window) * cf_window_shifts(&s->desc.window), 0,
             s->groups);
}

static void random_axis(generator *g, cf_axis_window *a, int64_t basis, bool inverse, bool ordered) {
    a->mode = inverse ? CONV_FFT_PAD_ZEROS : (conv_fft_padding)random_int(g, 0, 3);
    a->size = random_int(g, 1, 12);
    a->spread = random_int(g, 1, 2);
    a->first = random_int(g, 0, basis - 1);
    a->count = random_int(g, 0, (basis - 1 - a->first) / a->spread + 1);
    a->step = random_int(g, 1, 3);
    a->origin = random_int(g, -6, 6);
    a->tiles = random_int(g, 1, 3);
    a->shifts = random_int(g, 1, 2);
    a->phases = random_int(g, 1, 2);
    a->tile_step = random_int(g, 1, 8);
    a->shift_step = random_int(g, 0, 3);
    a->phase_step = random_int(g, 0, 3);
    const int64_t most = a->mode == CONV_FFT_PAD_REFLECT ? a->size - 1 : a->mode == CONV_FFT_PAD_CIRCULAR ? a->size : 9;
    a->lower = -random_int(g, -1, most);
    a->upper = a->size + random_int(g, -1, most);
    if (!inverse)
        return;
    /* Tiles must not overlap. They are adjacent, and there are no shifts and phases. */
    a->shifts = a->phases = 1;
    if (!ordered)
        a->tile_step = cf_max(1, a->count * a->step);
}

setting random_setting(generator *g, bool inverse, bool ordered) {
    static const int64_t bases[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, 20, 21, 24};
    static const conv_fft_dtype dtypes[] = {CONV_FFT_FP32, CONV_FFT_FP16, CONV_FFT_BF16, CONV_FFT_FP64};
    const int rank = (int)random_int(g, 1, 3);
    int64_t basis[3] = {1, 1, 1};
    for (int a = 3 - rank; a < 3; ++a)
        basis[a] = bases[random_int(g, 0, rank == 3 ? 10 : 17)];
    setting s = simple_setting(basis, dtypes[random_int(g, 0, 3)], random_int(g, 1, 3), random_int(g, 1, 5));
    for (int a = 3 - rank; a < 3; ++a)
        random_axis(g, &s.desc.window.axis[a], basis[a], inverse, ordered);
    s.desc.inverse = inverse;
    s.desc.ordered = ordered;
    s.groups = random_int(g, 1, 3);
    complete_whole(&s, (conv_fft_layout)random_int(g, 0, 1));
    const int64_t per_sample = s.desc.spectrum.rows_per_sample, all = s.desc.spectrum.rows;
    int64_t row = random_int(g, 0, all - 1), most = all - row;
    if (ordered && random_once_in(g, 2)) /* a part of one sample */
        most = per_sample - row % per_sample;
    else if (ordered) /* whole samples */
        row -= row % per_sample;
    int64_t rows = random_int(g, 1, most);
    if (ordered && row % per_sample == 0 && rows >= per_sample)
        rows -= rows % per_sample;
    const int64_t group = random_int(g, 0, s.groups - 1);
    complete(&s, (conv_fft_layout)random_int(g, 0, 1), row, rows, group, random_int(g, 1, s.groups - group));
    s.origin = (cf_origin){.sample = row / per_sample, .group = group};
    return s;
}
