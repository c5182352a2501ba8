/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a pass through spectra in the workspace. */
#include "conv/plan/cost/stage_cost.h"

#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/calibration.h"
#include "core/dtype.h"

#include <math.h>

/* Chunks of rows and groups after the first. Each has its own launches, which fill the GPU less. */
static double later_chunks(const cf_layer *layer, const cf_spectrum *x, const cf_strategy *s) {
    const double rows = (double)cf_max(1, x->rows), groups = (double)layer->groups;
    const double chunk = s->chunk > 0 ? fmin(rows, (double)s->chunk) : rows;
    const double together = s->groups > 0 ? fmin(groups, (double)s->groups) : groups;
    return ceil(rows / chunk) * ceil(groups / together) - 1.0;
}

/* The extra time of a transform of x or y where dilation is computed as shifts. A block reads every n-th number of
 * the rows of several channels. The other numbers of those sectors belong to other blocks. From an H200: 1-D
 * layers of 64 and 128 channels in FP32 with dilations from 4 to 512. With few channels, and in fused kernels,
 * blocks have neighbouring shifts, which share sectors. */
static double sector_seconds(const cf_layer *layer, const cf_device *device, const cf_strategy *s,
                             const cf_tensor *tensor, int64_t columns, double tensor_bytes) {
    if (!device->calibration || tensor->axis_stride[2] != 1 || columns < 8)
        return 0.0;
    const double shifts = (double)cf_unit_make(&layer->axis[cf_strategy_axis(s, 2)], s->shift_dilation).shifts;
    const double sector = 32.0 / (double)cf_dtype_bytes(tensor->dtype);
    return device->calibration->sector_share * (fmin(shifts, sector) - 1.0) * tensor_bytes / device->bandwidth;
}

/* The time to store gx: kernels that must run one after the other, and padding that is folded. */
static void add_gx_store(const cf_layer *layer, const cf_device *device, const cf_strategy *strategy,
                         const cf_spectrum *x, cf_stage_cost cost[CF_STAGE_COUNT]) {
    const cf_order order = cf_strategy_order(layer, strategy);
    if (order.ordered > 1) {
        const int64_t rows = x->rows * order.between;
        cost[CF_STAGE_STORE_GX].seconds +=
            (double)(cf_cost_is_large(device, x) ? rows : cf_min(order.ordered, rows / order.beside)) *
            device->ordered_seconds;
    }
    if (cf_strategy_gx_store(layer, strategy) == CF_GX_DIRECT)
        return;
    int64_t extents[CF_OPERAND_COUNT][5];
    cf_layer_extents(layer, extents[CF_X], extents[CF_Y], extents[CF_W]);
    double padded = (double)extents[CF_X][0] * (double)extents[CF_X][1];
    for (int a = 0; a < 3; ++a)
        padded *= (double)(layer->axis[a].pad_before + layer->axis[a].input + layer->axis[a].pad_after);
    const double bytes = cf_cost_elements(extents[CF_X]) * (double)cf_dtype_bytes(layer->x.dtype) +
                         padded * (double)cf_dtype_bytes(layer->compute);
    if (cf_strategy_gx_store(layer, strategy) == CF_GX_FOLDED)
        cost[CF_STAGE_FOLD_GX] = cf_cost_of(device, 2.0 * bytes, padded, device->flops);
    else
        cost[CF_STAGE_STORE_GX].seconds += bytes / device->bandwidth;
}

