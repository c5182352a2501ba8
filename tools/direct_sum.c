/* SPDX-License-Identifier: Apache-2.0 */
/* Each pass sums the terms (m, k, i) along every axis: output m gets tap k times input i. A list has the terms of one
 * result along one axis. */
#include "direct_sum.h"

#include <math.h>
#include <stdlib.h>

typedef struct term {
    int64_t m, k, i;
} term;

typedef struct term_list {
    term *terms;
    int64_t count, capacity;
} term_list;

static int64_t volume(const int64_t extent[3]) { return extent[0] * extent[1] * extent[2]; }

void direct_layer_make(const conv_fft_problem *p, const int64_t output[CONV_FFT_MAX_RANK], direct_layer *l) {
    *l = (direct_layer){.batch = p->batch,
                        .in_channels = p->in_channels,
                        .out_channels = p->out_channels,
                        .groups = p->groups,
                        .padding = p->padding,
                        .tensors_last = p->tensor_layout == CONV_FFT_CHANNELS_LAST,
                        .weights_last = p->weight_layout == CONV_FFT_CHANNELS_LAST};
    for (int a = 0; a < 3; ++a) {
        const int axis = a - 3 + p->rank;
        const bool used = axis >= 0;
        l->input[a] = used ? p->input[axis] : 1;
        l->kernel[a] = used ? p->kernel[axis] : 1;
        l->output[a] = used ? output[axis] : 1;
        l->stride[a] = used ? p->stride[axis] : 1;
        l->dilation[a] = used ? p->dilation[axis] : 1;
        l->pad[a] = used ? p->pad_before[axis] : 0;
    }
}

direct_counts direct_count(const direct_layer *l) {
    return (direct_counts){.x = l->batch * l->in_channels * volume(l->input),
                           .w = l->out_channels * (l->in_channels / l->groups) * volume(l->kernel),
                           .y = l->batch * l->out_channels * volume(l->output)};
}

double direct_products(const direct_layer *l, conv_fft_pass pass) {
    const double in = (double)(l->in_channels / l->groups), out = (double)(l->out_channels / l->groups);
    if (pass == CONV_FFT_BACKWARD_WEIGHTS)
        return (double)l->batch * (double)volume(l->output);
    return (pass == CONV_FFT_FORWARD ? in : out) * (double)volume(l->kernel);
}

/* The element of x that stands at a position of the padded axis. -1: none. */
static int64_t source(conv_fft_padding padding, int64_t at, int64_t extent) {
    if (at >= 0 && at < extent)
        return at;
    switch (padding) {
    case CONV_FFT_PAD_CIRCULAR:
        return at < 0 ? at + extent : at - extent;
    case CONV_FFT_PAD_REFLECT:
        return at < 0 ? -at : 2 * (extent - 1) - at;
    case CONV_FFT_PAD_REPLICATE:
        return at < 0 ? 0 : extent - 1;
    case CONV_FFT_PAD_ZEROS:
        break;
    }
    return -1;
}

static bool add(term_list *list, term t) {
    if (list->count == list->capacity) {
        const int64_t capacity = 2 * list->capacity + 64;
        term *const grown = realloc(list->terms, (size_t)capacity * sizeof *grown);
        if (!grown)
            return false;
        list->terms = grown;
        list->capacity = capacity;
    }
    list->terms[list->count++] = t;
    return true;
}

/* List the terms of output m or of tap k. */
static bool list_of_output_or_tap(const direct_layer *l, int a, bool is_tap, int64_t index, term_list *list) {
    const int64_t count = is_tap ? l->output[a] : l->kernel[a];
    for (int64_t other = 0; other < count; ++other) {
        const int64_t m = is_tap ? other : index, k = is_tap ? index : other;
        const int64_t i = source(l->padding, m * l->stride[a] + k * l->dilation[a] - l->pad[a], l->input[a]);
        if (i >= 0 && !add(list, (term){m, k, i}))
            return false;
    }
    return true;
}

/* List the terms of input i: it may stand at several positions of the padded axis. */
static bool list_of_input(const direct_layer *l, int a, int64_t i, term_list *list) {
    const int64_t reach = (l->output[a] - 1) * l->stride[a] + (l->kernel[a] - 1) * l->dilation[a] - l->pad[a];
    const bool padded = l->padding != CONV_FFT_PAD_ZEROS;
    const int64_t first = padded ? -l->pad[a] : i, last = padded ? reach : i;
    for (int64_t at = first; at <= last; ++at) {
        if (source(l->padding, at, l->input[a]) != i)
            continue;
        for (int64_t k = 0; k < l->kernel[a]; ++k) {
            const int64_t scaled = at + l->pad[a] - k * l->dilation[a];
            if (scaled < 0)
                break;
            if (scaled % l->stride[a] == 0 && scaled / l->stride[a] < l->output[a] &&
                !add(list, (term){scaled / l->stride[a], k, i}))
                return false;
        }
    }
    return true;
}

