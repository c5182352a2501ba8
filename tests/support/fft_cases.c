/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fft_cases.h"

#include "support/case_list.h"
#include "support/compare.h"
#include "support/selection.h"
#include "support/tensor.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ------------------------------------------------------------------------------------------------------- lists */

static bool is_power_of_two(int64_t n) { return (n & (n - 1)) == 0; }

/* FP64 rows of this length are too large for the shared memory of some GPUs. */
static bool may_be_refused(const fbfft_desc *d) {
    return d->rank == 1 && d->dtype == CONV_FFT_FP64 && d->basis[0] > 8192;
}

fft_case *fft_list_add(fft_list *list, fbfft_desc desc, int64_t batch) {
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 64;
        list->cases = realloc(list->cases, (size_t)list->capacity * sizeof *list->cases);
        assert_non_null(list->cases);
    }
    list->cases[list->count] =
        (fft_case){.desc = desc, .batch = batch, .must = !may_be_refused(&desc), .seed = test_seed()};
    return &list->cases[list->count++];
}

/* One run of a list. */
typedef struct checking {
    const fft_list *list;
    const cf_gpu *gpu;
    conv_fft_context *context;
    fft_outcome *outcomes; /* of cases that were not taken: all zero */
} checking;

static void check_of(int64_t i, void *argument) {
    const checking *const run = argument;
    fft_case c = run->list->cases[i];
    c.must = c.must || !run->gpu;
    fft_check_case(run->gpu, run->context, &c, &run->outcomes[i]);
    if (!run->outcomes[i].ok) {
        case_begin(run->outcomes[i].text, run->outcomes[i].variables);
        case_fail("a transform");
    }
}

/* Check the selected cases on a GPU, all cases on the CPU. Returns how many. */
static int check_cases(checking *run, const char *name) {
    case_list names = {.name = name};
    char text[FFT_TEXT_BYTES];
    const fft_list *const list = run->list;
    if (!run->gpu) {
#pragma omp parallel for schedule(dynamic) if (!list->one_by_one)
        for (int i = 0; i < list->count; ++i)
            check_of(i, run);
        return list->count;
    }
    for (int i = 0; i < list->count; ++i) {
        const fft_case *const c = &list->cases[i];
        fft_describe(&c->desc, text, sizeof text);
        case_list_add(&names, "%s batch %lld shifts %d, %d", text, (long long)c->batch, c->in_shift, c->out_shift);
    }
    return case_list_side_by_side(&names, check_of, run);
}

int fft_list_check(fft_list *list, const char *what, const cf_gpu *gpu, conv_fft_context *context) {
    fft_outcome *const outcomes = test_alloc((size_t)list->count * sizeof *outcomes);
    memset(outcomes, 0, (size_t)list->count * sizeof *outcomes);
    checking run = {list, gpu, context, outcomes};
    const int count = check_cases(&run, what);

    int supported = 0, bad = 0, worst = -1;
    for (int i = 0; i < list->count; ++i) {
        const fft_outcome *const o = &outcomes[i];
        if (!*o->text)
            continue;
        supported += o->supported;
        if (!o->ok) {
            ++bad;
        } else if (o->supported &&
                   (worst < 0 || o->error * outcomes[worst].tolerance > outcomes[worst].error * o->tolerance)) {
            worst = i;
        }
    }
    print_message("%s: %d of %d cases supported, %d failed; worst: %s\n", what, supported, count, bad,
                  worst < 0 ? "none" : outcomes[worst].text);
    free(outcomes);
    free(list->cases);
    *list = (fft_list){0};
    assert_int_equal(bad, 0);
    assert_true(supported > 0 || count == 0);
    return supported;
}

/* ---------------------------------------------------------------------------------------------------- families */

bool fft_is_basis(int64_t n) {
    for (int64_t p = 2; p <= 7; ++p)
        while (n % p == 0)
            n /= p;
    return n == 1;
}

static fft_case *add(fft_list *list, conv_fft_dtype dtype, fbfft_desc d, int64_t batch) {
    d.dtype = dtype;
    return fft_list_add(list, d, batch);
}

