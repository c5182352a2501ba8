/* SPDX-License-Identifier: Apache-2.0 */
#include "support/random_problems.h"

#include "reference/conv.h"
#include "support/compare.h"
#include "support/selection.h"
#include "support/tensor.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The mixing function of splitmix64. */
static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* The seed is mixed, because generators of neighbouring seeds would otherwise give the same numbers. */
generator generator_create(uint64_t seed) { return (generator){mix(seed + 1)}; }

generator test_generator(uint64_t number) {
    replay_on_failure();
    return generator_create(mix(test_seed()) + number);
}

uint64_t random_bits(generator *g) { return mix(g->state += 0x9E3779B97F4A7C15u); }

int64_t random_int(generator *g, int64_t low, int64_t high) {
    return low + (int64_t)(random_bits(g) % (uint64_t)(high - low + 1));
}

bool random_once_in(generator *g, int64_t n) { return random_int(g, 1, n) == 1; }

double random_value(generator *g) { return (double)(int64_t)(random_bits(g) >> 11) * 0x1p-52 - 1; }

void random_values(generator *g, int64_t count, double *values) {
    for (int64_t i = 0; i < count; i++)
        values[i] = random_value(g);
}

void layout_strides(conv_fft_layout layout, int dims, const int64_t *extent, int64_t *stride) {
    int64_t step = 1;
    if (layout == CONV_FFT_CHANNELS_LAST) {
        stride[1] = 1;
        step = extent[1];
    }
    for (int d = dims - 1; d >= 0; d--) {
        if (d == 1 && layout == CONV_FFT_CHANNELS_LAST)
            continue;
        stride[d] = step;
        step *= extent[d];
    }
}

static void random_axis(generator *g, conv_fft_problem *p, int a) {
    static const int64_t longest_input[] = {300, 30, 11}, longest_kernel[] = {70, 12, 5};
    const bool plain = random_once_in(g, 3);
    p->input[a] = random_int(g, 1, random_once_in(g, 4) ? 4 : longest_input[p->rank - 1]);
    p->kernel[a] = random_int(g, 1, random_once_in(g, 3) ? 4 : longest_kernel[p->rank - 1]);
    p->stride[a] = plain ? 1 : random_int(g, 1, 4);
    p->dilation[a] = plain ? 1 : random_int(g, 1, 4);

    const int64_t reach = (p->kernel[a] - 1) * p->dilation[a] + 1;
    int64_t most = random_once_in(g, 8) ? reach + 3 : reach / 2 + 1;
    if (p->padding == CONV_FFT_PAD_CIRCULAR && most > p->input[a])
        most = p->input[a];
    if (p->padding == CONV_FFT_PAD_REFLECT && most > p->input[a] - 1)
        most = p->input[a] - 1;
    if (random_once_in(g, 4))
        most = 0;
    p->pad_before[a] = random_int(g, 0, most);
    p->pad_after[a] = random_once_in(g, 2) ? p->pad_before[a] : random_int(g, 0, most);
}

static void random_channels(generator *g, conv_fft_problem *p) {
    const int64_t kind = random_int(g, 0, 3);
    if (kind == 0) { /* depthwise, perhaps with a multiplier */
        p->groups = random_int(g, 1, 7);
        p->in_channels = p->groups;
        p->out_channels = p->groups * random_int(g, 1, 3);
    } else if (kind == 1) {
        p->groups = random_int(g, 2, 4);
        p->in_channels = p->groups * random_int(g, 1, 4);
        p->out_channels = p->groups * random_int(g, 1, 4);
    } else {
        p->in_channels = random_int(g, 1, 12);
        p->out_channels = random_int(g, 1, 12);
    }
}

static void random_types(generator *g, conv_fft_problem *p) {
    static const conv_fft_dtype dtypes[] = {CONV_FFT_FP32, CONV_FFT_FP32, CONV_FFT_FP16, CONV_FFT_BF16, CONV_FFT_FP64};
    p->dtype = dtypes[random_int(g, 0, 4)];
    const bool half = p->dtype == CONV_FFT_FP16 || p->dtype == CONV_FFT_BF16;
    if (half && random_once_in(g, 2))
        p->weight_grad_dtype = CONV_FFT_FP32;
    else if (random_once_in(g, 4))
        p->weight_grad_dtype = p->dtype;
    if (p->dtype != CONV_FFT_FP64 && random_once_in(g, 4))
        p->math = half ? CONV_FFT_MATH_HALF : CONV_FFT_MATH_TF32;
    p->tensor_layout = (conv_fft_layout)random_int(g, 0, 1);
    p->weight_layout = (conv_fft_layout)random_int(g, 0, 1);
}

