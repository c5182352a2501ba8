/* SPDX-License-Identifier: Apache-2.0 */
/* fbfft on a GPU against the definition: every basis, kind, type, layout and window, random combinations of them,
 * batches, alignments, and more than 2^31 elements. */
#include "cuda/driver/memory.h"
#include "support/case_list.h"
#include "support/compare.h"
#include "support/fft_cases.h"
#include "support/gpu.h"
#include "support/tensor.h"

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

static void lines(void **state) { check_family(state, fft_add_lines, "gpu_fbfft_lines", false); }
static void long_lines(void **state) { check_family(state, fft_add_long_lines, "gpu_fbfft_long_lines", true); }
static void planes(void **state) { check_family(state, fft_add_planes, "gpu_fbfft_planes", false); }
static void volumes(void **state) { check_family(state, fft_add_volumes, "gpu_fbfft_volumes", true); }
static void layouts(void **state) { check_family(state, fft_add_layouts, "gpu_fbfft_layouts", true); }
static void windows(void **state) { check_family(state, fft_add_windows, "gpu_fbfft_windows", false); }

static void random_cases(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    fft_list list = {0};
    fft_add_random(&list, environment_number("CONV_FFT_TEST_COUNT", 400), 16384);
    fft_list_check(&list, "gpu_fbfft_random", gpu, context);
    conv_fft_context_destroy(context);
}

/* Transforms that are too large for a complete comparison with the definition. */
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
    fft_list_check(&list, "gpu_fbfft_large", gpu, context);
    conv_fft_context_destroy(context);
}

/* Pointers moved by one number on either side, and batches that do not fill the last block. */
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
    fft_list_check(&list, "gpu_fbfft_batches", gpu, context);
    conv_fft_context_destroy(context);
}

/* Blocks that copy bins ahead (shared_memory/prefetch.cuh): several groups of planes for each block, groups with fewer
 * planes, spectra at multiples of 8 and 16 bytes. An odd number of channels has no pairs of planes. */
static void bins_ahead(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    static const int64_t shapes[][4] = {/* basis, extent */
                                        {36, 64, 28, 56},
                                        {64, 64, 64, 64},
                                        {48, 48, 33, 48},
                                        {35, 64, 35, 61}};
    static const int64_t channels[] = {16, 2, 5}, batches[] = {1, 37, 301};
    fft_list list = {0};
    for (int i = 0; i < 4 * 3 * 3; ++i)
        for (int shifts = 0; shifts < 4; ++shifts) {
            fbfft_desc d = fft_desc(2, FBFFT_C2R, 1, 0);
            for (int a = 0; a < 2; ++a) {
                d.basis[a] = shapes[i / 9][a];
                d.extent[a] = shapes[i / 9][2 + a];
            }
            d.order = FBFFT_FREQUENCY_MAJOR;
            d.channels = channels[i % 3];
            fft_case *const c = fft_list_add(&list, d, batches[i / 3 % 3]);
            c->in_shift = shifts & 1;
            c->out_shift = shifts >> 1;
        }
    fft_list_check(&list, "gpu_fbfft_bins_ahead", gpu, context);
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
    fft_list_check(&list, "gpu_fbfft_scale", gpu, context);
    conv_fft_context_destroy(context);
}

/* ------------------------------------------------------------------------------------- more than 2^31 elements */

/* Bytes of a side. All channels of an entry lie together; in frequency-major spectra, once for each bin. */
typedef struct side {
    int64_t runs, row;
} side;

typedef struct huge_case {
    fbfft_desc desc;
    fft_shape shape;
    int64_t batch;
    int64_t block; /* rows that repeat: a number such that a wrapped index finds another row */
    int near,
        samples; /* rows that are compared on either side of places where indices may wrap, and places by chance */
    side in, out;
} huge_case;

static side side_of(const fft_shape *s, bool spectrum, int64_t bytes) {
    const int64_t runs = spectrum && s->frequency_major ? (s->inverse ? fft_in_count(s) : fft_out_count(s)) : 1;
    return (side){runs, bytes / runs};
}

/* Copy row `at` of `rows` in host memory to a batch of one. */
static void take_row(const side *l, const char *from, int64_t rows, int64_t at, char *to) {
    for (int64_t r = 0; r < l->runs; ++r)
        memcpy(to + r * l->row, from + (r * rows + at) * l->row, (size_t)l->row);
}

