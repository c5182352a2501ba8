/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/plan/plan.h"

#include "conv/plan/family.h"
#include "conv/plan/run.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"

#include <stdlib.h>
#include <string.h>

static const cf_family *family_of(const conv_fft_plan *plan, int pass) { return plan->pass[pass].strategy.family; }

static int first_pass(int set) {
    int pass = 0;
    while (!(set & 1 << pass))
        ++pass;
    return pass;
}

static cf_workspace lay_out(const conv_fft_plan *plan, int set, int64_t rows) {
    return family_of(plan, first_pass(set))->workspace(plan, set, rows);
}

/* Rows of the spectra of these passes: of the whole batch, and of one sample. */
static int64_t all_rows(const conv_fft_plan *plan, int set, int64_t *per_sample) {
    const cf_spectrum *y = &plan->pass[first_pass(set)].spectrum[CF_Y];
    *per_sample = y->rows_per_sample;
    return y->rows;
}

/* The chunk that the strategies ask for: whole samples, or a part of one sample. */
static int64_t wanted_rows(const conv_fft_plan *plan, int set) {
    int64_t per_sample, rows = all_rows(plan, set, &per_sample);
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        const int64_t chunk = plan->pass[i].strategy.chunk;
        if ((set & 1 << i) && chunk > 0)
            rows = cf_min(rows, chunk);
    }
    return rows > per_sample ? rows / per_sample * per_sample : rows;
}

/* The largest chunk of at most max_rows rows whose workspace is within the limit, or -1. */
static int64_t fitting_rows(const conv_fft_plan *plan, int set, int64_t max_rows, uint64_t limit) {
    if (lay_out(plan, set, max_rows).bytes <= limit)
        return max_rows;
    int64_t unit, low = 0;
    all_rows(plan, set, &unit);
    if (max_rows <= unit || lay_out(plan, set, unit).bytes > limit) {
        max_rows = cf_min(max_rows, unit);
        unit = 1;
    }
    /* The workspace of `low` units is within the limit (or low is 0), that of `high` units is not. */
    for (int64_t high = max_rows / unit; high - low > 1;) {
        const int64_t middle = low + (high - low) / 2;
        if (lay_out(plan, set, middle * unit).bytes <= limit)
            low = middle;
        else
            high = middle;
    }
    return low > 0 ? low * unit : -1;
}

/* Whether these passes run in one call: single passes do, and both backward passes if they share work. */
static bool runs_as_one(const conv_fft_plan *plan, int set) {
    if ((set & plan->passes) != set)
        return false;
    return set == CONV_FFT_FORWARD || set == CONV_FFT_BACKWARD_DATA || set == CONV_FFT_BACKWARD_WEIGHTS ||
           (set == CONV_FFT_BACKWARD && plan->shares_gy);
}

static bool whole_fits(const conv_fft_plan *plan, uint64_t limit) {
    for (int set = 1; set <= CONV_FFT_BACKWARD; ++set) {
        if (runs_as_one(plan, set) && lay_out(plan, set, wanted_rows(plan, set)).bytes > limit)
            return false;
    }
    return true;
}

static void release(conv_fft_plan *plan) {
    for (int set = 0; set <= CONV_FFT_BACKWARD; ++set)
        for (int i = 0; i < 2; ++i) {
            if (plan->recording[set][i])
                plan->device->ops->record_destroy(plan->recording[set][i]);
            plan->recording[set][i] = NULL;
        }
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        if ((plan->passes & 1 << i) && family_of(plan, i)->release)
            family_of(plan, i)->release(plan, i);
        if (plan->pass[i].product.compiled)
            plan->device->ops->product_destroy(plan->pass[i].product.compiled);
        plan->pass[i].product.compiled = NULL;
    }
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        if (plan->pass[i].pair)
            plan->device->ops->pair_destroy(plan->pass[i].pair);
        plan->pass[i].pair = NULL;
    }
    for (int i = 0; i < plan->transform_count; ++i)
        plan->device->ops->transform_destroy(plan->transforms[i].transform);
    plan->transform_count = 0;
}