void cf_cost_spectra(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                     cf_stage_cost cost[CF_STAGE_COUNT]) {
    static const cf_stage_kind loads[CF_OPERAND_COUNT] = {CF_STAGE_LOAD_X, CF_STAGE_LOAD_W, CF_STAGE_LOAD_GY};
    static const cf_stage_kind stores[CF_PASS_COUNT] = {CF_STAGE_STORE_Y, CF_STAGE_STORE_GX, CF_STAGE_STORE_GW};
    static const cf_stage_kind products[CF_PASS_COUNT] = {CF_STAGE_PRODUCT_Y, CF_STAGE_PRODUCT_GX, CF_STAGE_PRODUCT_GW};
    cf_spectrum s[CF_OPERAND_COUNT];
    int64_t extents[CF_OPERAND_COUNT][5];
    cf_strategy_spectra(layer, pass, strategy, s);
    cf_layer_extents(layer, extents[CF_X], extents[CF_Y], extents[CF_W]);
    const cf_tensor *const own_order[CF_OPERAND_COUNT] = {&layer->x, pass == CF_PASS_WEIGHTS ? &layer->gw : &layer->w,
                                                          &layer->y};
    const int last = cf_strategy_axis(strategy, 2);
    const cf_axis_grid grid = cf_strategy_grid(strategy, last);
    const int64_t number = (int64_t)cf_dtype_bytes(layer->x.dtype);
    cf_placement place = {.whole = strategy->tiles[0] == 1 && strategy->tiles[1] == 1 && strategy->tiles[2] == 1,
                          .vectors = layer->x.axis_stride[last] != 1 ||
                                     cf_grid_vector_width(&layer->axis[last], &grid) * number >= 8};
    for (int operand = 0; operand < CF_OPERAND_COUNT; ++operand) {
        const bool result = cf_pass_table[pass].result == operand;
        cf_stage_cost *const own = &cost[result ? stores[pass] : loads[operand]];
        const cf_tensor tensor = cf_strategy_tensor(strategy, own_order[operand]);
        const double bytes = cf_cost_elements(extents[operand]) * (double)cf_dtype_bytes(tensor.dtype);
        const cf_axis_window rows = cf_axis_window_make(&layer->axis[last], &grid, cf_pass_table[pass].role[operand]);
        place.odd = cf_window_overlaps(&rows) && rows.tile_step % 4 != 0;
        place.result = result;
        place.overlaps = place.strided = false;
        for (int a = 0; a < 3; ++a) {
            const cf_axis_grid of_axis = cf_strategy_grid(strategy, a);
            const cf_axis_window part =
                cf_axis_window_make(&layer->axis[a], &of_axis, cf_pass_table[pass].role[operand]);
            place.overlaps = place.overlaps || cf_window_overlaps(&part);
            place.strided = place.strided || layer->axis[a].stride > 1;
        }
        const bool dense =
            operand == CF_W && !result && cf_cost_dense_transform(device, &s[operand], &tensor, bytes, own);
        if (!dense)
            *own = cf_cost_transform(device, &s[operand], operand, &tensor, bytes, &place);
        if (operand != CF_W)
            own->seconds += sector_seconds(layer, device, strategy, &tensor, s[operand].columns, bytes);
        /* Another kernel reads the tensor first to find the scales. Then each plane reads its scale. */
        if (!result && cf_spectrum_is_scaled(s[operand].dtype) && !cf_cost_finds_scales(&s[operand], dense)) {
            own->bytes += bytes;
            own->seconds += bytes / device->bandwidth + 2.0 * device->stage_seconds +
                            device->calibration->scale_seconds * (double)s[operand].groups * (double)s[operand].rows *
                                (double)s[operand].columns;
        }
    }
    cost[products[pass]] = cf_cost_product(device, pass, s, strategy->product, layer->problem.math);
    const double more = later_chunks(layer, &s[CF_X], strategy) * device->stage_seconds;
    cost[products[pass]].seconds += more;
    for (int operand = 0; operand < CF_OPERAND_COUNT; ++operand)
        if (operand != CF_W) /* w is transformed once for all chunks of rows */
            cost[cf_pass_table[pass].result == operand ? stores[pass] : loads[operand]].seconds += more;
    if (pass == CF_PASS_DATA)
        add_gx_store(layer, device, strategy, &s[CF_X], cost);
}