void fft_add_lines(fft_list *list, fbfft_kind kind, conv_fft_dtype dtype) {
    add(list, dtype, fft_desc(1, kind, 1, 0), 5);
    for (int64_t n = 2; n <= 256; ++n) {
        if (!fft_is_basis(n))
            continue;
        const int64_t extents[] = {n - 1, n / 2 + 1, 1, (n + 2) / 3, n / 2};
        add(list, dtype, fft_desc(1, kind, n, 0), 37);
        for (int e = 0; e < 5; ++e) /* one of these by turns; powers of two have all */
            if (is_power_of_two(n) || n % 5 == e)
                add(list, dtype, fft_desc(1, kind, n, extents[e]), n % 2 ? 3 : n + 3);
    }
}

void fft_add_long_lines(fft_list *list, fbfft_kind kind, conv_fft_dtype dtype) {
    static const int64_t bases[] = {270, 343, 512, 625, 1024, 2187, 4096, 7200, 8192, 15625, 16384};
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; ++i)
        add(list, dtype, fft_desc(1, kind, bases[i], i % 2 ? bases[i] / 2 + 1 : 0), i % 3 + 1);
}

void fft_add_planes(fft_list *list, fbfft_kind kind, conv_fft_dtype dtype) {
    static const int64_t squares[] = {1,  2,  3,  5,  7,  8,  9,  12, 15, 16, 20, 21, 24,
                                      28, 32, 35, 36, 40, 45, 48, 56, 63, 64, 72, 80, 96};
    static const int64_t rectangles[][2] = {{1, 8},  {8, 1},   {2, 64},  {64, 2},   {3, 50},
                                            {98, 5}, {7, 256}, {256, 7}, {128, 16}, {30, 42}};
    for (size_t i = 0; i < sizeof squares / sizeof squares[0]; ++i) {
        const int64_t n = squares[i], extents[] = {0, n / 2 + 1, i % 2 || n < 4 ? (n + 1) / 2 : n / 4};
        for (size_t e = 0; e < 3; ++e)
            add(list, dtype, fft_desc(2, kind, n, extents[e]), (int64_t)((i + e) % 3 * 8 + 1));
    }
    for (size_t i = 0; i < sizeof rectangles / sizeof rectangles[0]; ++i) {
        fbfft_desc d = fft_desc(2, kind, 1, 0);
        for (int a = 0; a < 2; ++a) {
            d.basis[a] = rectangles[i][a];
            d.extent[a] = (i + (size_t)a) % 3 ? (d.basis[a] + 2) / 3 : 0;
        }
        add(list, dtype, d, 5);
    }
    /* Windows as the weights of convolutions have them. */
    add(list, dtype, fft_desc(2, kind, 64, 9), 131);
    add(list, dtype, fft_desc(2, kind, 16, 5), 131);
    add(list, dtype, fft_desc(2, kind, 32, 1), 7);
}

void fft_add_volumes(fft_list *list, fbfft_kind kind, conv_fft_dtype dtype) {
    static const int64_t bases[][3] = {{1, 1, 1}, {2, 2, 2},  {4, 4, 4},   {8, 8, 8},  {3, 5, 7},   {1, 6, 4},
                                       {6, 1, 9}, {12, 4, 1}, {16, 10, 9}, {2, 3, 64}, {24, 16, 8}, {16, 16, 16}};
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; ++i)
        for (int part = 0; part < 2; ++part) {
            fbfft_desc d = fft_desc(3, kind, 1, 0);
            for (int a = 0; a < 3; ++a) {
                d.basis[a] = bases[i][a];
                d.extent[a] = part ? (d.basis[a] + a) / 2 + 1 : 0;
                d.extent[a] = d.extent[a] > d.basis[a] ? 0 : d.extent[a];
            }
            add(list, dtype, d, part ? 3 : 18);
        }
}

