/* SPDX-License-Identifier: Apache-2.0 */
#include "support/c2c_fp16_cases.h"

#include "reference/dtype.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/error_text.h"

fbfft_desc half_desc(int rank, fbfft_kind kind, int log0, int log1) {
    fbfft_desc d = fft_desc(rank, kind, (int64_t)1 << log0, 0);
    if (rank > 1)
        d.basis[1] = (int64_t)1 << log1;
    d.dtype = d.spectrum = CONV_FFT_FP16;
    d.scale = ldexp(1, -(log0 + (rank > 1 ? log1 : 0)) / 2);
    return d;
}

/* Odd batches, so that no block is full, and a batch of one. */
void half_add_lines(fft_list *list, int first, int last) {
    static const int64_t batches[] = {1, 3, 37, 1501};
    for (int log = first; log <= last; ++log)
        for (int b = 0; b < 4; ++b)
            for (int kind = FBFFT_C2C_FORWARD; kind <= FBFFT_C2C_INVERSE; ++kind)
                if (batches[b] << log <= 1 << 20 || b == 0 || (b == 1 && log <= 20))
                    fft_list_add(list, half_desc(1, (fbfft_kind)kind, log, 0), batches[b])->must = true;
}

void half_add_planes(fft_list *list, int most) {
    static const int sizes[][2] = {{5, 5}, {5, 11}, {6, 6}, {7, 8}, {8, 8}, {9, 9}, {10, 5}, {11, 6}, {9, 10}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i)
        for (int kind = FBFFT_C2C_FORWARD; kind <= FBFFT_C2C_INVERSE; ++kind) {
            if (sizes[i][0] + sizes[i][1] > most)
                continue;
            fbfft_desc d = half_desc(2, (fbfft_kind)kind, sizes[i][0], sizes[i][1]);
            d.channels = 1 + (int64_t)i % 3;
            fft_list_add(list, d, sizes[i][0] < 9 ? 5 : 2)->must = true;
        }
}

static double out_number(const fft_bench *b, int64_t plane, int64_t i, int part) {
    const int64_t at = fft_out_at(&b->shape, b->run.batch, plane, i);
    return ref_load(CONV_FFT_FP16, (const char *)b->run.out + at + 2 * part);
}

void half_check_range(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc) {
    const double most = 60000;
    for (int scaled = 1; scaled >= 0; --scaled) {
        fbfft_desc d = *desc;
        d.scale = scaled ? 1 / (double)(d.basis[0] * d.basis[1]) : 1;
        fft_bench b = fft_bench_create(gpu, context, &d, 1);
        for (int64_t i = 0; i < b.run.in_bytes; i += 2)
            ref_store(CONV_FFT_FP16, (char *)b.in + i, most);
        fft_bench_run(&b);
        for (int part = 0; part < 2; ++part) {
            if (!scaled) {
                assert_false(
                    isfinite(out_number(&b, 0, 0, part))); /* infinity, or the NaN that later steps make of it */
                continue;
            }
            assert_true(fabs(out_number(&b, 0, 0, part) - most) <= 1e-3 * most);
            for (int64_t i = 1; i < fft_out_count(&b.shape); ++i)
                assert_true(fabs(out_number(&b, 0, i, part)) <= 1e-3 * most);
        }
        fft_bench_destroy(&b);
    }
}

void half_check_alignment(conv_fft_context *context, const fbfft_desc *desc, const char *why) {
    _Alignas(16) static char in[4096], out[4096];
    fbfft_plan *plan = NULL;
    size_t bytes = 1;
    if (fbfft_plan_create(context, desc, &plan) != CONV_FFT_SUCCESS)
        fail_msg("no plan: %s", conv_fft_last_error());
    assert_int_equal(fbfft_plan_workspace(plan, 0, &bytes), CONV_FFT_SUCCESS);
    assert_int_equal(bytes, 0);
    EXPECT_INVALID(fbfft_execute(plan, in + 2, out, 1, NULL, 0, NULL), "in is", "multiple of");
    EXPECT_INVALID(fbfft_execute(plan, in + 8, out, 1, NULL, 0, NULL), "in is", "multiple of 16 bytes", why);
    EXPECT_INVALID(fbfft_execute(plan, in, out + 8, 1, NULL, 0, NULL), "out is", "multiple of 16 bytes", why);
    EXPECT_INVALID(fbfft_execute(plan, in, out, -2, NULL, 0, NULL), "batch is -2");
    fbfft_plan_destroy(plan);
}

fbfft_desc split_desc_of(fbfft_kind kind, const int log[3]) {
    const int rank = log[0] > 0 ? 3 : log[1] > 0 ? 2 : 1;
    fbfft_desc d = fft_desc(rank, kind, 1, 0);
    for (int a = 0; a < rank; ++a)
        d.basis[a] = (int64_t)1 << log[3 - rank + a];
    d.basis[rank - 1] <<= kind == FBFFT_R2C || kind == FBFFT_C2R;
    d.arithmetic = FBFFT_ARITHMETIC_SPLIT;
    d.scale = ldexp(1, -(log[0] + log[1] + log[2]) / 2);
    return d;
}

fbfft_desc split_desc(fbfft_kind kind, int log) { return split_desc_of(kind, (const int[3]){0, 0, log}); }

/* Odd batches, so that no block is full, and a batch of one. */
void split_add_lines(fft_list *list) {
    static const int64_t batches[] = {1, 3, 37, 1501};
    for (int log = 8; log <= 14; ++log)
        for (int b = 0; b < 4; ++b)
            for (int kind = FBFFT_R2C; kind <= FBFFT_C2C_INVERSE; ++kind) {
                fbfft_desc d = split_desc((fbfft_kind)kind, log);
                if (batches[b] << log > 1 << 20)
                    continue;
                d.channels = b == 1 ? 2 : 1;
                fft_list_add(list, d, batches[b])->must = true;
            }
}

void split_add_axes(fft_list *list, int most) {
    static const int logs[][3] = {{0, 8, 8},   {0, 9, 8},  {0, 8, 10}, {0, 10, 9}, {0, 11, 8}, {0, 12, 8}, {0, 8, 14},
                                  {0, 12, 11}, {0, 0, 15}, {0, 0, 16}, {0, 0, 17}, {0, 0, 18}, {0, 0, 19}, {0, 0, 20},
                                  {0, 0, 21},  {0, 0, 22}, {0, 0, 23}, {0, 0, 24}, {0, 0, 25}, {8, 8, 8},  {9, 8, 8}};
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; ++i)
        for (int kind = FBFFT_R2C; kind <= FBFFT_C2C_INVERSE; ++kind) {
            const int all = logs[i][0] + logs[i][1] + logs[i][2];
            if (all > most)
                continue;
            fbfft_desc d = split_desc_of((fbfft_kind)kind, logs[i]);
            d.channels = all < 18 ? 2 : 1;
            fft_list_add(list, d, all < 18 ? 3 : all < 20 ? 2 : 1)->must = true;
        }
}