static conv_fft_status prepare(conv_fft_plan *plan) {
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        if (plan->passes & 1 << i)
            CF_FORWARD(family_of(plan, i)->prepare(plan, i));
    }
    const cf_pass_plan *data = &plan->pass[CF_PASS_DATA], *weights = &plan->pass[CF_PASS_WEIGHTS];
    plan->shares_gy = false;
    if ((plan->passes & CONV_FFT_BACKWARD) == CONV_FFT_BACKWARD && data->strategy.family == weights->strategy.family) {
        bool (*const asked)(const conv_fft_plan *) = data->strategy.family->shares_gy;
        plan->shares_gy =
            asked ? asked(plan) : data->transform[CF_Y] && data->transform[CF_Y] == weights->transform[CF_Y];
    }
    return CONV_FFT_SUCCESS;
}

/* Whether the pass goes through spectra in the workspace. */
static bool has_spectra(const conv_fft_plan *plan, int pass) {
    return family_of(plan, pass)->search_space == CF_SEARCH_SPECTRA;
}

/* Whether every call transforms both operands of the pass, and whole. */
static bool reads_whole(const conv_fft_plan *plan, int pass) {
    if (!has_spectra(plan, pass) || plan->pass[pass].strategy.keep || plan->chunk_groups < plan->layer.groups ||
        plan->layer.batch == 0)
        return false;
    for (int set = 1; set <= CONV_FFT_BACKWARD; ++set) {
        int64_t per_sample;
        if ((set & 1 << pass) && runs_as_one(plan, set) && plan->workspace[set].rows < all_rows(plan, set, &per_sample))
            return false;
    }
    return true;
}

static conv_fft_status make_pairs(conv_fft_plan *plan) {
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        cf_pass_plan *pass = &plan->pass[i];
        if (!plan->device->ops->pair_create || !(plan->passes & 1 << i) || !reads_whole(plan, i))
            continue;
        const int result = cf_pass_table[i].result, first = result == CF_X ? CF_W : CF_X,
                  second = result == CF_Y ? CF_W : CF_Y;
        CF_FORWARD(
            plan->device->ops->pair_create(plan->device, pass->transform[first], pass->transform[second], &pass->pair));
    }
    return CONV_FFT_SUCCESS;
}

/* Whether some call runs this transform alone. If both gradients share the transform of gy, x is transformed after gx
 * is stored. */
static bool runs_alone(const conv_fft_plan *plan, const cf_transform *transform) {
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        const cf_pass_plan *pass = &plan->pass[i];
        for (int operand = 0; operand < CF_OPERAND_COUNT; ++operand) {
            const bool alone = operand == cf_pass_table[i].result || !pass->pair ||
                               (i == CF_PASS_WEIGHTS && operand == CF_X && plan->shares_gy);
            if ((plan->passes & 1 << i) && pass->transform[operand] == transform && alone)
                return true;
        }
    }
    return false;
}

static conv_fft_status list_transforms(conv_fft_plan *plan, cf_build_list *list) {
    cf_transform *transforms[CF_OPERAND_COUNT * CF_PASS_COUNT];
    cf_pair *pairs[CF_PASS_COUNT];
    int alone = 0, paired = 0;
    for (int i = 0; i < plan->transform_count; ++i)
        if (runs_alone(plan, plan->transforms[i].transform))
            transforms[alone++] = plan->transforms[i].transform;
    for (int i = 0; i < CF_PASS_COUNT; ++i)
        if (plan->pass[i].pair)
            pairs[paired++] = plan->pass[i].pair;
    return plan->device->ops->transforms_list(plan->device, transforms, alone, pairs, paired, !plan->any_alignment,
                                              list);
}

static conv_fft_status list_products(conv_fft_plan *plan, cf_build_list *list) {
    cf_cgemm_desc *products[CF_PASS_COUNT];
    int count = 0;
    for (int i = 0; i < CF_PASS_COUNT; ++i)
        if ((plan->passes & 1 << i) && has_spectra(plan, i))
            products[count++] = &plan->pass[i].product;
    return plan->device->ops->products_list(plan->device, products, count, list);
}

