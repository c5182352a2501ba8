/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/gpu/device.h"
#include "core/arith.h"

enum {
    MIN_THREADS = 1 << 18 /* shorter strips make more threads */
};

/* The dimensions in the order of padding_fold.cuh. Neighbouring threads have neighbouring columns, or channels. Strips
 * go along another axis, or along channels if the signal has one axis. */
static void set_dimensions(const cf_fold_desc *d, int64_t samples, int64_t groups, cf_fold_dimension dimension[6]) {
    const cf_tensor *const t = &d->tensor;
    const int64_t channels = groups * d->channels, position = d->last ? channels : 1, row = d->row * position,
                  from[3] = {d->padded[1] * row, row, position}, plane = d->padded[0] * from[0],
                  each = d->last ? 1 : plane;
    cf_fold_dimension axis[3];
    for (int a = 0; a < 3; ++a)
        axis[a] = (cf_fold_dimension){d->size[a], t->axis_stride[a], from[a], (int)d->pad[a], (int)d->padded[a]};
    const cf_fold_dimension group = {groups, t->group_stride, d->channels * each, 0, (int)groups},
                            channel = {d->channels, t->channel_stride, each, 0, (int)d->channels},
                            sample = {samples, t->sample_stride, d->last ? plane : channels * plane, 0, (int)samples},
                            *const many = groups > 1 ? &group : &channel, *const few = groups > 1 ? &channel : &group;
    const bool is_line = !d->last && d->size[1] == 1;
    const cf_fold_dimension *const order[6] = {d->last ? many : &axis[2],
                                               d->last   ? &axis[2]
                                               : is_line ? many
                                                         : &axis[1],
                                               d->last || is_line ? &axis[1] : &axis[0],
                                               d->last || is_line ? &axis[0] : many,
                                               few,
                                               &sample};
    for (int i = 0; i < 6; ++i)
        dimension[i] = *order[i];
}

conv_fft_status cf_gpu_fold(cf_device *device, const cf_fold_desc *desc, const void *scratch, int64_t samples,
                            int64_t groups, void *tensor, bool accumulate, struct CUstream_st *stream) {
    cf_fold_call f = {.scratch = scratch,
                      .data = tensor,
                      .mode = (int)desc->mode,
                      .type = (int)desc->scratch_dtype,
                      .gx_type = (int)desc->tensor.dtype,
                      .accumulate = accumulate};
    static const cf_parameter types[] = {{sizeof f, CF_ADDRESS(cf_fold_call, scratch) | CF_ADDRESS(cf_fold_call, data)},
                                         {0, 0}};
    set_dimensions(desc, samples, groups, f.dimension);
    int64_t columns = 1;
    for (int i = 0; i < 6; ++i)
        columns *= i == 1 ? 1 : f.dimension[i].extent;
    const int64_t along = f.dimension[1].extent,
                  strip = cf_min(along, cf_round_up(cf_ceil_div(along * columns, MIN_THREADS), CF_FOLD_LOADS));
    f.strip = (int)cf_max(1, strip);
    return cf_gpu_small_launch(cf_gpu_layers_of(device)->kernel[CF_KERNEL_FOLD], columns * cf_ceil_div(along, f.strip),
                               types, &f, NULL, stream);
}