void fft_add_layouts(fft_list *list, fbfft_kind kind, conv_fft_dtype dtype) {
    static const int64_t channels[] = {1, 3, 16, 33};
    for (int i = 0; i < 3 * 2 * 3 * 4; ++i) {
        const int rank = i % 3 + 1, order = i / 6 % 3;
        fbfft_desc d = fft_desc(rank, kind, rank == 1 ? 30 : rank == 2 ? 16 : 6, 0);
        d.extent[0] = 5;
        d.basis[rank - 1] = rank == 1 ? 32 : 8;
        d.layout = (conv_fft_layout)(i / 3 % 2);
        d.order = (fbfft_order)order;
        d.channels = channels[i / 18];
        d.scale = order ? 0.25 : 1;
        add(list, dtype, d, 4);
    }
}

void fft_add_windows(fft_list *list, fbfft_kind kind, conv_fft_dtype dtype) {
    /* {size, offset, step} of windows of 7 points; the last three cannot be reflected */
    static const int64_t windows[][3] = {{7, 0, 1},  {12, 3, 1},  {12, -3, 1}, {12, 7, 1}, {9, -3, 2},
                                         {30, 2, 3}, {5, -4, 2},  {4, -2, 1},  {1, 3, 1},  {3, -20, 1},
                                         {3, 19, 2}, {2, -11, 4}, {7, -7, 1}};
    const bool written = kind == FBFFT_C2R || kind == FBFFT_C2C_INVERSE;
    for (int mode = CONV_FFT_PAD_ZEROS; mode <= (written ? CONV_FFT_PAD_ZEROS : CONV_FFT_PAD_REPLICATE); ++mode)
        for (size_t i = 0; i < sizeof windows / sizeof windows[0]; ++i)
            for (int rank = 1; rank <= 3; ++rank) {
                if (mode == CONV_FFT_PAD_REFLECT && i >= 7)
                    continue;
                fbfft_desc d = fft_desc(rank, kind, 10, 7);
                d.padding = (conv_fft_padding)mode;
                for (int a = 0; a < rank; ++a) {
                    const int64_t *const w = windows[a == (int)i % rank ? i : i / 2];
                    d.size[a] = w[0];
                    d.offset[a] = w[1];
                    d.step[a] = w[2];
                }
                d.channels = i % 2 + 1;
                d.layout = (conv_fft_layout)(i % 2);
                add(list, dtype, d, 2);
            }
}

/* ------------------------------------------------------------------------------------------------------ random */

static int64_t random_basis(generator *g, int rank) {
    static const int64_t often[] = {256, 64, 16}, seldom[] = {16384, 256, 48};
    const int64_t most = random_once_in(g, rank == 1 ? 12 : 6) ? seldom[rank - 1] : often[rank - 1];
    int64_t n = random_int(g, 1, most);
    while (!fft_is_basis(n))
        --n;
    return n;
}

static void random_window(generator *g, fbfft_desc *d, int a) {
    const int64_t points = d->extent[a] ? d->extent[a] : d->basis[a];
    d->step[a] = random_once_in(g, 3) ? random_int(g, 1, 4) : 1;
    const int64_t reach = (points - 1) * d->step[a];
    /* Reflected windows must be within reach of the signal. */
    const int64_t least = d->padding == CONV_FFT_PAD_REFLECT ? (reach + 2) / 3 + 1 : 1;
    d->size[a] = random_int(g, least, least + reach + 3);
    int64_t low = -reach - 2, high = d->size[a] + 1;
    if (d->padding == CONV_FFT_PAD_REFLECT) {
        low = 1 - d->size[a];
        high = 2 * (d->size[a] - 1) - reach;
    } else if (!random_once_in(g, 8)) { /* mostly, some of it is inside */
        low = -reach / 2;
        high = d->size[a] / 2;
    }
    d->offset[a] = random_int(g, low, high);
}

static void random_places(generator *g, fft_case *c) {
    fbfft_desc *const d = &c->desc;
    int64_t extent[TENSOR_MAX_DIMS] = {c->batch, d->channels};
    const bool written = d->kind == FBFFT_C2R || d->kind == FBFFT_C2C_INVERSE;
    for (int a = 0; a < d->rank; ++a) {
        const int64_t points = d->extent[a] ? d->extent[a] : d->basis[a];
        extent[2 + a] = d->size[a] ? d->size[a] : points;
    }
    random_strides(g, 2 + d->rank, extent, d->stride);
    if (!written && random_once_in(g, 4))
        d->stride[random_int(g, 0, 1)] = 0; /* the same for all entries, or channels */
}