static conv_fft_status list_operations(conv_fft_plan *plan, cf_build_list *list) {
    unsigned operations = plan->passes & CONV_FFT_BACKWARD ? CF_OPERATION_BIAS_GRADIENT : 0;
    if ((plan->passes & CONV_FFT_BACKWARD_WEIGHTS) && cf_weights_are_zeroed(plan))
        operations |= CF_OPERATION_ZERO;
    if ((plan->passes & CONV_FFT_BACKWARD_DATA) && (family_of(plan, CF_PASS_DATA)->fields & 1u << CF_FIELD_BASIS)) {
        const cf_gx_store store = cf_strategy_gx_store(&plan->layer, &plan->pass[CF_PASS_DATA].strategy);
        operations |= store == CF_GX_ZEROED ? CF_OPERATION_ZERO : 0;
    }
    if ((plan->passes & CONV_FFT_BACKWARD_DATA) && plan->pass[CF_PASS_DATA].gx_store == CF_GX_FOLDED)
        operations |= CF_OPERATION_FOLD;
    return plan->device->ops->operations_list(plan->device, operations, list);
}

static conv_fft_status list_kernels(conv_fft_plan *plan, cf_build_list *list) {
    if (list) {
        CF_FORWARD(list_transforms(plan, list));
        CF_FORWARD(list_products(plan, list));
        CF_FORWARD(list_operations(plan, list));
    }
    for (int i = 0; i < CF_PASS_COUNT; ++i)
        if ((plan->passes & 1 << i) && family_of(plan, i)->list_kernels)
            CF_FORWARD(family_of(plan, i)->list_kernels(plan, i, list));
    return CONV_FFT_SUCCESS;
}

/* All kernels of a plan are compiled together, on all processors. */
static conv_fft_status build(conv_fft_plan *plan) {
    const cf_device_ops *const ops = plan->device->ops;
    cf_build_list *list = NULL;
    CF_FORWARD(make_pairs(plan));
    if (!ops->build_begin)
        return list_kernels(plan, NULL);
    CF_FORWARD(ops->build_begin(plan->device, &list));
    return ops->build_end(list, list_kernels(plan, list));
}

/* Reduce the groups of a chunk before its rows, because fewer groups cost no extra work. */
static conv_fft_status limit_groups(conv_fft_plan *plan, uint64_t limit) {
    const int64_t wanted = plan->chunk_groups;
    while (!whole_fits(plan, limit) && plan->chunk_groups > 1) {
        plan->chunk_groups = cf_smaller_divisor(plan->layer.groups, plan->chunk_groups);
    }
    if (plan->chunk_groups == wanted)
        return CONV_FFT_SUCCESS;
    release(plan); /* the padded scratch of gx depends on the groups of a chunk */
    return prepare(plan);
}

static uint64_t smallest_workspace(conv_fft_plan *plan) {
    const int64_t groups = plan->chunk_groups;
    uint64_t bytes = 0;
    plan->chunk_groups = 1;
    for (int set = 1; set <= CONV_FFT_BACKWARD; ++set) {
        int64_t per_sample;
        if (!runs_as_one(plan, set))
            continue;
        const uint64_t own = lay_out(plan, set, cf_min(1, all_rows(plan, set, &per_sample))).bytes;
        if (own > bytes)
            bytes = own;
    }
    plan->chunk_groups = groups;
    return bytes;
}

conv_fft_status cf_fail_workspace_limit(uint64_t limit, uint64_t smallest) {
    return cf_fail(
        CONV_FFT_INVALID_ARGUMENT,
        "options.workspace_limit is %llu bytes; the smallest plan that was found for this problem needs at least %llu",
        (unsigned long long)limit, (unsigned long long)smallest);
}

