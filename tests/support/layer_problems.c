/* SPDX-License-Identifier: Apache-2.0 */
#include "support/layer_problems.h"

#include "support/device.h"
#include "support/layer.h"
#include "support/selection.h"
#include "support/strategy_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A GPU has kernels for aligned tensors and for other tensors. A CPU has the same for both. */
enum {
    ALIGNED = 64
};

/* --------------------------------------------------------------------------------------------------- named problems */

static bool check_with(layer *l, const conv_fft_plan_options *options) {
    conv_fft_plan *plan = test_plan(device_context(), &l->problem, options);
    if (!plan)
        return false;
    bool ok = layer_check_all(l, plan);
    if (options->keep)
        ok = layer_check_kept(l, plan) && ok;
    conv_fft_plan_destroy(plan);
    return ok;
}

static bool check_options(const conv_fft_problem *p) {
    generator g = test_generator(1);
    layer l = layer_create(p, &g);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    bool ok = check_with(&l, &options);

    options.workspace_limit = smallest_workspace_limit(device_context(), p, &options);
    ok = (options.workspace_limit > 0 || case_fail("no sentence names the smallest workspace limit")) && ok;
    ok = check_with(&l, &options) && ok;

    conv_fft_plan_options_init(&options);
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    ok = check_with(&l, &options) && ok;
    layer_destroy(&l);
    return ok;
}

bool check_named_problem(const named_problem *named) {
    char text[1024], variables[256];
    describe_problem(&named->problem, text, sizeof text);
    snprintf(variables, sizeof variables, "CONV_FFT_TEST_CASE='%s'", named->name);
    case_begin(text, variables);
    bool ok = check_options(&named->problem);
    if (!device_gpu())
        return ok;
    tensor_align(ALIGNED);
    ok = check_options(&named->problem) && ok;
    tensor_align(0);
    return ok;
}

/* -------------------------------------------------------------------------------------------------- random problems */

enum {
    MAX_FAILURES = 10
};
/* Most problems are small: nearly every error shows in a small example, and many of those take the time of one large
 * problem. */
static const double few_products = 1e4, max_products = 1e6;

/* Counts of what the run has covered. */
static struct { atomic_llong problems, cut, limited, kept, partial, aligned, spatial; } covered;

/* Strategies with segments of taps, if a small basis holds the segments. Strategies of kept spectra have one basis for
 * all passes. */
static void cut_taps(const conv_fft_problem *p, generator *g, conv_fft_plan_options *options, strategies *s) {
    static const char *const overlaps[] = {"save", "add"}, *const dilations[] = {"step", "shift"},
                             *const products[] = {"blas", "loop"};
    const int64_t tiles = options->keep ? 1 : random_int(g, 1, 3), segments = random_int(g, 2, 5);
    if (!find_cut_strategies(device_context(), p, tiles, segments, overlaps[random_int(g, 0, 1)],
                             dilations[random_int(g, 0, 1)], products[random_int(g, 0, 1)], s))
        return;
    for (int pass = 0; pass < 3; pass++)
        options->strategy[pass] = s->line[options->keep ? 0 : pass];
    covered.cut += strstr(s->line[0], " segments=") != NULL;
}

/* Some of the gradients, with random flags for accumulation. */
static bool check_subset(layer *l, const conv_fft_plan *plan, generator *g) {
    const int64_t wanted = random_int(g, 1, 7);
    const backward_call call = {.gx = wanted & 1,
                                .gw = wanted & 2,
                                .gbias = wanted & 4,
                                .separate = wanted != 4 && wanted != 5 && random_once_in(g, 2),
                                .flags = (unsigned)random_int(g, 0, 7)};
    covered.partial += wanted != 7;
    return layer_check_backward(l, plan, &call);
}

