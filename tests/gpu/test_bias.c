/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of the bias on a GPU against sums in double: few and many channels, both layouts, with and without
 * scratch and accumulation. The bits are the same each time, also on two streams at once. The speed is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conv/gpu/backend.h"
#include "cuda/driver/memory.h"
#include "reference/dtype.h"
#include "support/case_list.h"
#include "support/gpu.h"
#include "support/random_problems.h"
#include "support/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUNS = 9,
    FLUSH = 256 << 20 /* bytes, more than any cache has */
};

typedef struct bias_case {
    conv_fft_dtype dtype, result;
    bool last;
    int64_t samples, channels, height, width, shift; /* elements from an aligned address to the first */
} bias_case;

typedef struct setting {
    const cf_gpu *gpu;
    cf_device *device;
    cf_bias_desc desc;
    int64_t count;
    size_t result_bytes, scratch_bytes;
    char *host, *data; /* gy on either side */
    void *memory, *gbias[2], *scratch[2], *flush;
    double *sum, *magnitude;
} setting;

static void *reserve(const setting *s, size_t bytes) {
    void *memory = NULL;
    assert_int_equal(cf_gpu_allocate(s->gpu, bytes, &memory), CONV_FFT_SUCCESS);
    return memory;
}

static setting create(const cf_gpu *gpu, cf_device *device, const bias_case *c, generator *g) {
    setting s = {.gpu = gpu, .device = device};
    const int64_t plane = c->height * c->width, element = c->last ? c->channels : 1;
    const size_t bytes = ref_dtype_size(c->dtype);
    s.desc = (cf_bias_desc){.tensor = {.dtype = c->dtype,
                                       .sample_stride = c->channels * plane,
                                       .channel_stride = c->last ? 1 : plane,
                                       .axis_stride = {plane * element, c->width * element, element}},
                            .result_dtype = c->result,
                            .samples = c->samples,
                            .channels = c->channels,
                            .size = {1, c->height, c->width}};
    s.count = c->samples * c->channels * plane;
    s.host = test_alloc((size_t)s.count * bytes);
    s.sum = test_alloc((size_t)c->channels * sizeof(double));
    s.magnitude = test_alloc((size_t)c->channels * sizeof(double));
    memset(s.sum, 0, (size_t)c->channels * sizeof(double));
    memset(s.magnitude, 0, (size_t)c->channels * sizeof(double));
    for (int64_t i = 0; i < s.count; i++) {
        const int64_t channel = c->last ? i % c->channels : i / plane % c->channels;
        ref_store(c->dtype, s.host + (size_t)i * bytes, random_value(g));
        const double v = ref_load(c->dtype, s.host + (size_t)i * bytes);
        s.sum[channel] += v;
        s.magnitude[channel] += fabs(v);
    }
    s.memory = reserve(&s, (size_t)(s.count + c->shift) * bytes);
    s.data = (char *)s.memory + (size_t)c->shift * bytes;
    assert_int_equal(cf_gpu_upload(gpu, s.data, s.host, (size_t)s.count * bytes, NULL), CONV_FFT_SUCCESS);
    s.result_bytes = (size_t)c->channels * ref_dtype_size(c->result);
    s.scratch_bytes = device->ops->bias_scratch(device, &s.desc);
    for (int i = 0; i < 2; i++) {
        s.gbias[i] = reserve(&s, s.result_bytes);
        s.scratch[i] = reserve(&s, s.scratch_bytes + 64);
    }
    s.flush = reserve(&s, FLUSH);
    return s;
}

static void destroy(setting *s) {
    for (int i = 0; i < 2; i++) {
        cf_gpu_free(s->gpu, s->gbias[i]);
        cf_gpu_free(s->gpu, s->scratch[i]);
    }
    cf_gpu_free(s->gpu, s->flush);
    cf_gpu_free(s->gpu, s->memory);
    free(s->host);
    free(s->sum);
    free(s->magnitude);
}

static void run(const setting *s, int which, bool room, bool accumulate, cf_cu_stream stream) {
    assert_int_equal(s->device->ops->bias_gradient(s->device, &s->desc, s->data, s->gbias[which], accumulate,
                                                   room ? s->scratch[which] : NULL, stream),
                     CONV_FFT_SUCCESS);
}

