/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/conv.h"

#include <stdlib.h>

/* One term of the sum along one axis: output m gets kernel element k times input element i. */
typedef struct tap {
    int64_t m, k, i;
} tap;

typedef struct tap_list {
    tap *taps;
    int64_t count;
} tap_list;

ref_shape ref_shape_of(const conv_fft_problem *p) {
    ref_shape s = {p->batch,  p->in_channels, p->out_channels, p->groups, {1, 1, 1}, {1, 1, 1},
                   {1, 1, 1}, {1, 1, 1},      {1, 1, 1},       {0, 0, 0}, p->padding};
    for (int axis = 0; axis < p->rank; axis++) {
        const int a = axis + 3 - p->rank;
        const int64_t reach = (p->kernel[axis] - 1) * p->dilation[axis] + 1;
        s.input[a] = p->input[axis];
        s.kernel[a] = p->kernel[axis];
        s.stride[a] = p->stride[axis];
        s.dilation[a] = p->dilation[axis];
        s.pad_before[a] = p->pad_before[axis];
        s.output[a] = (p->input[axis] + p->pad_before[axis] + p->pad_after[axis] - reach) / p->stride[axis] + 1;
    }
    return s;
}

static int64_t volume(const int64_t extent[3]) { return extent[0] * extent[1] * extent[2]; }

int64_t ref_input_count(const ref_shape *s) { return s->batch * s->in_channels * volume(s->input); }

int64_t ref_weight_count(const ref_shape *s) {
    return s->out_channels * (s->in_channels / s->groups) * volume(s->kernel);
}

int64_t ref_output_count(const ref_shape *s) { return s->batch * s->out_channels * volume(s->output); }

double ref_products(const ref_shape *s) {
    return (double)ref_output_count(s) * (double)(s->in_channels / s->groups) * (double)volume(s->kernel);
}

int64_t ref_source(conv_fft_padding padding, int64_t i, int64_t extent) {
    if (i >= 0 && i < extent)
        return i;
    switch (padding) {
    case CONV_FFT_PAD_CIRCULAR:
        return ((i % extent) + extent) % extent;
    case CONV_FFT_PAD_REFLECT:
        return i < 0 ? -i : 2 * (extent - 1) - i;
    case CONV_FFT_PAD_REPLICATE:
        return i < 0 ? 0 : extent - 1;
    case CONV_FFT_PAD_ZEROS:
        break;
    }
    return -1;
}

static tap_list list_taps(const ref_shape *s, int axis) {
    tap_list list = {malloc((size_t)(s->output[axis] * s->kernel[axis]) * sizeof(tap)), 0};
    if (!list.taps)
        abort();
    for (int64_t m = 0; m < s->output[axis]; m++)
        for (int64_t k = 0; k < s->kernel[axis]; k++) {
            const int64_t position = m * s->stride[axis] + k * s->dilation[axis] - s->pad_before[axis];
            const int64_t i = ref_source(s->padding, position, s->input[axis]);
            if (i >= 0)
                list.taps[list.count++] = (tap){m, k, i};
        }
    return list;
}

/* The planes x[n][c], w[o][c] and y[n][o], of which one is written. */
typedef struct planes {
    const double *in_x, *in_w, *in_y;
    double *out;
} planes;

static void convolve_planes(const ref_shape *s, conv_fft_pass pass, const tap_list lists[3], planes p) {
    for (int64_t a = 0; a < lists[0].count; a++)
        for (int64_t b = 0; b < lists[1].count; b++) {
            const tap t0 = lists[0].taps[a], t1 = lists[1].taps[b];
            const int64_t m = (t0.m * s->output[1] + t1.m) * s->output[2];
            const int64_t k = (t0.k * s->kernel[1] + t1.k) * s->kernel[2];
            const int64_t i = (t0.i * s->input[1] + t1.i) * s->input[2];
            for (const tap *t = lists[2].taps, *end = t + lists[2].count; t < end; t++) {
                if (pass == CONV_FFT_FORWARD)
                    p.out[m + t->m] += p.in_w[k + t->k] * p.in_x[i + t->i];
                else if (pass == CONV_FFT_BACKWARD_DATA)
                    p.out[i + t->i] += p.in_w[k + t->k] * p.in_y[m + t->m];
                else
                    p.out[k + t->k] += p.in_x[i + t->i] * p.in_y[m + t->m];
            }
        }
}

/* All passes sum the same list of terms. So each gradient is the adjoint. */
static void convolve(const ref_shape *s, conv_fft_pass pass, const double *x, const double *w, const double *y,
                     double *out, int64_t out_count) {
    const int64_t x_plane = volume(s->input), w_plane = volume(s->kernel), y_plane = volume(s->output);
    const int64_t in_group = s->in_channels / s->groups, out_group = s->out_channels / s->groups;
    const tap_list lists[3] = {list_taps(s, 0), list_taps(s, 1), list_taps(s, 2)};
    for (int64_t i = 0; i < out_count; i++)
        out[i] = 0;
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t o = 0; o < s->out_channels; o++)
            for (int64_t c = 0; c < in_group; c++) {
                const int64_t xi = (n * s->in_channels + o / out_group * in_group + c) * x_plane;
                const int64_t wi = (o * in_group + c) * w_plane;
                const int64_t yi = (n * s->out_channels + o) * y_plane;
                const int64_t target = pass == CONV_FFT_FORWARD ? yi : pass == CONV_FFT_BACKWARD_DATA ? xi : wi;
                convolve_planes(s, pass, lists,
                                (planes){x ? x + xi : NULL, w ? w + wi : NULL, y ? y + yi : NULL, out + target});
            }
    for (int a = 0; a < 3; a++)
        free(lists[a].taps);
}

void ref_forward(const ref_shape *s, const double *x, const double *w, double *y) {
    convolve(s, CONV_FFT_FORWARD, x, w, NULL, y, ref_output_count(s));
}

void ref_backward_data(const ref_shape *s, const double *w, const double *gy, double *gx) {
    convolve(s, CONV_FFT_BACKWARD_DATA, NULL, w, gy, gx, ref_input_count(s));
}

void ref_backward_weights(const ref_shape *s, const double *x, const double *gy, double *gw) {
    convolve(s, CONV_FFT_BACKWARD_WEIGHTS, x, NULL, gy, gw, ref_weight_count(s));
}

void ref_add_bias(const ref_shape *s, const double *bias, double *y) {
    const int64_t plane = volume(s->output);
    for (int64_t i = 0; i < ref_output_count(s); i++)
        y[i] += bias[i / plane % s->out_channels];
}

void ref_backward_bias(const ref_shape *s, const double *gy, double *gbias) {
    const int64_t plane = volume(s->output);
    for (int64_t o = 0; o < s->out_channels; o++)
        gbias[o] = 0;
    for (int64_t i = 0; i < ref_output_count(s); i++)
        gbias[i / plane % s->out_channels] += gy[i];
}
