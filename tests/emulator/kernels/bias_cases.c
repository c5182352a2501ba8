/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/bias_cases.h"

#include "conv/gpu/device.h"
#include "core/dtype.h"
#include "reference/dtype.h"
#include "support/compare.h"
#include "support/layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MULTIPROCESSORS = 12,
    MAX_LAUNCHES = 2
};

static struct {
    int count;
    unsigned blocks[MAX_LAUNCHES];
} launches;

conv_fft_status __wrap_cf_kernel_launch(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                        cf_cu_stream stream);
conv_fft_status __wrap_cf_kernel_launch(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                        cf_cu_stream stream) {
    (void)stream;
    if (launches.count < MAX_LAUNCHES)
        launches.blocks[launches.count] = launch->grid[0];
    ++launches.count;
    return bias_emulate(launch->grid[0], launch->block[0], launch->dynamic_shared, parameters[0]) == 0
               ? CONV_FFT_SUCCESS
               : cf_fail(CONV_FFT_DEVICE_ERROR, "kernel %s does what it must not", kernel->name);
}

/* Samples, channels, axes; order of the strides; gaps between neighbours, in elements; offset of the first element from
 * a multiple of 64 bytes, in elements; launches with scratch. */
typedef struct bias_case {
    const char *layout;
    conv_fft_dtype dtype, result;
    int64_t extent[5], gap[5];
    int64_t shift;
    int launches;
} bias_case;

#define FP16 CONV_FFT_FP16
#define BF16 CONV_FFT_BF16
#define FP32 CONV_FFT_FP32
#define FP64 CONV_FFT_FP64

static const bias_case cases[] = {
    /* Few channels in parts; rows of a multiple of 8 elements, and other rows. */
    {"first", FP16, FP32, {1, 1, 1, 500, 600}, {0}, 0, 2},
    {"first", FP16, FP32, {7, 1, 1, 200, 203}, {0}, 3, 2},
    {"first", FP16, FP16, {3, 1, 1, 5, 7}, {0}, 0, 1},
    {"first", FP16, FP32, {40, 3, 1, 56, 56}, {0}, 0, 2},
    {"first", FP16, FP32, {41, 3, 1, 55, 55}, {0}, 0, 2},
    {"first", BF16, FP32, {41, 3, 1, 55, 55}, {0}, 1, 2},
    {"first", BF16, BF16, {2, 3, 1, 7, 7}, {0}, 5, 1},
    {"first", FP32, FP32, {20, 3, 1, 55, 55}, {0}, 1, 2},
    {"first", FP32, FP32, {5, 3, 1, 3, 5}, {0}, 0, 1},
    {"first", FP64, FP64, {10, 3, 3, 19, 57}, {0}, 1, 2},
    {"first", FP64, FP64, {2, 3, 2, 3, 5}, {0}, 0, 1},
    /* As many channels as multiprocessors, and more. */
    {"first", FP16, FP32, {2, 12, 1, 8, 8}, {0}, 0, 1},
    {"first", FP16, FP32, {3, 64, 1, 7, 7}, {0}, 0, 1},
    {"first", BF16, FP32, {3, 64, 1, 24, 24}, {0}, 0, 1},
    {"first", FP32, FP32, {2, 64, 1, 3, 3}, {0}, 3, 1},
    {"first", FP16, FP32, {2, 513, 1, 3, 3}, {0}, 0, 1},
    {"first", BF16, FP32, {1, 513, 1, 2, 3}, {0}, 2, 1},
    {"first", FP64, FP64, {2, 513, 1, 1, 3}, {0}, 0, 1},
    /* Rows, planes and channels with gaps. */
    {"first", FP16, FP32, {4, 3, 2, 5, 16}, {0, 8, 0, 8, 0}, 0, 1},
    {"first", FP16, FP32, {6, 2, 2, 60, 301}, {24, 7, 5, 3, 0}, 1, 2},
    {"first", FP16, FP32, {2, 2, 1, 4, 8}, {0, 4, 0, 0, 0}, 0, 1},
    {"first", FP32, FP32, {4, 3, 1, 9, 11}, {1, 1, 1, 1, 0}, 0, 1},
    {"first", FP64, FP64, {3, 2, 3, 4, 9}, {5, 0, 0, 1, 0}, 0, 1},
    /* Channels side by side: whole chunks of them, */
    {"last", FP16, FP32, {4, 64, 1, 40, 41}, {0}, 0, 2},
    {"last", FP16, FP32, {2, 64, 1, 5, 3}, {0}, 0, 1},
    {"last", FP16, FP16, {2, 8, 1, 5, 3}, {0}, 0, 1},
    {"last", BF16, FP32, {3, 72, 1, 61, 41}, {0}, 0, 2},
    {"last", FP32, FP32, {3, 68, 1, 31, 41}, {0}, 0, 2},
    {"last", FP64, FP64, {2, 18, 2, 31, 41}, {0}, 0, 2},
    {"last", FP16, FP32, {2, 520, 1, 3, 3}, {0}, 0, 1},
    {"last", FP16, FP32, {2, 64, 3, 5, 9}, {0, 0, 16, 8, 8}, 0, 1},
    {"last", FP32, FP32, {7, 64, 1, 50, 17}, {0, 0, 0, 4, 0}, 0, 2},
    /* chunks of several rows, */
    {"last", FP16, FP32, {16, 3, 1, 90, 96}, {0}, 0, 2},
    {"last", BF16, FP32, {8, 513, 1, 10, 10}, {0}, 0, 2},
    {"last", FP32, FP32, {2, 6, 1, 129, 130}, {0}, 0, 2},
    {"last", FP64, FP64, {2, 3, 1, 130, 129}, {0}, 0, 2},
    {"last", BF16, FP32, {4, 260, 1, 20, 20}, {0}, 0, 2},
    /* or single numbers. */
    {"last", FP16, FP32, {5, 3, 1, 7, 9}, {0}, 0, 1},
    {"last", FP16, FP32, {15, 3, 1, 91, 97}, {0}, 0, 2},
    {"last", BF16, FP32, {3, 64, 1, 7, 9}, {0}, 1, 1},
    {"last", FP16, FP32, {2, 513, 1, 3, 5}, {0}, 0, 1},
    {"last", FP32, FP32, {2, 65, 1, 3, 5}, {0, 0, 0, 0, 1}, 0, 1},
    {"last", FP32, FP32, {5, 64, 2, 40, 17}, {0, 0, 3, 2, 1}, 0, 2},
    {"last", FP64, FP64, {2, 5, 3, 3, 5}, {0, 0, 0, 1, 0}, 0, 1},
    {"last", FP32, FP32, {300, 5, 1, 1, 1}, {0}, 0, 1},
    /* Real parts of complex numbers, one channel with gaps, nothing at all. */
    {"other", FP32, FP32, {300, 64, 1, 1, 1}, {0, 1, 0, 0, 0}, 0, 1},
    {"other", FP64, FP64, {33, 3, 1, 1, 1}, {0, 1, 0, 0, 0}, 0, 1},
    {"other", FP16, FP32, {3, 1, 1, 4, 5}, {0, 0, 0, 0, 1}, 0, 1},
    {"other", FP16, FP32, {1, 1, 1, 1, 1}, {0}, 1, 1},
    {"other", FP32, FP32, {0, 5, 1, 3, 3}, {0}, 0, 1},
    {"other", FP16, FP32, {0, 64, 1, 1, 1}, {0}, 0, 1},
};

