/* SPDX-License-Identifier: Apache-2.0 */
/* tile_emit FACTS float|double CORE SHARE PREFIX: write the kernels of this run's cases, as the planner chooses them,
 * to CORE sources of the core and SHARE sources of the share (emit.h); fft_registration.h explains the sources. */
#include "kernels/emit.h"
#include "kernels/fft_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void emit_kernel(FILE *out, int number, int pass, int variant, const cf_fft_pass *p) {
    char text[8192], name[64];
    cf_text t = {text, sizeof text, 0};
    if (p->plain)
        cf_fft_emit(&p->real[variant], &t);
    else if (p->tensor_core)
        cf_tensor_fft_emit(&p->tile[variant], &t);
    else
        cf_shared_fft_emit(&p->tile[variant], &t);
    if (t.length >= sizeof text) {
        fprintf(stderr, "the text of kernel %d.%d is too long\n", number, pass);
        exit(1);
    }
    snprintf(name, sizeof name, "kernel_%d_%d_%d", number, pass, variant);
    fprintf(out, "#define cf_fft %s\nnamespace in_%s {\n%s}\n#undef cf_fft\n", name, name, text);
    fprintf(out, "static const Registration add_%s(%d, %d, %d, [](void **p) { ", name, number, pass, variant);
    if (!p->plain)
        fprintf(out, "in_%s::%s(at<cf_shared_fft_call>(p[0])); });\n\n", name, name);
    else
        fprintf(out, "in_%s::%s(at<const %s *>(p[0]), at<%s *>(p[1]), at<real>(p[2]), at<long long>(p[3])); });\n\n",
                name, name, p->real[variant].inverse ? "cplx" : "real", p->real[variant].inverse ? "real" : "cplx");
}

static bool emit_pair(FILE *out, int number, const char *properties, const int sides[2]) {
    const tile_case *cases;
    cf_gpu_properties gpu;
    cf_shared_fft_config pair[2];
    char text[16384];
    cf_text t = {text, sizeof text, 0};
    int variant = 0;
    tile_case_list(&cases);
    cf_fft_passes passes[2];
    for (int side = 0; side < 2; side++) {
        cf_fft_problem problem;
        if (!tile_case_plan(&cases[sides[side]], properties, &problem, &passes[side]))
            return false;
        variant |= tile_case_variant(&cases[sides[side]], &passes[side], 0);
    }
    if (cf_gpu_properties_load(properties, &gpu) != CONV_FFT_SUCCESS)
        return false;
    const cf_fft_pass *const pass[2] = {&passes[0].pass[0], &passes[1].pass[0]};
    cf_fft_pair_tiles(pass, variant, &gpu, pair);
    cf_fft_emit_pair(pass, pair, &t);
    fprintf(out, "#define cf_fft pair_%d\nnamespace in_pair_%d {\n%s}\n#undef cf_fft\n", number, number, text);
    fprintf(out,
            "static const Registration add_pair_%d(%d, 0, %d, [](void **p) { "
            "in_pair_%d::pair_%d(at<cf_shared_fft_call>(p[0]), "
            "at<cf_shared_fft_call>(p[1])); });\n\n",
            number, number, variant, number, number);
    return t.length < sizeof text;
}

static bool emit_pairs(emission *e, const char *properties) {
    int pairs[TILE_PAIRS][2], count = 0;
    bool good = tile_pair_list(properties, pairs, &count);
    for (int i = 0; i < count && good; i++)
        if (tile_pair_part(i) != TEST_LEFT_OUT)
            good = emit_pair(emission_next(e, tile_pair_part(i)), TILE_PAIR_NUMBER + i, properties, pairs[i]);
    return good;
}

static bool emit_case(emission *e, const char *properties, int number, const tile_case *c) {
    cf_fft_problem problem;
    cf_fft_passes passes;
    if (!tile_case_plan(c, properties, &problem, &passes))
        return false;
    FILE *out = emission_next(e, tile_case_part(number));
    for (int pass = 0; pass < passes.count; ++pass)
        emit_kernel(out, number, pass, tile_case_variant(c, &passes, pass), &passes.pass[pass]);
    return true;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: tile_emit FACTS float|double CORE SHARE PREFIX\n");
        return 1;
    }
    const bool doubles = strcmp(argv[2], "double") == 0;
    const tile_case *cases;
    const int count = tile_case_list(&cases);
    emission e;
    emission_open(&e, argv[5], "kernels/fft_registration.h", atoi(argv[3]), atoi(argv[4]));
    if (!doubles && !emit_pairs(&e, argv[1])) { /* before the cases, some of which it takes */
        fprintf(stderr, "pairs: %s\n", conv_fft_last_error());
        return 1;
    }
    for (int i = 0; i < count; ++i)
        if (tile_case_is_double(&cases[i]) == doubles && tile_case_part(i) != TEST_LEFT_OUT &&
            !emit_case(&e, argv[1], i, &cases[i])) {
            fprintf(stderr, "case %d: %s\n", i, conv_fft_last_error());
            return 1;
        }
    return emission_close(&e);
}
