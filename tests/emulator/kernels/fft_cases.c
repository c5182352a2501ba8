/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/fft_case_builders.h"

#include "support/fft_cases.h"
#include "support/selection.h"
#include "tiling/tiling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_CASES = 2000
};

static tile_case list[MAX_CASES];
static int count;

tile_case *tile_case_add(fbfft_desc desc, int64_t batch) {
    if (count == MAX_CASES)
        abort();
    list[count] = (tile_case){.desc = desc, .batch = batch, .groups = 1};
    return &list[count++];
}

void tile_case_order(tile_case *c, int64_t order, bool channels_last, int64_t channels) {
    c->desc.order = (fbfft_order)order;
    c->desc.layout = channels_last ? CONV_FFT_CHANNELS_LAST : CONV_FFT_CHANNELS_FIRST;
    c->desc.channels = channels;
}

/* -------------------------------------------------------------------------------------------------------- names */

static void describe_axis(cf_text *t, const cf_axis_window *a) {
    static const char *const modes[] = {"", " circular", " reflect", " replicate"};
    cf_text_add(t, " %lld:%lld:%lld from %lld:%lld", (long long)a->first, (long long)a->spread, (long long)a->count,
                (long long)a->origin, (long long)a->step);
    if (a->tiles > 1)
        cf_text_add(t, " tiles %lld:%lld", (long long)a->tiles, (long long)a->tile_step);
    if (a->shifts > 1)
        cf_text_add(t, " shifts %lld:%lld", (long long)a->shifts, (long long)a->shift_step);
    if (a->phases > 1)
        cf_text_add(t, " phases %lld:%lld", (long long)a->phases, (long long)a->phase_step);
    cf_text_add(t, " in %lld:%lld:%lld%s", (long long)a->lower, (long long)a->upper, (long long)a->size,
                modes[a->mode]);
}

void tile_case_name(const tile_case *c, char *text, size_t bytes) {
    char desc[256];
    cf_text t = {text, bytes, 0};
    fft_describe(&c->desc, desc, sizeof desc);
    cf_text_add(&t, "%s%s batch %lld", c->drawn ? "drawn " : "", desc, (long long)c->batch);
    for (int a = 3 - c->desc.rank; a < 3 && c->window; a++) {
        cf_text_add(&t, a == 3 - c->desc.rank ? " window" : ",");
        describe_axis(&t, &c->window->axis[a]);
    }
    if (c->groups > 1)
        cf_text_add(&t, " groups %lld", (long long)c->groups);
    if (c->shared > 0)
        cf_text_add(&t, " shared %lld", (long long)c->shared);
    if (c->chunk > 0)
        cf_text_add(&t, " chunk %lld", (long long)c->chunk);
    if (c->one_multiprocessor)
        cf_text_add(&t, " one-multiprocessor");
    cf_text_add(&t, "%s%s%s%s%s", c->halves ? " 16-bit-spectrum" : "", c->shifted ? " shifted" : "",
                c->forced ? " tiled" : "", c->added ? " added" : "", c->overlapping ? " overlapping" : "");
}

static test_part parts[MAX_CASES];

static void choose(void) {
    static char text[MAX_CASES][TILE_NAME_BYTES];
    const char *names[MAX_CASES];
    for (int i = 0; i < count; i++) {
        tile_case_name(&list[i], text[i], sizeof text[i]);
        names[i] = text[i];
    }
    if (!tile_pair_is_wanted())
        test_parts("tile", names, count, parts);
}

test_part tile_case_part(int number) { return parts[number]; }

void tile_case_take(int number, test_part part) {
    if (parts[number] != TEST_CORE)
        parts[number] = part;
}

int tile_case_list(const tile_case **cases) {
    if (count == 0) {
        tile_add_signals();
        tile_add_layers(CONV_FFT_FP32, false, false, 1);
        tile_add_double_signals();
        tile_add_layers(CONV_FFT_FP64, false, false, 5);
        tile_add_drawn();
        tile_add_layers(CONV_FFT_FP32, true, false, 7);
        tile_add_layers(CONV_FFT_FP32, true, true, 4);
        tile_add_early_rows();
        tile_add_added_rows();
        tile_add_matrices();
        tile_add_matrix_lines();
        tile_add_dense_windows();
        tile_add_matrices_behind_rows();
        tile_add_own_mirrors();
        tile_add_matrices_with_odd_rows();
        tile_add_bins_ahead();
        choose();
    }
    *cases = list;
    return count;
}

/* ----------------------------------------------------------------------------------------------------- planning */

static conv_fft_status plan(const tile_case *c, const char *file, cf_fft_problem *problem, cf_fft_passes *passes) {
    cf_gpu_properties properties;
    CF_FORWARD(cf_gpu_properties_load(file, &properties));
    CF_FORWARD(cf_fft_resolve(&c->desc, problem));
    if (c->window) {
        cf_spectrum *s = &problem->transform.spectrum;
        problem->transform.window = *c->window;
        s->rows_per_sample = cf_window_tiles(c->window) * cf_window_shifts(c->window);
        s->columns *= cf_window_phases(c->window);
        s->scale_rows = s->rows_per_sample;
        if (c->halves)
            s->dtype = c->desc.dtype == CONV_FFT_FP32 ? CONV_FFT_FP16 : c->desc.dtype;
    }
    if (c->groups > 1) {
        int64_t elements;
        CF_FORWARD(cf_fft_signal_elements(problem, c->batch, &elements));
        problem->transform.tensor.group_stride = elements + 3 - (elements + 3) % 4 + 4;
    }
    properties.compute_major = 8; /* async_copy.cuh has no bulk copies in the emulator */
    if (c->shared)
        properties.shared_per_block = c->shared;
    if (c->one_multiprocessor)
        properties.multiprocessors = 1;
    memset(passes, 0, sizeof *passes);
    if (c->forced) {
        const cf_shared_fft_problem whole = cf_shared_fft_problem_of(problem);
        *passes = (cf_fft_passes){.count = 1, .chunk = INT64_MAX};
        CF_FORWARD(cf_shared_fft_configure(&whole, &properties, &passes->pass[0].tile[0]));
        passes->pass[0].tile[1] = cf_shared_fft_unaligned(&passes->pass[0].tile[0]);
        return CONV_FFT_SUCCESS;
    }
    CF_FORWARD(cf_fft_passes_of(problem, &properties, passes));
    if (c->chunk && passes->count > 1)
        passes->chunk = c->chunk;
    return CONV_FFT_SUCCESS;
}

int64_t tile_case_rows(const tile_case *c) {
    return c->batch * (c->window ? cf_window_tiles(c->window) * cf_window_shifts(c->window) : 1);
}

bool tile_case_plan(const tile_case *c, const char *properties, cf_fft_problem *problem, cf_fft_passes *passes) {
    return plan(c, properties, problem, passes) == CONV_FFT_SUCCESS;
}

int tile_case_variant(const tile_case *c, const cf_fft_passes *passes, int pass) {
    const cf_fft_pass *p = &passes->pass[pass];
    const bool signal = pass == 0, spectrum = pass + 1 == passes->count;
    const bool needs_signal = p->plain || p->tile[0].vector_width > 1,
               needs_spectrum = p->plain || p->tile[0].prefetched > 0;
    return c->shifted && ((signal && needs_signal) || (spectrum && needs_spectrum)) ? 1 : 0;
}