static conv_fft_status download_row(const cf_gpu *gpu, const side *l, const char *from, int64_t rows, int64_t at,
                                    char *to) {
    for (int64_t r = 0; r < l->runs; ++r)
        CF_FORWARD(cf_gpu_download(gpu, to + r * l->row, from + (r * rows + at) * l->row, (size_t)l->row, NULL));
    return cf_gpu_synchronize(gpu, NULL);
}

/* Fill device memory with the rows of the block, again and again. */
static conv_fft_status repeat_block(const cf_gpu *gpu, const huge_case *c, const char *block, char *to) {
    const size_t block_bytes = (size_t)(c->block * c->in.row), bytes = (size_t)(c->batch * c->in.row);
    for (int64_t r = 0; r < c->in.runs; ++r, to += bytes, block += block_bytes) {
        CF_FORWARD(cf_gpu_upload(gpu, to, block, block_bytes, NULL));
        for (size_t done = block_bytes; done < bytes; done *= 2)
            CF_FORWARD(cf_gpu_copy(gpu, to + done, to, done < bytes - done ? done : bytes - done, NULL));
    }
    return cf_gpu_synchronize(gpu, NULL);
}

static void compare_near(const cf_gpu *gpu, const huge_case *c, const char *block, const char *out, int64_t row,
                         fft_errors *errors) {
    char *const from = test_alloc((size_t)fft_in_bytes(&c->shape, 1)), *const values = test_alloc(
                                                                           (size_t)fft_out_bytes(&c->shape, 1));
    for (int64_t i = row - c->near; i < row + c->near; ++i) {
        if (i < 0 || i >= c->batch)
            continue;
        take_row(&c->in, block, c->block, i % c->block, from);
        assert_success(download_row(gpu, &c->out, out, c->batch, i, values));
        for (int64_t channel = 0; channel < c->shape.channels; ++channel)
            fft_compare_plane(&c->shape, 1, channel, from, values, errors);
    }
    free(from);
    free(values);
}

/* Rows near the ends, near elements 2^31 and 2^30 of either side, and some others. */
static double error_of_samples(const cf_gpu *gpu, const huge_case *c, const char *block, const char *out) {
    fft_errors errors = {0};
    generator g = generator_create(31);
    const int64_t edge = (int64_t)1 << 33;
    const int64_t places[] = {0,
                              c->batch,
                              edge / c->in.row % c->batch,
                              edge / c->out.row % c->batch,
                              edge / 2 / c->in.row % c->batch,
                              edge / 2 / c->out.row % c->batch};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i)
        compare_near(gpu, c, block, out, places[i], &errors);
    for (int i = 0; i < c->samples; ++i)
        compare_near(gpu, c, block, out, random_int(&g, 0, c->batch - 1), &errors);
    return fft_relative_error(&errors);
}

typedef struct huge_memory {
    void *in, *out, *workspace;
} huge_memory;

enum {
    GUARD = 256 /* bytes behind the output */
};

static void run_huge(const cf_gpu *gpu, const huge_case *c, const fbfft_plan *plan, const huge_memory *m,
                     size_t workspace) {
    const size_t out_bytes = (size_t)fft_out_bytes(&c->shape, c->batch);
    char *const block = test_alloc((size_t)fft_in_bytes(&c->shape, c->block));
    fft_random_input(&c->shape, 7, c->block, block);
    assert_success(repeat_block(gpu, c, block, m->in));
    assert_success(cf_gpu_fill(gpu, m->out, FFT_POISON, out_bytes + GUARD, NULL));
    assert_success(fbfft_execute(plan, m->in, m->out, c->batch, m->workspace, workspace, NULL));
    assert_success(cf_gpu_synchronize(gpu, NULL));
    const double error = error_of_samples(gpu, c, block, m->out);
    char text[FFT_TEXT_BYTES];
    fft_describe(&c->desc, text, sizeof text);
    print_message("%s: %lld bytes in, %zu out, %zu of workspace: relative error %.2e\n", text,
                  (long long)fft_in_bytes(&c->shape, c->batch), out_bytes, workspace, error);
    assert_true(error <= fft_tolerance(&c->shape));

    unsigned char after[GUARD];
    assert_success(cf_gpu_download(gpu, after, (char *)m->out + out_bytes, GUARD, NULL));
    assert_success(cf_gpu_synchronize(gpu, NULL));
    for (size_t i = 0; i < GUARD; ++i)
        assert_int_equal(after[i], FFT_POISON);
    free(block);
}