#undef FP16
#undef BF16
#undef FP32
#undef FP64

/* The operands of a call. `reach`: elements from the first to the end of the last. */
typedef struct operands {
    int64_t stride[5], reach, count;
    char *memory, *data, *result, *scratch;
    double *expected;
    size_t scratch_bytes;
} operands;

static void place(const bias_case *c, operands *o) {
    static const int first[] = {4, 3, 2, 1, 0}, last[] = {1, 4, 3, 2, 0};
    const int *const order = strcmp(c->layout, "first") == 0 ? first : last;
    int64_t next = 1;
    o->reach = 1;
    o->count = 1;
    for (int i = 0; i < 5; i++) {
        const int a = order[i];
        o->stride[a] = next + c->gap[a];
        next = o->stride[a] * c->extent[a];
        o->reach += (c->extent[a] - 1) * o->stride[a];
        o->count *= c->extent[a];
    }
    if (o->count == 0)
        o->reach = 0;
}

/* Whole numbers that FP64 sums do not round, and that FP32 sums would. */
static double number(const bias_case *c, int64_t element, int64_t elements) {
    const double small = (double)((element * 37 + element / 11) % 15 - 6);
    const bool wide = c->dtype == CONV_FFT_FP32 || c->dtype == CONV_FFT_FP64;
    if (wide && elements > 2 && element % elements == 1)
        return 0x1p40;
    return wide && elements > 2 && element % elements == elements - 1 ? -0x1p40 : small;
}