/* Check the result after one call, or after a second one that adds to it. */
static void check(const setting *s, const bias_case *c, int which, double times) {
    char *const got = test_alloc(s->result_bytes);
    const size_t bytes = ref_dtype_size(c->result);
    const double rounding = c->result == CONV_FFT_FP64   ? 0x1p-52
                            : c->result == CONV_FFT_FP32 ? 0x1p-23
                            : c->result == CONV_FFT_FP16 ? 0x1p-10
                                                         : 0x1p-7;
    const bool narrow = ref_dtype_size(c->dtype) == 2;
    assert_int_equal(cf_gpu_download(s->gpu, got, s->gbias[which], s->result_bytes, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_synchronize(s->gpu, NULL), CONV_FFT_SUCCESS);
    for (int64_t i = 0; i < c->channels; i++) {
        const double exact = times * s->sum[i], v = ref_load(c->result, got + (size_t)i * bytes);
        const double summing = narrow ? 0x1p-28 * s->magnitude[i] + 1e-6 : 0x1p-48 * s->magnitude[i];
        if (!(fabs(v - exact) <= times * rounding * fabs(exact) + times * summing)) {
            print_error("gbias[%lld] is %.9g, not %.9g\n", (long long)i, v, exact);
            fail();
        }
    }
    free(got);
}

static void expect_same_bits(const setting *s) {
    char *const first = test_alloc(s->result_bytes), *const second = test_alloc(s->result_bytes);
    assert_int_equal(cf_gpu_download(s->gpu, first, s->gbias[0], s->result_bytes, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_download(s->gpu, second, s->gbias[1], s->result_bytes, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_synchronize(s->gpu, NULL), CONV_FFT_SUCCESS);
    assert_memory_equal(first, second, s->result_bytes);
    free(first);
    free(second);
}

static int compare(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The median time of a sum over data that are in no cache, with the launches and the time between two events. */
static float measure(const setting *s, bool room) {
    float ms[RUNS];
    cf_cu_event start, end;
    assert_int_equal(cf_gpu_event_create(s->gpu, &start), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_event_create(s->gpu, &end), CONV_FFT_SUCCESS);
    for (int i = 0; i < RUNS; i++) {
        assert_int_equal(cf_gpu_fill(s->gpu, s->flush, 0, FLUSH, NULL), CONV_FFT_SUCCESS);
        assert_int_equal(cf_gpu_event_record(s->gpu, start, NULL), CONV_FFT_SUCCESS);
        run(s, 0, room, false, NULL);
        assert_int_equal(cf_gpu_event_record(s->gpu, end, NULL), CONV_FFT_SUCCESS);
        assert_int_equal(cf_gpu_event_elapsed(s->gpu, start, end, &ms[i]), CONV_FFT_SUCCESS);
    }
    cf_gpu_event_destroy(s->gpu, start);
    cf_gpu_event_destroy(s->gpu, end);
    qsort(ms, RUNS, sizeof ms[0], compare);
    return ms[RUNS / 2];
}

static void check_case(const cf_gpu *gpu, cf_device *device, const bias_case *c, generator *g) {
    setting s = create(gpu, device, c, g);
    for (int room = 0; room < 2; room++) {
        assert_int_equal(cf_gpu_fill(gpu, s.gbias[0], 0xff, s.result_bytes, NULL), CONV_FFT_SUCCESS);
        assert_int_equal(cf_gpu_fill(gpu, s.scratch[0], 0xff, s.scratch_bytes + 64, NULL), CONV_FFT_SUCCESS);
        run(&s, 0, room, false, NULL);
        check(&s, c, 0, 1);
        run(&s, 0, room, true, NULL);
        check(&s, c, 0, 2);
    }
    cf_cu_stream streams[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(cf_gpu_stream_create(gpu, &streams[i]), CONV_FFT_SUCCESS);
    for (int i = 0; i < 2 * RUNS; i++)
        run(&s, i % 2, true, false, streams[i % 2]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cf_gpu_synchronize(gpu, streams[i]), CONV_FFT_SUCCESS);
        cf_gpu_stream_destroy(gpu, streams[i]);
    }
    expect_same_bits(&s);
    check(&s, c, 1, 1);
    const double megabytes = 1e-6 * (double)s.count * (double)ref_dtype_size(c->dtype);
    const float with = measure(&s, true), without = measure(&s, false);
    print_message(
        "%lldx%lldx%lldx%lld, %s, dtype %d: %.2f MB, scratch %zu bytes: %.4f ms, %.0f GB/s; without: %.4f ms\n",
        (long long)c->samples, (long long)c->channels, (long long)c->height, (long long)c->width,
        c->last ? "last" : "first", (int)c->dtype, megabytes, s.scratch_bytes, (double)with, megabytes / (double)with,
        (double)without);
    destroy(&s);
}

enum {
    F32 = CONV_FFT_FP32,
    F16 = CONV_FFT_FP16,
    B16 = CONV_FFT_BF16,
    F64 = CONV_FFT_FP64
};
static const bias_case cases[] = {
    {F16, F32, false, 128, 64, 56, 56, 0},  {F16, F32, false, 128, 128, 24, 24, 0},
    {F16, F32, true, 128, 64, 56, 56, 0},   {F16, F32, true, 128, 128, 24, 24, 0},
    {F16, F16, false, 64, 64, 55, 55, 0},   {F16, F32, false, 64, 64, 55, 55, 3},
    {B16, F32, false, 128, 160, 32, 32, 0}, {B16, F32, false, 16, 400, 56, 56, 0},
    {B16, B16, false, 128, 513, 7, 7, 0},   {B16, F32, true, 128, 513, 14, 14, 0},
    {B16, F32, true, 128, 513, 7, 7, 1},    {F16, F32, false, 32, 2048, 7, 7, 0},
    {F16, F32, false, 64, 3, 224, 224, 0},  {F16, F32, true, 64, 3, 224, 224, 0},
    {F16, F32, false, 64, 1, 224, 224, 0},  {F32, F32, true, 64, 1, 224, 224, 1},
    {F32, F32, false, 64, 64, 56, 56, 0},   {F32, F32, true, 64, 64, 56, 56, 0},
    {F32, F32, true, 64, 65, 55, 55, 1},    {F32, F32, false, 7, 5, 3, 2, 1},
    {F64, F64, false, 32, 64, 56, 56, 0},   {F64, F64, true, 32, 64, 56, 56, 0},
    {F64, F64, true, 32, 3, 112, 112, 0},   {F64, F64, false, 3, 513, 1, 3, 0},
    {F16, F16, true, 5, 3, 1, 3, 0},        {F16, F32, false, 128, 64, 1, 1, 0},
};
enum {
    CASES = sizeof cases / sizeof cases[0]
};

typedef struct bias_run {
    const cf_gpu *gpu;
    cf_device *device;
} bias_run;

static void check_of(int64_t i, void *argument) {
    const bias_run *const r = argument;
    generator g = generator_create((uint64_t)i);
    check_case(r->gpu, r->device, &cases[i], &g);
}

static void gradients(void **state) {
    NEED_GPU(state);
    bias_run r = {.gpu = gpu};
    case_list list = {.name = "gpu_bias"};
    assert_int_equal(cf_gpu_layers_create(gpu, &r.device), CONV_FFT_SUCCESS);
    cf_build_list *list_of_kernels = NULL;
    assert_int_equal(r.device->ops->build_begin(r.device, &list_of_kernels), CONV_FFT_SUCCESS);
    assert_int_equal(
        r.device->ops->build_end(list_of_kernels,
                                 r.device->ops->operations_list(r.device, CF_OPERATION_BIAS_GRADIENT, list_of_kernels)),
        CONV_FFT_SUCCESS);
    for (int i = 0; i < CASES; i++)
        case_list_add(&list, "%lldx%lldx%lldx%lld layout=%s dtype=%s result=%s shift=%d", (long long)cases[i].samples,
                      (long long)cases[i].channels, (long long)cases[i].height, (long long)cases[i].width,
                      cases[i].last ? "last" : "first", ref_dtype_name(cases[i].dtype), ref_dtype_name(cases[i].result),
                      (int)cases[i].shift);
    case_list_each(&list, check_of, &r);
    cf_gpu_layers_destroy(r.device);
}

int main(void) {
    const struct CMUnitTest tests[] = {WITH_GPU(gradients)};
    gpu_read_filters();
    return gpu_exit_status(cmocka_run_group_tests_name("gradients of the bias on a GPU", tests, NULL, NULL));
}