/* Returns false if the GPU's memory is too small. */
static bool check_huge(const cf_gpu *gpu, conv_fft_context *context, huge_case c, bool needs_workspace) {
    c.shape = fft_shape_of(&c.desc);
    c.in = side_of(&c.shape, c.shape.inverse, fft_in_bytes(&c.shape, 1));
    c.out = side_of(&c.shape, !c.shape.inverse, fft_out_bytes(&c.shape, 1));
    const size_t in_bytes = (size_t)fft_in_bytes(&c.shape, c.batch),
                 out_bytes = (size_t)fft_out_bytes(&c.shape, c.batch);
    huge_memory m = {0};
    fbfft_plan *plan = NULL;
    size_t workspace = 0;
    assert_success(fbfft_plan_create(context, &c.desc, &plan));
    assert_success(fbfft_plan_workspace(plan, c.batch, &workspace));
    assert_int_equal(workspace > 0, needs_workspace);
    const bool enough = cf_gpu_allocate(gpu, in_bytes, &m.in) == CONV_FFT_SUCCESS &&
                        cf_gpu_allocate(gpu, out_bytes + GUARD, &m.out) == CONV_FFT_SUCCESS &&
                        (workspace == 0 || cf_gpu_allocate(gpu, workspace, &m.workspace) == CONV_FFT_SUCCESS);
    if (enough)
        run_huge(gpu, &c, plan, &m, workspace);
    else
        print_message("not enough memory for a batch of %lld: %s\n", (long long)c.batch, conv_fft_last_error());
    fbfft_plan_destroy(plan);
    cf_gpu_free(gpu, m.in);
    cf_gpu_free(gpu, m.out);
    cf_gpu_free(gpu, m.workspace);
    return enough;
}

typedef struct huge_run {
    const cf_gpu *gpu;
    conv_fft_context *context;
    huge_case cases[10];
    bool left_out; /* some, for lack of memory */
} huge_run;

/* Planes of 256x256 take several kernels, and these a workspace. */
static void check_huge_case(int64_t i, void *argument) {
    huge_run *const run = argument;
    const huge_case *const c = &run->cases[i];
    if (!check_huge(run->gpu, run->context, *c, c->desc.basis[0] == 256))
        run->left_out = true;
}

/* More than 2^31 numbers on either side, 17 to 20 GB in all: the warp kernels, the shared-memory kernel (natural order
 * and frequency-major), and several kernels that process a part of the batch at a time. */
static void huge(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    const int64_t numbers = (int64_t)1 << 31;
    case_list names = {.name = "gpu_fbfft_huge"};
    huge_run run = {.gpu = gpu, .context = context};
    int count = 0;
    for (int k = 0; k < 2; ++k) {
        fbfft_desc major = fft_desc(2, kinds[k], 8, 0);
        major.channels = 16;
        major.order = FBFFT_FREQUENCY_MAJOR;
        const huge_case cases[] = {
            {.desc = fft_desc(1, kinds[k], 16, 0),
             .batch = numbers / 16 + 5,
             .block = 65537,
             .near = 24,
             .samples = 32},
            {.desc = fft_desc(2, kinds[k], 8, 0), .batch = numbers / 64 + 5, .block = 65537, .near = 24, .samples = 32},
            {.desc = fft_desc(2, kinds[k], 9, 0), .batch = numbers / 81 + 5, .block = 65537, .near = 24, .samples = 32},
            {.desc = major, .batch = numbers / 1024 + 5, .block = 4099, .near = 4, .samples = 32},
            {.desc = fft_desc(2, kinds[k], 256, 0), .batch = numbers / 65536 + 5, .block = 37, .near = 1, .samples = 8},
        };
        for (int i = 0; i < 5; ++i) {
            char text[FFT_TEXT_BYTES];
            fft_describe(&cases[i].desc, text, sizeof text);
            case_list_add(&names, "%s batch %lld", text, (long long)cases[i].batch);
            run.cases[count++] = cases[i];
        }
    }
    case_list_each(&names, check_huge_case, &run);
    conv_fft_context_destroy(context);
    if (run.left_out)
        skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_GPU(lines),        WITH_GPU(long_lines), WITH_GPU(planes),
        WITH_GPU(volumes),      WITH_GPU(layouts),    WITH_GPU(windows),
        WITH_GPU(random_cases), WITH_GPU(large),      WITH_GPU(batches_and_alignment),
        WITH_GPU(bins_ahead),   WITH_GPU(scale),      WITH_GPU(huge),
    };
    gpu_read_filters();
    return gpu_exit_status(cmocka_run_group_tests_name("fbfft on a GPU", tests, NULL, NULL));
}
