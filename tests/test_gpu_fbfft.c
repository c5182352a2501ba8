/* SPDX-License-Identifier: Apache-2.0 */
/* fbfft on a GPU against the definition: every basis, padded and clipped extents, batches, alignments, and more than 2^31
 * elements. */
#include "cases.h"
#include "device/memory.h"
#include "fbfft_check.h"
#include "gpu.h"
#include "tensor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define assert_success(call)                                  \
    do {                                                      \
        if ((call) != CONV_FFT_SUCCESS)                       \
            fail_msg("%s: %s", #call, conv_fft_last_error()); \
    } while (0)

/* ----------------------------------------------------------------------------------------------- many small cases */

typedef struct case_list {
    fft_case *cases;
    int count, capacity;
} case_list;

static fft_case *add(case_list *list, fbfft_desc desc, int64_t batch) {
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 64;
        list->cases = realloc(list->cases, (size_t)list->capacity * sizeof *list->cases);
        assert_non_null(list->cases);
    }
    list->cases[list->count] = (fft_case){.desc = desc, .batch = batch};
    return &list->cases[list->count++];
}

/* Runs all of them, several at once, so that their kernels compile side by side; then reports in order. Returns how many
 * are supported. */
static int check_all(const char *what, const cf_gpu *gpu, conv_fft_context *context, case_list *list) {
    fft_outcome *const outcomes = test_alloc((size_t)list->count * sizeof *outcomes);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < list->count; ++i)
        fft_check_case(gpu, context, &list->cases[i], &outcomes[i]);

    int supported = 0, bad = 0, worst = -1;
    for (int i = 0; i < list->count; ++i) {
        supported += outcomes[i].supported;
        if (!outcomes[i].ok) {
            ++bad;
            print_error("%s\n", outcomes[i].text);
        } else if (outcomes[i].supported && (worst < 0 || outcomes[i].error > outcomes[worst].error)) {
            worst = i;
        }
    }
    print_message("%s: %d of %d cases supported, %d failed; worst: %s\n", what, supported, list->count, bad,
                  worst < 0 ? "none" : outcomes[worst].text);
    assert_int_equal(bad, 0);
    assert_true(supported > 0);
    free(outcomes);
    free(list->cases);
    *list = (case_list){0};
    return supported;
}

static bool power_of_two(int64_t n) { return (n & (n - 1)) == 0; }

static const fbfft_kind kinds[] = {FBFFT_R2C, FBFFT_C2R};

static void lines(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    case_list list = {0};
    for (int k = 0; k < 2; ++k)
        for (int64_t n = 2; n <= 256; n += 2)
            add(&list, fft_desc(1, kinds[k], n, 0), 37)->must = power_of_two(n);
    const int supported = check_all("rank 1, whole lines", gpu, context, &list);
    print_message("rank 1: %d of the 128 even bases up to 256 are supported\n", supported / 2);
    conv_fft_context_destroy(context);
}

static void padded_lines(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    case_list list = {0};
    for (int k = 0; k < 2; ++k)
        for (int64_t n = 2; n <= 256; n += 2) {
            /* One of these by turns; powers of two have all. */
            const int64_t extents[] = {n - 1, n / 2 + 1, 1, (n + 2) / 3, n / 2};
            for (int e = 0; e < 5; ++e)
                if ((power_of_two(n) || n / 2 % 7 == e) && (e == 0 || extents[e] != extents[e - 1]))
                    add(&list, fft_desc(1, kinds[k], n, extents[e]), 2 * n + 3)->must = power_of_two(n);
        }
    check_all("rank 1, padded and clipped", gpu, context, &list);
    conv_fft_context_destroy(context);
}

static void squares(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    static const int64_t bases[] = {8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80, 96, 112, 128};
    static const int64_t batches[] = {1, 3, 33};
    case_list list = {0};
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; ++i)
        for (int k = 0; k < 2; ++k) {
            const int64_t n = bases[i], extents[] = {0, n / 2 + 1, i % 2 ? n - 1 : n / 4};
            for (size_t e = 0; e < 3; ++e)
                add(&list, fft_desc(2, kinds[k], n, extents[e]), batches[(i + e + (size_t)k) % 3])->must =
                    power_of_two(n);
        }
    /* What weights of convolutions look like. */
    for (int k = 0; k < 2; ++k) {
        add(&list, fft_desc(2, kinds[k], 64, 9), 131)->must = true;
        add(&list, fft_desc(2, kinds[k], 16, 5), 131)->must = true;
        add(&list, fft_desc(2, kinds[k], 32, 1), 7)->must = true;
    }
    check_all("rank 2, squares", gpu, context, &list);
    conv_fft_context_destroy(context);
}