/* Rows of 2^8 to 2^17 points and planes of 2^16 or 2^17 by arithmetic SPLIT, or twice as many reals. The batch, the
 * channels and the scale are those of a case. */
static void random_split(generator *g, int64_t max_points, fft_case *c) {
    int most = 17;
    while ((int64_t)1 << most > max_points)
        --most;
    if (most < 8)
        return;
    const int log = random_int(g, 8, most), first = log > 15 && random_once_in(g, 2) ? random_int(g, 8, log - 8) : 0;
    const fbfft_kind kind = (fbfft_kind)random_int(g, FBFFT_R2C, FBFFT_C2C_INVERSE);
    fbfft_desc d = fft_desc(first > 0 ? 2 : 1, kind, (int64_t)1 << (first > 0 ? first : log), 0);
    if (first > 0)
        d.basis[1] = (int64_t)1 << (log - first);
    d.basis[first > 0] <<= kind == FBFFT_R2C || kind == FBFFT_C2R;
    d.arithmetic = FBFFT_ARITHMETIC_SPLIT;
    d.channels = log > 14 ? 1 : c->desc.channels < 4 ? c->desc.channels : 4;
    d.scale = c->desc.scale;
    *c = (fft_case){.desc = d, .batch = c->batch < 8 ? c->batch : 8};
}

fft_case fft_random_case(uint64_t seed, int64_t max_points) {
    static const conv_fft_dtype dtypes[] = {CONV_FFT_FP32, CONV_FFT_FP32, CONV_FFT_FP16, CONV_FFT_BF16, CONV_FFT_FP64};
    static const double scales[] = {1, 1, -2.5, 1.0 / 64};
    generator g = generator_create(seed);
    fft_case c = {0};
    fbfft_desc *const d = &c.desc;
    int64_t points;
    do {
        *d = fft_desc((int)random_int(&g, 1, 3), (fbfft_kind)random_int(&g, 0, 3), 1, 0);
        points = 1;
        for (int a = 0; a < d->rank; ++a)
            points *= d->basis[a] = random_basis(&g, d->rank);
    } while (points > max_points);
    const bool written = d->kind == FBFFT_C2R || d->kind == FBFFT_C2C_INVERSE;
    d->dtype = dtypes[random_int(&g, 0, 4)];
    d->layout = (conv_fft_layout)random_int(&g, 0, 1);
    d->order = (fbfft_order)random_int(&g, 0, 2);
    d->padding = written ? CONV_FFT_PAD_ZEROS : (conv_fft_padding)random_int(&g, 0, 3);
    d->scale = scales[random_int(&g, 0, 3)];
    for (int a = 0; a < d->rank; ++a) {
        d->extent[a] = random_once_in(&g, 3) ? 0 : random_int(&g, 1, d->basis[a]);
        if (random_once_in(&g, 2))
            random_window(&g, d, a);
    }
    const int64_t most = max_points * 4 / points; /* planes */
    d->channels = random_once_in(&g, 2) ? 1 : random_int(&g, 1, most > 40 ? 40 : most);
    c.batch = random_int(&g, 1, most / d->channels > 40 ? 40 : most / d->channels);
    if (random_once_in(&g, 3))
        random_places(&g, &c);
    c.in_shift = (int)random_int(&g, 0, 3);
    c.out_shift = (int)random_int(&g, 0, 3);
    if (d->dtype != CONV_FFT_FP64 && random_once_in(&g, 4))
        d->arithmetic = FBFFT_ARITHMETIC_FP32;
    if (random_once_in(&g, 16))
        random_split(&g, max_points, &c);
    return c;
}

void fft_add_random(fft_list *list, uint64_t count, int64_t max_points) {
    const uint64_t seed = test_seed();
    for (uint64_t i = 0; i < count; ++i) {
        const fft_case c = fft_random_case(seed + i, max_points);
        fft_case *const added = fft_list_add(list, c.desc, c.batch);
        added->random = true;
        added->seed = seed + i;
        added->in_shift = c.in_shift;
        added->out_shift = c.out_shift;
    }
}