static void fill(const bias_case *c, operands *o) {
    const size_t bytes = ref_dtype_size(c->dtype);
    const int64_t elements = o->count ? o->count / c->extent[1] : 0; /* of a channel */
    for (int64_t i = 0; i < o->reach; i++)
        ref_store(c->dtype, o->data + (size_t)i * bytes, NAN);
    int64_t at[5] = {0};
    for (int64_t n = 0; n < o->count; n++) {
        /* channel outermost */
        int64_t rest = n % elements, offset = n / elements * o->stride[1];
        for (int a = 4; a >= 0; a--) {
            if (a == 1)
                continue;
            at[a] = rest % c->extent[a];
            rest /= c->extent[a];
            offset += at[a] * o->stride[a];
        }
        const double v = number(c, n, elements);
        ref_store(c->dtype, o->data + (size_t)offset * bytes, v);
        o->expected[n / elements] += v;
    }
}

static bool check(const bias_case *c, operands *o, cf_gpu_layers *layers, bool room, bool accumulate) {
    const size_t bytes = ref_dtype_size(c->result);
    const cf_bias_desc desc = {.tensor = {.dtype = c->dtype,
                                          .sample_stride = o->stride[0],
                                          .channel_stride = o->stride[1],
                                          .axis_stride = {o->stride[2], o->stride[3], o->stride[4]}},
                               .result_dtype = c->result,
                               .samples = c->extent[0],
                               .channels = c->extent[1],
                               .size = {c->extent[2], c->extent[3], c->extent[4]}};
    o->scratch_bytes = cf_gpu_bias_scratch(&layers->base, &desc);
    o->scratch = aligned_alloc(64, (o->scratch_bytes + 127) / 64 * 64);
    memset(o->scratch, 0xff, (o->scratch_bytes + 127) / 64 * 64);
    for (int64_t i = 0; i < c->extent[1]; i++)
        ref_store(c->result, o->result + (size_t)i * bytes, accumulate ? (double)(i % 5) : NAN);
    launches.count = 0;
    bool ok = check_status(
        cf_gpu_bias_gradient(&layers->base, &desc, o->data, o->result, accumulate, room ? o->scratch : NULL, NULL),
        "cf_gpu_bias_gradient");
    const int expected = room ? c->launches : 1;
    if (launches.count != expected)
        ok = case_fail("%d launches, not %d", launches.count, expected);
    for (size_t i = o->scratch_bytes; i < (o->scratch_bytes + 127) / 64 * 64; i++)
        if ((unsigned char)o->scratch[i] != 0xff)
            ok = case_fail("byte %zu of %zu of scratch was written", i, o->scratch_bytes);
    for (int64_t i = 0; i < c->extent[1]; i++) {
        double rounded = 0;
        char stored[8];
        ref_store(c->result, stored, o->expected[i] + (accumulate ? (double)(i % 5) : 0.0));
        rounded = ref_load(c->result, stored);
        const double got = ref_load(c->result, o->result + (size_t)i * bytes);
        if (!(got == rounded)) {
            ok = case_fail("gbias[%lld] is %.17g, not %.17g", (long long)i, got, rounded);
            break;
        }
    }
    free(o->scratch);
    return ok;
}

static void run(const bias_case *c, cf_gpu_layers *layers) {
    operands o;
    memset(&o, 0, sizeof o);
    const size_t bytes = ref_dtype_size(c->dtype);
    place(c, &o);
    /* No memory follows the last element, so that a sanitizer sees accesses there. */
    const size_t before = 64 + (size_t)c->shift * bytes, all = before + (size_t)o.reach * bytes;
    if (posix_memalign((void **)&o.memory, 64, all))
        abort();
    memset(o.memory, 0xff, all);
    o.data = o.memory + before;
    o.result = malloc((size_t)c->extent[1] * ref_dtype_size(c->result));
    o.expected = calloc((size_t)c->extent[1], sizeof *o.expected);
    fill(c, &o);
    for (int way = 0; way < 4; way++) {
        char text[160];
        snprintf(text, sizeof text, "%s %lldx%lldx%lldx%lldx%lld dtype %d -> %d, shift %lld%s%s", c->layout,
                 (long long)c->extent[0], (long long)c->extent[1], (long long)c->extent[2], (long long)c->extent[3],
                 (long long)c->extent[4], (int)c->dtype, (int)c->result, (long long)c->shift,
                 way & 1 ? ", scratch" : "", way & 2 ? ", accumulate" : "");
        case_begin(text, NULL);
        check(c, &o, layers, way & 1, way & 2);
    }
    free(o.memory);
    free(o.result);
    free(o.expected);
}

int bias_cases_run(const char *layout) {
    cf_gpu gpu = {.properties = {.multiprocessors = MULTIPROCESSORS}};
    cf_kernel kernel = {.gpu = &gpu, .name = "cf_stage"};
    cf_gpu_layers layers = {.gpu = &gpu};
    layers.kernel[CF_KERNEL_BIAS] = &kernel;
    const int before = case_failures();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].layout, layout) == 0)
            run(&cases[i], &layers);
    return case_failures() - before;
}