static void rectangles(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    case_list list = {0};
    generator g = generator_create(20);
    for (int i = 0; i < 24; ++i) {
        fbfft_desc d = fft_desc(2, kinds[i % 2], 2, 0);
        const bool powers = i >= 16;
        for (int a = 0; a < 2; ++a) {
            /* Half of the others have lengths that are multiples of four, which more pairs of lengths support. */
            d.basis[a] = powers   ? (int64_t)4 << random_int(&g, 0, 5)
                         : i >= 8 ? 4 * random_int(&g, 1, 32)
                                  : 2 * random_int(&g, 1, 32);
            d.extent[a] = random_once_in(&g, 2) ? 0 : random_int(&g, 1, d.basis[a]);
        }
        add(&list, d, random_int(&g, 1, 40))->must = powers;
    }
    check_all("rank 2, rectangles", gpu, context, &list);
    conv_fft_context_destroy(context);
}

/* Pointers one float off, on either side, and batches that no block divides. */
static void batches_and_alignment(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    static const struct {
        int rank, basis, extent;
    } shapes[] = {{1, 8, 0},  {1, 16, 0}, {1, 24, 0}, {1, 64, 0},  {1, 256, 0},  {1, 128, 77},
                  {2, 8, 0},  {2, 16, 5}, {2, 24, 0}, {2, 32, 32}, {2, 64, 0},   {2, 64, 10},
                  {2, 16, 0}, {2, 12, 0}, {2, 4, 0},  {2, 128, 0}, {2, 128, 126}};
    static const int64_t batches[] = {1, 2, 3, 37, 2999};
    case_list list = {0};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i)
        for (int k = 0; k < 2; ++k)
            for (int b = 0; b < 5; ++b)
                for (int shifts = 0; shifts < 4; ++shifts) {
                    if (batches[b] > 100 && (shifts == 2 || (shapes[i].rank == 2 && shapes[i].basis > 64)))
                        continue;
                    fft_case *const c =
                        add(&list, fft_desc(shapes[i].rank, kinds[k], shapes[i].basis, shapes[i].extent), batches[b]);
                    c->in_shift = shifts & 1;
                    c->out_shift = shifts >> 1;
                    c->must = power_of_two(shapes[i].basis);
                }
    check_all("batches and alignment", gpu, context, &list);
    conv_fft_context_destroy(context);
}

static void scale(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    static const double scales[] = {-2.5, 1.0 / 1024, 1e-20, 3e15};
    case_list list = {0};
    for (int k = 0; k < 2; ++k)
        for (int i = 0; i < 4; ++i)
            for (int rank = 1; rank <= 2; ++rank) {
                fft_case *const c = add(&list, fft_desc(rank, kinds[k], 32, i % 2 ? 0 : 13), 11);
                c->desc.scale = scales[i];
                c->must = true;
            }
    check_all("scale", gpu, context, &list);
    conv_fft_context_destroy(context);
}

/* ------------------------------------------------------------------------------------- more than 2^31 elements */

enum {
    BLOCK = 65537, /* planes that repeat; odd, so that a wrapped index finds another plane */
    NEAR = 24
};

/* Fills planes of device memory with the block, over and over. */
static conv_fft_status repeat_block(const cf_gpu *gpu, char *to, const float *block, size_t block_bytes, size_t bytes) {
    CF_FORWARD(cf_gpu_upload(gpu, to, block, block_bytes, NULL));
    for (size_t done = block_bytes; done < bytes; done *= 2)
        CF_FORWARD(cf_gpu_copy(gpu, to + done, to, done < bytes - done ? done : bytes - done, NULL));
    return cf_gpu_synchronize(gpu, NULL);
}

