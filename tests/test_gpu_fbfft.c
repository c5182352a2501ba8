/* SPDX-License-Identifier: Apache-2.0 */
/* fbfft on a GPU against the definition: every basis, kind, type, layout and window, random combinations of them, batches,
 * alignments, and more than 2^31 elements. */
#include "device/memory.h"
#include "fbfft_cases.h"
#include "gpu.h"
#include "harness.h"
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

static const fbfft_kind kinds[] = {FBFFT_R2C, FBFFT_C2R, FBFFT_C2C_FORWARD, FBFFT_C2C_INVERSE};

/* ----------------------------------------------------------------------------------------------- many small cases */

typedef void (*family)(fft_list *, fbfft_kind, conv_fft_dtype);

static void check_family(void **state, family add, const char *what, bool all_types) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_list list = {0};
    for (int k = 0; k < 4; ++k)
        for (int dtype = CONV_FFT_FP32; dtype <= CONV_FFT_FP64; ++dtype)
            if (all_types || dtype == CONV_FFT_FP32)
                add(&list, kinds[k], (conv_fft_dtype)dtype);
    fft_list_check(&list, what, gpu, context);
    conv_fft_context_destroy(context);
}

static void lines(void **state) { check_family(state, fft_add_lines, "lines", false); }
static void long_lines(void **state) { check_family(state, fft_add_long_lines, "long lines", true); }
static void planes(void **state) { check_family(state, fft_add_planes, "planes", false); }
static void volumes(void **state) { check_family(state, fft_add_volumes, "volumes", true); }
static void layouts(void **state) { check_family(state, fft_add_layouts, "layouts", true); }
static void windows(void **state) { check_family(state, fft_add_windows, "windows", false); }

static void random_cases(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_list list = {0};
    fft_add_random(&list, environment_number("CONV_FFT_TEST_COUNT", 400), 16384);
    fft_list_check(&list, "random", gpu, context);
    conv_fft_context_destroy(context);
}

/* Larger than the definition is quick for. */
static void large(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    static const int64_t bases[][2] = {{2, 128}, {2, 160}, {2, 256}, {3, 32}, {3, 48}, {3, 64}};
    fft_list list = {0};
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; ++i)
        for (int k = 0; k < 4; ++k) {
            fbfft_desc d = fft_desc((int)bases[i][0], kinds[k], bases[i][1], k % 2 ? 0 : bases[i][1] / 2);
            d.order = (fbfft_order)(i % 3);
            fft_list_add(&list, d, 3);
        }
    fft_list_check(&list, "large", gpu, context);
    conv_fft_context_destroy(context);
}

/* Pointers one number off, on either side, and batches that no block divides. */
static void batches_and_alignment(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    static const struct {
        int rank, basis, extent;
    } shapes[] = {{1, 8, 0},  {1, 16, 0}, {1, 24, 0}, {1, 64, 0},  {1, 256, 0},  {1, 128, 77},
                  {2, 8, 0},  {2, 16, 5}, {2, 24, 0}, {2, 32, 32}, {2, 64, 0},   {2, 64, 10},
                  {2, 16, 0}, {2, 12, 0}, {2, 4, 0},  {2, 128, 0}, {2, 128, 126}};
    static const int64_t batches[] = {1, 2, 3, 37, 2999};
    fft_list list = {0};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i)
        for (int k = 0; k < 4; ++k)
            for (int b = 0; b < 5; ++b)
                for (int shifts = 0; shifts < 4; ++shifts) {
                    if (batches[b] > 100 && (shifts == 2 || (shapes[i].rank == 2 && shapes[i].basis > 64)))
                        continue;
                    fft_case *const c = fft_list_add(
                        &list, fft_desc(shapes[i].rank, kinds[k], shapes[i].basis, shapes[i].extent), batches[b]);
                    c->in_shift = shifts & 1;
                    c->out_shift = shifts >> 1;
                }
    fft_list_check(&list, "batches and alignment", gpu, context);
    conv_fft_context_destroy(context);
}

static void scale(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    static const double scales[] = {-2.5, 1.0 / 1024, 1e-20, 3e15};
    fft_list list = {0};
    for (int k = 0; k < 4; ++k)
        for (int i = 0; i < 4; ++i)
            for (int rank = 1; rank <= 2; ++rank) {
                fbfft_desc d = fft_desc(rank, kinds[k], 32, i % 2 ? 0 : 13);
                d.scale = scales[i];
                fft_list_add(&list, d, 11);
            }
    fft_list_check(&list, "scale", gpu, context);
    conv_fft_context_destroy(context);
}

/* ------------------------------------------------------------------------------------- more than 2^31 elements */

enum {
    BLOCK = 65537, /* planes that repeat; odd, so that a wrapped index finds another plane */
    NEAR = 24
};