/* A limit between the smallest possible one and the workspace of a plan without a limit. */
static void limit_workspace(const conv_fft_problem *p, conv_fft_plan_options *options, generator *g) {
    conv_fft_plan *plan = test_plan(device_context(), p, options);
    size_t most = 0;
    for (int pass = 1; pass <= 6; pass = pass == 4 ? 6 : 2 * pass) {
        size_t bytes = 0;
        if (plan)
            check_status(conv_fft_plan_workspace(plan, (conv_fft_pass)pass, &bytes), "conv_fft_plan_workspace");
        most = bytes > most ? bytes : most;
    }
    conv_fft_plan_destroy(plan);
    if (most == 0)
        return;
    const uint64_t least = smallest_workspace_limit(device_context(), p, options);
    if (least == 0 || least > most) {
        case_fail("the smallest workspace limit is %" PRIu64 ", but a plan without a limit needs %zu bytes", least,
                  most);
        return;
    }
    options->workspace_limit = random_once_in(g, 2) ? least : (uint64_t)random_int(g, (int64_t)least, (int64_t)most);
    covered.limited++;
}

static void check_plan(layer *l, const conv_fft_plan_options *options, generator *g) {
    conv_fft_plan *plan = test_plan(device_context(), &l->problem, options);
    if (!plan)
        return;
    if (layer_check_all(l, plan) && check_subset(l, plan, g) && options->keep) {
        layer_check_kept(l, plan);
        covered.kept++;
    }
    conv_fft_plan_destroy(plan);
}

void check_random_problem(uint64_t seed) {
    char text[1024], variables[256];
    generator g = generator_create(seed);
    const conv_fft_problem p = random_problem(&g, random_once_in(&g, 32) ? max_products : few_products);
    describe_problem(&p, text, sizeof text);
    snprintf(variables, sizeof variables, "CONV_FFT_TEST_SEED=%" PRIu64 " CONV_FFT_TEST_COUNT=1", seed);
    case_begin(text, variables);

    const bool aligned = device_gpu() && seed % 2;
    tensor_align(aligned ? ALIGNED : 0);
    layer l = layer_create(&p, &g);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    if (random_once_in(&g, 4))
        options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    strategies s;
    if (random_once_in(&g, 12)) /* they take long to find */
        cut_taps(&p, &g, &options, &s);
    if (random_once_in(&g, 4)) {
        limit_workspace(&p, &options, &g);
    } else if (device_gpu() && !options.keep && !options.strategy[0] && random_once_in(&g, 2)) {
        /* Families without transforms take most of these small problems. */
        s = chosen_strategies(device_context(), &p);
        for (int pass = 0; pass < 3; pass++)
            options.strategy[pass] = s.line[pass];
    }
    if (!device_gpu() && !options.keep && !options.strategy[0] && random_once_in(&g, 2)) {
        for (int pass = 0; pass < 3; pass++)
            options.strategy[pass] = pass == 1 && p.padding != CONV_FFT_PAD_ZEROS ? NULL : "spatial";
        options.workspace_limit = 0; /* only some strategies obey one */
        covered.spatial++;
    }
    check_plan(&l, &options, &g);
    layer_destroy(&l);
    tensor_align(0);
    covered.problems++;
    covered.aligned += aligned;
}

static void check_next(int64_t i, void *seed) {
    if (case_failures() < MAX_FAILURES)
        check_random_problem(*(const uint64_t *)seed + (uint64_t)i);
}

bool check_random_problems(uint64_t default_count) {
    uint64_t seed = test_seed();
    const uint64_t listed = environment_number("CONV_FFT_TEST_COUNT", default_count);
    case_list list = {.name = "gpu_layers_random"};
    for (uint64_t i = 0; i < listed; i++)
        case_list_add(&list, "seed %" PRIu64, seed + i);
    const int64_t count = device_each(&list, check_next, &seed);
    printf("random: %lld problems from seed %" PRIu64
           " (%lld with taps in segments, %lld with a workspace limit, %lld with kept spectra, %lld "
           "partial backward calls, %lld with aligned tensors, %lld by family spatial)\n",
           covered.problems, seed, covered.cut, covered.limited, covered.kept, covered.partial, covered.aligned,
           covered.spatial);
    print_worst_ratios("random");
    return case_failures() == 0 && covered.problems == count;
}