static void compare_near(const cf_gpu *gpu, const fft_shape *s, const float *block, const float *out, int64_t batch,
                         int64_t plane, fft_errors *errors) {
    float values[256];
    assert_true(s->out <= 256);
    for (int64_t p = plane - NEAR; p < plane + NEAR; ++p) {
        if (p < 0 || p >= batch)
            continue;
        assert_success(cf_gpu_download(gpu, values, out + p * s->out, (size_t)s->out * sizeof *values, NULL));
        assert_success(cf_gpu_synchronize(gpu, NULL));
        fft_compare_plane(s, block + p % BLOCK * s->in, values, errors);
    }
}

/* Returns false if the GPU's memory is too small. */
static bool check_huge(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc, int64_t batch) {
    const fft_shape s = fft_shape_of(desc);
    const size_t in_bytes = (size_t)(batch * s.in) * sizeof(float), out_bytes = (size_t)(batch * s.out) * sizeof(float);
    void *in = NULL, *out = NULL;
    const size_t guard = 256;
    if (cf_gpu_allocate(gpu, in_bytes, &in) != CONV_FFT_SUCCESS ||
        cf_gpu_allocate(gpu, out_bytes + guard, &out) != CONV_FFT_SUCCESS) {
        print_message("not enough memory for a batch of %lld: %s\n", (long long)batch, conv_fft_last_error());
        cf_gpu_free(gpu, in);
        return false;
    }
    float *const block = test_alloc((size_t)(BLOCK * s.in) * sizeof *block);
    fbfft_plan *plan = NULL;
    fft_random_planes(&s, 7, BLOCK, block);
    assert_success(repeat_block(gpu, in, block, (size_t)(BLOCK * s.in) * sizeof *block, in_bytes));
    assert_success(cf_gpu_fill(gpu, out, 0xFF, out_bytes + guard, NULL));
    assert_success(fbfft_plan_create(context, desc, &plan));
    assert_success(fbfft_execute(plan, in, out, batch, NULL));
    assert_success(cf_gpu_synchronize(gpu, NULL));

    fft_errors errors = {0};
    generator g = generator_create(31);
    const int64_t edge = (int64_t)1 << 31;
    const int64_t places[] = {0, batch, edge / s.in, edge / s.out, edge / 2 / s.in, edge / 2 / s.out};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i)
        compare_near(gpu, &s, block, out, batch, places[i], &errors);
    for (int i = 0; i < 32; ++i)
        compare_near(gpu, &s, block, out, batch, random_int(&g, 0, batch - 1), &errors);
    const double error = fft_relative_error(&errors);
    print_message("%s %dd, %lld floats in, %lld out: relative error %.2e\n", s.inverse ? "c2r" : "r2c", desc->rank,
                  (long long)(batch * s.in), (long long)(batch * s.out), error);
    assert_true(error <= FFT_TOLERANCE);

    unsigned char after[256];
    assert_success(cf_gpu_download(gpu, after, (char *)out + out_bytes, guard, NULL));
    assert_success(cf_gpu_synchronize(gpu, NULL));
    for (size_t i = 0; i < guard; ++i)
        assert_int_equal(after[i], 0xFF);
    fbfft_plan_destroy(plan);
    free(block);
    cf_gpu_free(gpu, in);
    cf_gpu_free(gpu, out);
    return true;
}

static void huge(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    bool done = true;
    for (int k = 0; k < 2; ++k) {
        const fbfft_desc line = fft_desc(1, kinds[k], 16, 0), plane = fft_desc(2, kinds[k], 8, 0);
        done = check_huge(gpu, context, &line, ((int64_t)1 << 27) + 5) && done;
        done = check_huge(gpu, context, &plane, ((int64_t)1 << 25) + 5) && done;
    }
    conv_fft_context_destroy(context);
    if (!done)
        skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_GPU(lines),      WITH_GPU(padded_lines),          WITH_GPU(squares),
        WITH_GPU(rectangles), WITH_GPU(batches_and_alignment), WITH_GPU(scale),
        WITH_GPU(huge),
    };
    return gpu_exit_status(cmocka_run_group_tests_name("fbfft on a GPU", tests, NULL, NULL));
}
