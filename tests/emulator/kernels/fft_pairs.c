/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of forward transforms that one launch computes. */
#include "kernels/fft_case_builders.h"

#include <stdlib.h>
#include <string.h>

bool tile_pair_is_wanted(void) {
    const char *only = getenv("CONV_FFT_TEST_CASE");
    return only && strstr(only, " | ");
}

/* The next pair of forward layers from case *i on: with FP32 or 16-bit spectra, by FFT stages of shared_memory, by
 * tensor-core FFT along the axes, or by one dense matrix. */
typedef enum pair_way {
    BY_STEPS,
    BY_AXES,
    BY_PRODUCT
} pair_way;
static const pair_way pair_ways[][2] = {{BY_STEPS, BY_STEPS},    {BY_STEPS, BY_STEPS},   {BY_AXES, BY_AXES},
                                        {BY_AXES, BY_STEPS},     {BY_STEPS, BY_PRODUCT}, {BY_AXES, BY_PRODUCT},
                                        {BY_PRODUCT, BY_PRODUCT}};
enum {
    PAIR_PLAIN, /* the first one; of the others spectra have 16 bits */
    PAIR_KINDS = sizeof pair_ways / sizeof pair_ways[0]
};
/* The kernel of a case that may be part number `nth` of such a pair. */
static bool pairs_well(const char *properties, int kind, int nth, const tile_case *c, cf_fft_passes *passes,
                       bool *good) {
    cf_fft_problem problem;
    if (!c->window || c->halves != (kind != PAIR_PLAIN) || c->desc.dtype == CONV_FFT_FP64)
        return false;
    if (!tile_case_plan(c, properties, &problem, passes))
        return *good = false;
    const cf_fft_pass *const own = &passes->pass[0];
    const bool told = cf_spectrum_is_scaled(problem.transform.spectrum.dtype) && !own->tile[0].finds_scales;
    const pair_way way = !own->tensor_core ? BY_STEPS : own->tile[0].bin_tiles == 0 ? BY_AXES : BY_PRODUCT;
    return passes->count == 1 && !own->plain && !problem.transform.inverse && !told && way == pair_ways[kind][nth];
}

static bool next_pair(const char *properties, int kind, int *i, int pair[2], bool *good) {
    const int near = 12;
    const tile_case *list;
    const int count = tile_case_list(&list);
    cf_fft_passes passes[2];
    const cf_fft_pass *const both[2] = {&passes[0].pass[0], &passes[1].pass[0]};
    for (; *i < count; ++*i) {
        if (!pairs_well(properties, kind, 0, &list[*i], &passes[0], good))
            continue;
        for (int j = *i + 1; j < count && j <= *i + near; ++j)
            if (pairs_well(properties, kind, 1, &list[j], &passes[1], good) && cf_fft_can_pair(both)) {
                pair[0] = *i;
                pair[1] = j;
                *i = j + 1;
                return true;
            }
    }
    return false;
}

static test_part pair_parts[TILE_PAIRS];

/* A pair is compared with the kernels of its cases, so these cases are selected too. */
static void take_sides(const int pair[2], test_part part) {
    for (int side = 0; side < 2 && part != TEST_LEFT_OUT; side++)
        tile_case_take(pair[side], part);
}

static void choose_pairs(int pairs[TILE_PAIRS][2], int made) {
    static char text[TILE_PAIRS][2 * TILE_NAME_BYTES];
    const tile_case *list;
    tile_case_list(&list);
    const char *names[TILE_PAIRS], *only = getenv("CONV_FFT_TEST_CASE");
    for (int i = 0; i < made; i++) {
        char second[TILE_NAME_BYTES];
        tile_case_name(&list[pairs[i][0]], text[i], TILE_NAME_BYTES);
        tile_case_name(&list[pairs[i][1]], second, sizeof second);
        strcat(strcat(text[i], " | "), second);
        names[i] = text[i];
    }
    if (only && *only && !tile_pair_is_wanted())
        return;
    test_parts("tile_pairs", names, made, pair_parts);
    for (int i = 0; i < made; i++)
        take_sides(pairs[i], pair_parts[i]);
}

bool tile_pair_list(const char *properties, int pairs[TILE_PAIRS][2], int *made) {
    bool good = true;
    *made = 0;
    for (int kind = 0; kind < PAIR_KINDS; kind++)
        for (int i = 0, most = *made + TILE_PAIRS / PAIR_KINDS;
             *made < most && next_pair(properties, kind, &i, pairs[*made], &good);)
            ++*made;
    if (good)
        choose_pairs(pairs, *made);
    return good;
}

test_part tile_pair_part(int pair) { return pair_parts[pair]; }