void random_strides(generator *g, int dims, const int64_t *extent, int64_t *stride) {
    int order[TENSOR_MAX_DIMS] = {0};
    for (int d = 0; d < dims; d++) {
        const int other = (int)random_int(g, 0, d);
        order[d] = order[other];
        order[other] = d;
    }
    int64_t step = 1;
    for (int d = 0; d < dims; d++) {
        step += random_once_in(g, 3) ? random_int(g, 0, 2) : 0;
        stride[order[d]] = step;
        step *= extent[order[d]];
    }
}

static void random_all_strides(generator *g, conv_fft_problem *p) {
    const int dims = 2 + p->rank;
    const int64_t batch = p->batch > 0 ? p->batch : 1; /* the stride past an empty batch must not be zero */
    int64_t x[TENSOR_MAX_DIMS] = {batch, p->in_channels}, y[TENSOR_MAX_DIMS] = {batch, p->out_channels};
    int64_t w[TENSOR_MAX_DIMS] = {p->out_channels, p->in_channels / p->groups};
    const ref_shape s = ref_shape_of(p);
    for (int a = 0; a < p->rank; a++) {
        x[2 + a] = p->input[a];
        y[2 + a] = s.output[3 - p->rank + a];
        w[2 + a] = p->kernel[a];
    }
    if (random_once_in(g, 2))
        random_strides(g, dims, x, p->x_stride);
    if (random_once_in(g, 2))
        random_strides(g, dims, y, p->y_stride);
    if (random_once_in(g, 2))
        random_strides(g, dims, w, p->w_stride);
}

/* True if some output of the axis reads an element of x and not only padding. Otherwise a layer computes zero, and
 * errors cannot be relative. */
static bool reads_input(const ref_shape *s, int a) {
    for (int64_t m = 0; m < s->output[a]; m++)
        for (int64_t k = 0; k < s->kernel[a]; k++)
            if (ref_source(s->padding, m * s->stride[a] + k * s->dilation[a] - s->pad_before[a], s->input[a]) >= 0)
                return true;
    return false;
}

static bool fits(const conv_fft_problem *p, double products) {
    for (int a = 0; a < p->rank; a++)
        if (p->input[a] + p->pad_before[a] + p->pad_after[a] < (p->kernel[a] - 1) * p->dilation[a] + 1)
            return false;
    const ref_shape s = ref_shape_of(p);
    return ref_products(&s) <= products && reads_input(&s, 0) && reads_input(&s, 1) && reads_input(&s, 2);
}

conv_fft_problem random_problem(generator *g, double products) {
    conv_fft_problem p;
    do {
        conv_fft_problem_init(&p, (int)random_int(g, 1, 3));
        p.batch = random_once_in(g, 40) ? 0 : random_int(g, 1, 4);
        p.padding = (conv_fft_padding)random_int(g, 0, 3);
        random_channels(g, &p);
        for (int a = 0; a < p.rank; a++)
            random_axis(g, &p, a);
    } while (!fits(&p, products));
    random_types(g, &p);
    if (random_once_in(g, 6))
        random_all_strides(g, &p);
    const bool half = p.dtype == CONV_FFT_FP16 || p.dtype == CONV_FFT_BF16;
    p.fp32_weights = half && random_once_in(g, 3);
    return p;
}

static bool read_line(const char *line, const char *file, named_problem *out) {
    char name[64] = "";
    if (conv_fft_problem_parse(line, &out->problem, name, sizeof name) != CONV_FFT_SUCCESS) {
        fprintf(stderr, "%s: %s    %s\n", file, line, conv_fft_last_error());
        exit(2);
    }
    const char *slash = strrchr(file, '/');
    const char *stem = slash ? slash + 1 : file;
    snprintf(out->name, sizeof out->name, "%.*s/%s", (int)strcspn(stem, "."), stem, name);
    return out->problem.rank > 0;
}

named_problem *read_problems(const char *folder, int64_t *count) {
    enum {
        MOST = 512
    };
    char pattern[1024], line[1024];
    named_problem *list = test_alloc(MOST * sizeof *list);
    glob_t files;
    *count = 0;
    snprintf(pattern, sizeof pattern, "%s/*.txt", folder);
    if (glob(pattern, 0, NULL, &files) != 0) {
        fprintf(stderr, "no file %s\n", pattern);
        exit(2);
    }
    for (size_t f = 0; f < files.gl_pathc; f++) {
        FILE *file = fopen(files.gl_pathv[f], "r");
        while (file && *count < MOST && fgets(line, sizeof line, file))
            *count += read_line(line, files.gl_pathv[f], &list[*count]);
        if (file)
            fclose(file);
    }
    globfree(&files);
    return list;
}