/* The place of a channel and a point in a tensor of either layout; and the channel and point of a place. */
static int64_t place(bool last, int64_t row, int64_t channels, int64_t channel, int64_t points, int64_t point) {
    return last ? (row * points + point) * channels + channel : (row * channels + channel) * points + point;
}

static void split(bool last, int64_t index, int64_t channels, int64_t points, int64_t *row, int64_t *channel,
                  int64_t *point) {
    *row = index / (channels * points);
    index %= channels * points;
    *channel = last ? index % channels : index / points;
    *point = last ? index / channels : index % points;
}

int64_t direct_channel(const direct_layer *l, int64_t index) {
    int64_t row, channel, point;
    split(l->tensors_last, index, l->out_channels, volume(l->output), &row, &channel, &point);
    return channel;
}

/* One result: its place in the tensor, and its terms along each axis. */
typedef struct target {
    int64_t row, channel, point;
    term_list axis[3];
} target;

static int64_t flat(const int64_t extent[3], int64_t a, int64_t b, int64_t c) {
    return (a * extent[1] + b) * extent[2] + c;
}

/* Add the products of sample n, output channel o and input channel c of its group. */
static void add_plane(const direct_layer *l, conv_fft_pass pass, const double *x, const double *w, const double *gy,
                      const target *t, int64_t n, int64_t o, int64_t c, direct_result *sum) {
    const int64_t in = l->in_channels / l->groups, channel = o / (l->out_channels / l->groups) * in + c;
    for (int64_t p = 0; p < t->axis[0].count; ++p)
        for (int64_t q = 0; q < t->axis[1].count; ++q)
            for (int64_t r = 0; r < t->axis[2].count; ++r) {
                const term a = t->axis[0].terms[p], b = t->axis[1].terms[q], d = t->axis[2].terms[r];
                double product = 1;
                if (pass != CONV_FFT_BACKWARD_DATA)
                    product *= x[place(l->tensors_last, n, l->in_channels, channel, volume(l->input),
                                       flat(l->input, a.i, b.i, d.i))];
                if (pass != CONV_FFT_BACKWARD_WEIGHTS)
                    product *= w[place(l->weights_last, o, in, c, volume(l->kernel), flat(l->kernel, a.k, b.k, d.k))];
                if (pass != CONV_FFT_FORWARD)
                    product *= gy[place(l->tensors_last, n, l->out_channels, o, volume(l->output),
                                        flat(l->output, a.m, b.m, d.m))];
                sum->value += product;
                sum->magnitude += fabs(product);
            }
}

static void add_planes(const direct_layer *l, conv_fft_pass pass, const double *x, const double *w, const double *gy,
                       const target *t, direct_result *sum) {
    const int64_t in = l->in_channels / l->groups, out = l->out_channels / l->groups;
    if (pass == CONV_FFT_FORWARD)
        for (int64_t c = 0; c < in; ++c)
            add_plane(l, pass, x, w, gy, t, t->row, t->channel, c, sum);
    else if (pass == CONV_FFT_BACKWARD_DATA)
        for (int64_t o = 0; o < out; ++o)
            add_plane(l, pass, x, w, gy, t, t->row, t->channel / in * out + o, t->channel % in, sum);
    else
        for (int64_t n = 0; n < l->batch; ++n)
            add_plane(l, pass, x, w, gy, t, n, t->row, t->channel, sum);
}

bool direct_sum(const direct_layer *l, conv_fft_pass pass, const double *x, const double *w, const double *gy,
                int64_t index, direct_result *result) {
    const bool forward = pass == CONV_FFT_FORWARD, data = pass == CONV_FFT_BACKWARD_DATA;
    const int64_t *const extent = forward ? l->output : data ? l->input : l->kernel;
    const int64_t channels = forward ? l->out_channels : data ? l->in_channels : l->in_channels / l->groups;
    target t = {.row = 0};
    bool good = true;
    split(forward || data ? l->tensors_last : l->weights_last, index, channels, volume(extent), &t.row, &t.channel,
          &t.point);
    for (int a = 2; a >= 0; --a) {
        const int64_t at = t.point % extent[a];
        t.point /= extent[a];
        good = good &&
               (data ? list_of_input(l, a, at, &t.axis[a]) : list_of_output_or_tap(l, a, !forward, at, &t.axis[a]));
    }
    *result = (direct_result){0, 0};
    if (good)
        add_planes(l, pass, x, w, gy, &t, result);
    for (int a = 0; a < 3; ++a)
        free(t.axis[a].terms);
    return good;
}