static conv_fft_status limit_rows(conv_fft_plan *plan, uint64_t limit, uint64_t *smallest) {
    for (int set = 1; set <= CONV_FFT_BACKWARD; ++set) {
        if (!runs_as_one(plan, set))
            continue;
        const int64_t rows = fitting_rows(plan, set, wanted_rows(plan, set), limit);
        if (rows < 0) {
            *smallest = smallest_workspace(plan);
            return cf_fail_workspace_limit(limit, *smallest);
        }
        plan->workspace[set] = lay_out(plan, set, rows);
        if (set != CONV_FFT_BACKWARD)
            plan->pass[first_pass(set)].strategy.chunk = rows;
    }
    if ((plan->passes & CONV_FFT_BACKWARD) == CONV_FFT_BACKWARD && !plan->shares_gy) {
        const cf_workspace *data = &plan->workspace[CONV_FFT_BACKWARD_DATA],
                           *weights = &plan->workspace[CONV_FFT_BACKWARD_WEIGHTS];
        plan->workspace[CONV_FFT_BACKWARD] = data->bytes > weights->bytes ? *data : *weights;
    }
    return CONV_FFT_SUCCESS;
}

static cf_bias_desc describe_bias(const cf_layer *layer) {
    cf_bias_desc bias = {.tensor = layer->y, .result_dtype = layer->gw.dtype, .samples = layer->batch};
    bias.channels = layer->out_channels * layer->groups;
    for (int a = 0; a < 3; ++a)
        bias.size[a] = layer->axis[a].output;
    return bias;
}

/* Choose what sums gbias: the spectrum of gy, or a stage of its own. Chunks do not become smaller for the scratch of
 * that stage. */
static void place_bias(conv_fft_plan *plan, uint64_t limit) {
    const cf_device *device = plan->device;
    plan->bias_scratch = device->ops->bias_scratch ? device->ops->bias_scratch(device, &plan->bias) : 0;
    const size_t bytes = plan->bias_scratch + CF_WORKSPACE_SLACK;
    for (int set = 1; set <= CONV_FFT_BACKWARD; ++set) {
        cf_workspace *workspace = &plan->workspace[set];
        plan->sums_bias[set] = (set & plan->passes) == set && set & CONV_FFT_BACKWARD_WEIGHTS &&
                               family_of(plan, CF_PASS_WEIGHTS)->sums_bias &&
                               family_of(plan, CF_PASS_WEIGHTS)->sums_bias(plan, set);
        if ((set & plan->passes) == set && (set & CONV_FFT_BACKWARD_WEIGHTS) && !plan->sums_bias[set] &&
            plan->bias_scratch > 0 && workspace->bytes < bytes && bytes <= limit)
            workspace->bytes = bytes;
    }
}

static bool has_gaps(const cf_tensor *tensor, const int64_t extents[5], size_t bytes) {
    size_t own = cf_dtype_bytes(tensor->dtype);
    for (int i = 0; i < 5; ++i)
        own *= (size_t)extents[i];
    return bytes != own;
}

static void count_argument_bytes(conv_fft_plan *plan) {
    const cf_layer *const l = &plan->layer;
    size_t *const bytes = plan->argument_bytes;
    int64_t x[5], y[5], w[5];
    cf_layer_extents(l, x, y, w);
    bytes[CF_ARGUMENT_X] = bytes[CF_ARGUMENT_GX] = cf_tensor_bytes(&l->x, x);
    bytes[CF_ARGUMENT_Y] = bytes[CF_ARGUMENT_GY] = cf_tensor_bytes(&l->y, y);
    bytes[CF_ARGUMENT_W] = cf_tensor_bytes(&l->w, w);
    bytes[CF_ARGUMENT_GW] = cf_tensor_bytes(&l->gw, w);
    plan->gaps = has_gaps(&l->x, x, bytes[CF_ARGUMENT_X]) ? 1u << CF_ARGUMENT_X | 1u << CF_ARGUMENT_GX : 0;
    plan->gaps |= has_gaps(&l->y, y, bytes[CF_ARGUMENT_Y]) ? 1u << CF_ARGUMENT_Y | 1u << CF_ARGUMENT_GY : 0;
    plan->gaps |= has_gaps(&l->w, w, bytes[CF_ARGUMENT_W]) ? 1u << CF_ARGUMENT_W : 0;
    plan->gaps |= has_gaps(&l->gw, w, bytes[CF_ARGUMENT_GW]) ? 1u << CF_ARGUMENT_GW : 0;
    bytes[CF_ARGUMENT_BIAS] = l->batch > 0 ? (size_t)y[1] * cf_dtype_bytes(cf_tensor_bias_dtype(&l->y)) : 0;
    bytes[CF_ARGUMENT_GBIAS] = (size_t)y[1] * cf_dtype_bytes(l->gw.dtype);
    bytes[CF_ARGUMENT_X_SPECTRUM] = (size_t)cf_max(0, cf_plan_spectrum_bytes(plan, CONV_FFT_OPERAND_X));
    bytes[CF_ARGUMENT_W_SPECTRUM] = (size_t)cf_max(0, cf_plan_spectrum_bytes(plan, CONV_FFT_OPERAND_W));
}