/* Fills planes of device memory with the block, over and over. */
static conv_fft_status repeat_block(const cf_gpu *gpu, char *to, const char *block, size_t block_bytes, size_t bytes) {
    CF_FORWARD(cf_gpu_upload(gpu, to, block, block_bytes, NULL));
    for (size_t done = block_bytes; done < bytes; done *= 2)
        CF_FORWARD(cf_gpu_copy(gpu, to + done, to, done < bytes - done ? done : bytes - done, NULL));
    return cf_gpu_synchronize(gpu, NULL);
}

static void compare_near(const cf_gpu *gpu, const fft_shape *s, const char *block, const char *out, int64_t batch,
                         int64_t plane, fft_errors *errors) {
    const int64_t in_bytes = fft_in_bytes(s, 1), out_bytes = fft_out_bytes(s, 1);
    char values[1024];
    assert_true(out_bytes <= (int64_t)sizeof values);
    for (int64_t p = plane - NEAR; p < plane + NEAR; ++p) {
        if (p < 0 || p >= batch)
            continue;
        assert_success(cf_gpu_download(gpu, values, out + p * out_bytes, (size_t)out_bytes, NULL));
        assert_success(cf_gpu_synchronize(gpu, NULL));
        fft_compare_plane(s, 1, 0, block + p % BLOCK * in_bytes, values, errors);
    }
}

/* Planes near the ends, near element 2^31 and 2^30 of either side, and some others. */
static double error_of_samples(const cf_gpu *gpu, const fft_shape *s, const char *block, const char *out,
                               int64_t batch) {
    fft_errors errors = {0};
    generator g = generator_create(31);
    const int64_t edge = (int64_t)1 << 33, in = fft_in_bytes(s, 1), made = fft_out_bytes(s, 1);
    const int64_t places[] = {0, batch, edge / in, edge / made, edge / 2 / in, edge / 2 / made};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i)
        compare_near(gpu, s, block, out, batch, places[i], &errors);
    for (int i = 0; i < 32; ++i)
        compare_near(gpu, s, block, out, batch, random_int(&g, 0, batch - 1), &errors);
    return fft_relative_error(&errors);
}

/* Returns false if the GPU's memory is too small. */
static bool check_huge(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc, int64_t batch) {
    const fft_shape s = fft_shape_of(desc);
    const size_t in_bytes = (size_t)fft_in_bytes(&s, batch), out_bytes = (size_t)fft_out_bytes(&s, batch);
    const size_t block_bytes = (size_t)fft_in_bytes(&s, BLOCK), guard = 256;
    void *in = NULL, *out = NULL;
    if (cf_gpu_allocate(gpu, in_bytes, &in) != CONV_FFT_SUCCESS ||
        cf_gpu_allocate(gpu, out_bytes + guard, &out) != CONV_FFT_SUCCESS) {
        print_message("not enough memory for a batch of %lld: %s\n", (long long)batch, conv_fft_last_error());
        cf_gpu_free(gpu, in);
        return false;
    }
    char *const block = test_alloc(block_bytes);
    fbfft_plan *plan = NULL;
    size_t workspace = 0;
    fft_random_input(&s, 7, BLOCK, block);
    assert_success(repeat_block(gpu, in, block, block_bytes, in_bytes));
    assert_success(cf_gpu_fill(gpu, out, FFT_POISON, out_bytes + guard, NULL));
    assert_success(fbfft_plan_create(context, desc, &plan));
    assert_success(fbfft_plan_workspace(plan, batch, &workspace));
    assert_int_equal(workspace, 0);
    assert_success(fbfft_execute(plan, in, out, batch, NULL, 0, NULL));
    assert_success(cf_gpu_synchronize(gpu, NULL));
    const double error = error_of_samples(gpu, &s, block, out, batch);
    print_message("kind %d, rank %d, %zu bytes in, %zu out: relative error %.2e\n", (int)desc->kind, desc->rank,
                  in_bytes, out_bytes, error);
    assert_true(error <= fft_tolerance(&s));

    unsigned char after[256];
    assert_success(cf_gpu_download(gpu, after, (char *)out + out_bytes, guard, NULL));
    assert_success(cf_gpu_synchronize(gpu, NULL));
    for (size_t i = 0; i < guard; ++i)
        assert_int_equal(after[i], FFT_POISON);
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
        WITH_GPU(lines),        WITH_GPU(long_lines), WITH_GPU(planes),
        WITH_GPU(volumes),      WITH_GPU(layouts),    WITH_GPU(windows),
        WITH_GPU(random_cases), WITH_GPU(large),      WITH_GPU(batches_and_alignment),
        WITH_GPU(scale),        WITH_GPU(huge),
    };
    return gpu_exit_status(cmocka_run_group_tests_name("fbfft on a GPU", tests, NULL, NULL));
}