conv_fft_status cf_plan_create(const cf_layer *layer, cf_device *device, int passes,
                               const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment, uint64_t workspace_limit,
                               uint64_t *smallest, conv_fft_plan **result) {
    CF_FORWARD(cf_layer_check_written(layer, passes));
    conv_fft_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cf_fail_memory(sizeof *plan, "a plan");
    plan->layer = *layer;
    plan->device = device;
    plan->passes = passes;
    plan->any_alignment = any_alignment;
    plan->bias = describe_bias(layer);
    plan->chunk_groups = layer->groups;
    const uint64_t limit = workspace_limit ? workspace_limit : UINT64_MAX;
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int i = 0; i < CF_PASS_COUNT; ++i)
        if (passes & 1 << i)
            plan->pass[i].strategy = strategy[i];
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        if (!(passes & 1 << i))
            continue;
        const char *why = "";
        const cf_family *family = strategy[i].family;
        if (!family->feasible(layer, i, &strategy[i], &why)) {
            status = cf_fail(CONV_FFT_INVALID_ARGUMENT, "the strategy for %s does not suit the problem: %s",
                             cf_pass_table[i].name, why);
            goto done;
        }
        if (!family->runs_on(device, layer, i, &strategy[i], &why)) {
            status = cf_fail(CONV_FFT_NOT_SUPPORTED, "the strategy for %s does not run on this device: %s",
                             cf_pass_table[i].name, why);
            goto done;
        }
        if (strategy[i].groups > 0)
            plan->chunk_groups = cf_min(plan->chunk_groups, strategy[i].groups);
    }
    if (layer->groups % plan->chunk_groups)
        plan->chunk_groups = cf_smaller_divisor(layer->groups, plan->chunk_groups);
    if ((status = prepare(plan)) != CONV_FFT_SUCCESS)
        goto done;
    if ((status = limit_groups(plan, limit)) != CONV_FFT_SUCCESS)
        goto done;
    if ((status = limit_rows(plan, limit, smallest)) != CONV_FFT_SUCCESS)
        goto done;
    for (int i = 0; i < CF_PASS_COUNT; ++i)
        plan->pass[i].strategy.groups = plan->chunk_groups;
    place_bias(plan, limit);
    if ((status = build(plan)) != CONV_FFT_SUCCESS)
        goto done;
    count_argument_bytes(plan);
    cf_run_record(plan);
    *result = plan;
    return CONV_FFT_SUCCESS;
done:
    cf_plan_destroy(plan);
    return status;
}

void cf_plan_destroy(conv_fft_plan *plan) {
    if (!plan)
        return;
    release(plan);
    free(plan);
}

const cf_pass_plan *cf_plan_reader(const conv_fft_plan *plan, int operand) {
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        if ((plan->passes & 1 << i) && cf_pass_table[i].result != operand)
            return &plan->pass[i];
    }
    return NULL;
}

int64_t cf_plan_spectrum_bytes(const conv_fft_plan *plan, conv_fft_operand operand) {
    const int index = operand == CONV_FFT_OPERAND_X ? CF_X : CF_W;
    const cf_pass_plan *reader = cf_plan_reader(plan, index);
    if (!reader)
        return -1;
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        if (!(plan->passes & 1 << i) || cf_pass_table[i].result == index)
            continue;
        if (plan->pass[i].transform[index] != reader->transform[index] || !(plan->pass[i].strategy.keep & operand))
            return -2;
    }
    if (!reader->transform[index])
        return -2; /* the family has no spectra that a caller could keep */
    const cf_spectrum *s = &reader->spectrum[index];
    return (int64_t)cf_spectrum_bytes(s, s->groups, s->rows);
}
