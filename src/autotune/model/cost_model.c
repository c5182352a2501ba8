/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/model/cost_model.h"

#include "conv/fused/fused.h"
#include "conv/long1d/long1d.h"
#include "conv/plan/family.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "fbfft/tensor_core/config.h"
#include "fbfft/tensor_core/dft_matrix.h"

#include <math.h>
#include <string.h>

static cf_stage_cost cost_of(const cf_device *device, double bytes, double operations, double rate) {
    const double working = operations / rate, moving = bytes / device->bandwidth;
    return (cf_stage_cost){bytes, operations,
                           (device->overlaps ? fmax(working, moving) : working + moving) + device->stage_seconds};
}

static double elements(const int64_t extents[5]) {
    double product = 1.0;
    for (int i = 0; i < 5; ++i)
        product *= (double)extents[i];
    return product;
}

/* Whether so many planes with 16-bit spectra share a multiprocessor's memory. */
static bool planes_fit(const cf_spectrum *s, int planes) {
    const double plane = 8.0 * (double)(s->basis[0] * s->basis[1] * (s->basis[2] / 2 + 1)), most = 200e3;
    return planes * plane <= most;
}

/* Whether spectra are written and read once more on their way. */
static bool is_large(const cf_device *device, const cf_spectrum *s) {
    const int64_t points = s->basis[0] * s->basis[1] * s->basis[2];
    return points > cf_max(cf_max(s->basis[0], s->basis[1]), s->basis[2]) &&
           (cf_dtype_bytes(s->dtype) > 2 ? points > device->plane_points
                                         : device->overlaps && !planes_fit(s, CF_SCALE_COLUMNS));
}

/* What a block needs for a plane of so many points before the next one can begin, however few there are. From an H200. */
static double plane_seconds(const cf_device *device, double points) {
    return device->overlaps ? 4.5e-9 * fmax(0.0, points - 300.0) : 0.0;
}

/* Whether planes or lines with spectra in 16 bits are transformed by matrix products (fbfft/tensor_core/config.h), which want eight channels where these are side by
 * side, if not lines of one channel, and more than w has. */
static bool by_matrices(const cf_device *device, const cf_spectrum *s, int operand, const cf_tensor *tensor) {
    const bool apart = tensor->axis_stride[2] == 1 || tensor->channel_stride != 1 || s->columns == 1;
    const bool taken = (cf_matrix_takes_plane(s->basis, !apart) || cf_matrix_takes_line(s->basis, !apart)) &&
                       (apart || s->channels % CF_SCALE_COLUMNS == 0);
    return device->tensor_flops > 0.0 && cf_dtype_bytes(s->dtype) == 2 && operand != CF_W && taken;
}

/* Whether the blocks of a transform find the scales of their planes, those of eight of one row: these fit, or are one product. */
static bool finds_scales(const cf_spectrum *s, bool product) {
    return s->columns % CF_SCALE_COLUMNS == 0 && (product || planes_fit(s, CF_SCALE_COLUMNS));
}

/* The rate of a transform's arithmetic, from an H200; of lines in matrix products, that of planes in a profile of L2, whose instructions are as many. With
 * spectra in 16 bits, other kernels have eight planes or lines at a time, which are more than is best, but for those of w, mostly zeros. */
static double transform_rate(const cf_device *device, const cf_spectrum *s, int operand, const cf_tensor *tensor) {
    const bool more = device->tensor_flops > 0.0 && cf_dtype_bytes(s->dtype) == 2 && operand != CF_W;
    const bool products = by_matrices(device, s, operand, tensor), line = s->basis[1] == 1, volume = s->basis[0] > 1;
    const int64_t points = s->basis[1] * s->basis[2];
    const double others = volume || (line ? points >= 256 : points <= 400) ? 0.85 : line ? 0.45 : 0.7;
    return device->flops * (products ? line ? 2.1 : 1.25 : more ? others : 1.0);
}

/* What of a window's geometry decides what moving it takes. */
typedef struct placement {
    bool whole;  /* there is one tile */
    bool pieces; /* rows of x can be moved eight bytes at a time, or channels that stand side by side */
    bool odd;    /* tiles overlap along rows, and begin elsewhere than at every fourth number */
} placement;

/* A real transform of n points counts 2.5 n log2 n operations. */
static cf_stage_cost transform(const cf_device *device, const cf_spectrum *s, int operand, const cf_tensor *tensor,
                               double tensor_bytes, const placement *place) {
    const double points = (double)(s->basis[0] * s->basis[1] * s->basis[2]);
    const double planes = (double)s->groups * (double)s->rows * (double)s->columns;
    const int64_t longest = cf_max(cf_max(s->basis[0], s->basis[1]), s->basis[2]);
    const double odd = s->basis[2] % device->row_unit && s->basis[2] > 1 ? 2.0 : 1.0;
    const bool products = by_matrices(device, s, operand, tensor), lines = products && s->basis[1] == 1;
    const double line = longest > device->line_points && !products ? 2.0 : 1.0;
    const double passes = is_large(device, s) ? 3.0 : 1.0;
    /* From an H200: three axes in one kernel, whose windows overlap in short rows. */
    const double solid = device->overlaps && s->basis[0] > 1 && passes == 1.0 ? 1.7 : 1.0;
    const double operations = planes * 2.5 * points * log2(points > 2 ? points : 2) * odd * line;
    const double spectrum_bytes = passes * planes * (double)s->bins * 2.0 * (double)cf_dtype_bytes(s->dtype);
    /* Positions of the basis are handled one by one on load and store. What a line takes in matrix products whatever its length, by a count of
     * instructions; short ones are rows alone. */
    const double least = !lines ? 0.0 : points < 256.0 ? 400.0 : 17e3;
    cf_stage_cost cost = cost_of(device, tensor_bytes + spectrum_bytes, operations + planes * (points + least),
                                 transform_rate(device, s, operand, tensor));
    /* From an H200: lines in matrix products whose blocks have many short ones, number by number, or in pieces of parts of a signal or of all of it; or
     * one long one. */
    double line_blocks = 1.0;
    if (lines && points < 256.0)
        line_blocks = !place->pieces ? 1.7 : place->whole ? 0.95 : 1.45;
    else if (lines && points >= 2048.0)
        line_blocks = 1.3;
    /* From an H200: planes with spectra in 16 bits that are parts of larger ones. */
    const bool part = !place->whole && s->basis[0] == 1 && s->basis[1] > 1 && operand != CF_W && device->overlaps &&
                      cf_dtype_bytes(s->dtype) == 2;
    const double parts = !part ? 1.0 : points <= 256.0 ? 2.0 : 1.25;
    /* From an H200: two kernels of 16-bit spectra, which move half of the bytes by as many instructions, more of them where rows that overlap do not
     * begin at every fourth number; few for w, mostly zeros. */
    const bool two = is_large(device, s) && cf_dtype_bytes(s->dtype) == 2;
    const double halves = !two ? 1.0 : operand == CF_W ? 0.6 : place->odd ? 1.6 : 1.3;
    cost.seconds =
        solid * halves * line_blocks * parts * (cost.seconds - device->stage_seconds) + device->stage_seconds;
    if (s->basis[1] > 1 && !two)
        cost.seconds = fmax(cost.seconds, plane_seconds(device, points) + device->stage_seconds);
    /* From an H200: planes, and lines of more than 512 points, whose channels stand side by side, as single numbers of as many lines. */
    const bool strided = device->overlaps && tensor->channel_stride == 1 && tensor->axis_stride[2] != 1 &&
                         (s->basis[1] > 1 || points > 512.0);
    if (strided && s->columns > 8 && !products)
        cost.seconds = 1.4 * (cost.seconds - device->stage_seconds) + device->stage_seconds;
    return cost;
}

/* The transform of w by one matrix product (fbfft/tensor_core/dft_matrix.h), of FP32 by two; where rows are even, half of it. False: it has too many taps, or
 * planes too large. */
static bool one_product(const cf_device *device, const cf_spectrum *s, const cf_tensor *tensor, double tensor_bytes,
                        cf_stage_cost *cost) {
    const double planes = (double)s->groups * (double)s->rows * (double)s->columns;
    const int64_t taps = (int64_t)ceil(tensor_bytes / (double)cf_dtype_bytes(tensor->dtype) / planes),
                  counts[3] = {1, 1, taps};
    if (device->tensor_flops <= 0.0 || cf_dtype_bytes(s->dtype) != 2 || !planes_fit(s, 1) ||
        !cf_dense_takes(s->basis, counts))
        return false;
    const double terms = (double)cf_round_up(taps, 16) * (tensor->dtype == CONV_FFT_FP32 ? 2.0 : 1.0),
                 share = s->basis[1] % 2 == 0 && taps > 16 ? 0.5 : 1.0;
    *cost = cost_of(device, tensor_bytes + planes * (double)s->bins * 4.0,
                    4.0 * planes * (double)s->bins * terms * share, 2.2 * device->tensor_flops);
    cost->seconds += device->stage_seconds; /* From an H200: blocks make the matrix before they multiply. */
    return true;
}

/* Matrix products reach their speed when all three extents are large. From an H200: products that may be rounded to TF32 are faster by
 * so much; where matrices are a few numbers wide, cuBLAS takes up to three times as long as their bytes do; a term of a loop's sum takes
 * as long as its numbers need from memory, a few of them at once, and one of other products a sixth of that, however few numbers it has. */
static cf_stage_cost product(const cf_device *device, int pass, const cf_spectrum s[CF_OPERAND_COUNT],
                             cf_product_variant variant, conv_fft_math math) {
    const double term = device->overlaps ? (variant == CF_PRODUCT_LOOP ? 0.15e-6 : 0.025e-6) : 0.0;
    const double rows = (double)cf_max(1, s[CF_X].rows), in = (double)s[CF_X].columns, out = (double)s[CF_Y].columns;
    const double count = (double)s[CF_X].bins * (double)s[CF_X].groups;
    const double operations = 8.0 * count * rows * in * out;
    const bool tf32 = math == CONV_FFT_MATH_TF32 && device->tensor_flops > 0.0;
    const bool rounds = tf32 || math == CONV_FFT_MATH_HALF; /* numbers of FP32 to one of FP16 */
    const bool halves = cf_dtype_bytes(s[CF_X].dtype) == 2 || cf_dtype_bytes(s[CF_Y].dtype) == 2;
    const double large = (rows / (rows + 4)) * (in / (in + 4)) * (out / (out + 4));
    double bytes = 0.0;
    for (int i = 0; i < CF_OPERAND_COUNT; ++i) {
        bytes += count * (double)s[i].rows * (double)s[i].columns * 2.0 * (double)cf_dtype_bytes(s[i].dtype);
    }
    double rate = device->flops;
    const double depth = pass == CF_PASS_FORWARD ? in : pass == CF_PASS_DATA ? out : rows;
    double calls = 0.0, narrow = 1.0, sum = term * depth;
    if (variant == CF_PRODUCT_TENSOR) {
        /* Up to four groups of warps share a sum, of 64 terms each, where there are few tiles of 64 x 64 numbers. */
        const double tiles = count * ceil((pass == CF_PASS_WEIGHTS ? in : rows) / 64.0) *
                             ceil((pass == CF_PASS_DATA ? in : out) / 64.0),
                     room = device->threads / 16.0 / tiles;
        sum /= fmax(1.0, floor(fmin(fmin(room, 4.0), depth / 64.0)));
        rate = device->tensor_flops * large * (halves ? 2.2 : rounds ? 1.5 : 1.0);
        calls = halves ? device->stage_seconds : 0.0; /* they wait for their first numbers, and multiply little */
    } else if (variant == CF_PRODUCT_BLAS) {
        rate = device->product_flops * large * (tf32 ? 2.4 : 1.0);
        calls = 0.4e-6 * count / device->threads; /* a library call and its packing */
        narrow = device->overlaps ? 1.0 + 2.0 / fmin(rows, fmin(in, out)) : 1.0;
    } else {
        if (in * out > 1)
            rate = device->product_flops * (device->overlaps ? 0.03 : 0.2);
    }
    cf_stage_cost cost = cost_of(device, bytes, operations, rate);
    /* Fitted to products of an H200, whose words a transform has partly left in the cache. */
    const double cached = variant == CF_PRODUCT_TENSOR && halves ? 0.8 : 1.0;
    cost.seconds = fmax(cost.seconds * narrow * cached + calls, sum + device->stage_seconds);
    return cost;
}

static const cf_stage_kind whole_passes[CF_PASS_COUNT] = {CF_STAGE_CONVOLVE_Y, CF_STAGE_CONVOLVE_GX,
                                                          CF_STAGE_CONVOLVE_GW};

static cf_stage_cost unpredicted(double bytes, double operations) { return (cf_stage_cost){bytes, operations, -1.0}; }

/* The tensors, and the operations of the definition: what an algorithm of another library makes of them it does not say. */
static void model_direct(const cf_layer *layer, int pass, cf_stage_cost cost[CF_STAGE_COUNT]) {
    int64_t x[5], y[5], w[5];
    cf_layer_extents(layer, x, y, w);
    const double bytes =
        elements(x) * (double)cf_dtype_bytes(layer->x.dtype) + elements(y) * (double)cf_dtype_bytes(layer->y.dtype) +
        elements(w) * (double)cf_dtype_bytes(pass == CF_PASS_WEIGHTS ? layer->gw.dtype : layer->w.dtype);
    cost[whole_passes[pass]] = unpredicted(bytes, 2.0 * elements(y) * elements(w) / (double)w[0]);
}

/* The stages are those of `staged`, with each tensor and each spectrum through memory twice more: padding, and transposition. */
static void model_reference(cf_stage_cost cost[CF_STAGE_COUNT]) {
    for (int i = 0; i < CF_STAGE_COUNT; ++i) {
        const bool product = i == CF_STAGE_PRODUCT_Y || i == CF_STAGE_PRODUCT_GX || i == CF_STAGE_PRODUCT_GW;
        if (cost[i].seconds > 0.0)
            cost[i] = unpredicted(cost[i].bytes * (product ? 1.0 : 3.0), cost[i].operations);
    }
}

/* Chunks of rows and groups but the first: each has launches of its own, for work that fills the GPU less. */
static double later_chunks(const cf_layer *layer, const cf_spectrum *x, const cf_strategy *s) {
    const double rows = (double)cf_max(1, x->rows), groups = (double)layer->groups;
    const double chunk = s->chunk > 0 ? fmin(rows, (double)s->chunk) : rows;
    const double together = s->groups > 0 ? fmin(groups, (double)s->groups) : groups;
    return ceil(rows / chunk) * ceil(groups / together) - 1.0;
}

/* What a transform of x or y waits for beside its own bytes where dilation is shifts: a block has every so many-th number of several channels'
 * rows, and reads or writes sectors whose other numbers are other blocks'. From an H200: 1-D layers of 64 and 128 channels in FP32, of
 * dilations from 4 to 512. Of fewer channels, blocks have neighbouring shifts, which share sectors, and so have fused kernels. */
static double sector_seconds(const cf_layer *layer, const cf_device *device, const cf_strategy *s,
                             const cf_tensor *tensor, int64_t columns, double tensor_bytes) {
    if (!device->overlaps || tensor->axis_stride[2] != 1 || columns < 8)
        return 0.0;
    const double shifts = (double)cf_unit_make(&layer->axis[2], s->shift_dilation).shifts;
    const double sector = 32.0 / (double)cf_dtype_bytes(tensor->dtype);
    return 0.8 * (fmin(shifts, sector) - 1.0) * tensor_bytes / device->bandwidth;
}

static void model_staged(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                         cf_stage_cost cost[CF_STAGE_COUNT]) {
    static const cf_stage_kind loads[CF_OPERAND_COUNT] = {CF_STAGE_LOAD_X, CF_STAGE_LOAD_W, CF_STAGE_LOAD_GY};
    static const cf_stage_kind stores[CF_PASS_COUNT] = {CF_STAGE_STORE_Y, CF_STAGE_STORE_GX, CF_STAGE_STORE_GW};
    static const cf_stage_kind products[CF_PASS_COUNT] = {CF_STAGE_PRODUCT_Y, CF_STAGE_PRODUCT_GX, CF_STAGE_PRODUCT_GW};
    cf_spectrum s[CF_OPERAND_COUNT];
    int64_t extents[CF_OPERAND_COUNT][5];
    cf_strategy_spectra(layer, pass, strategy, s);
    cf_layer_extents(layer, extents[CF_X], extents[CF_Y], extents[CF_W]);
    const cf_tensor *const tensors[CF_OPERAND_COUNT] = {&layer->x, pass == CF_PASS_WEIGHTS ? &layer->gw : &layer->w,
                                                        &layer->y};
    const cf_axis_grid grid = cf_strategy_grid(strategy, 2);
    const int64_t number = (int64_t)cf_dtype_bytes(layer->x.dtype);
    placement place = {.whole = strategy->tiles[0] == 1 && strategy->tiles[1] == 1 && strategy->tiles[2] == 1,
                       .pieces = layer->x.axis_stride[2] != 1 || cf_grid_piece(&layer->axis[2], &grid) * number >= 8};
    for (int operand = 0; operand < CF_OPERAND_COUNT; ++operand) {
        const bool result = cf_pass_table[pass].result == operand;
        cf_stage_cost *const own = &cost[result ? stores[pass] : loads[operand]];
        const double tensor = elements(extents[operand]) * (double)cf_dtype_bytes(tensors[operand]->dtype);
        const cf_axis_window rows = cf_axis_window_make(&layer->axis[2], &grid, cf_pass_table[pass].role[operand]);
        place.odd = cf_window_overlaps(&rows) && rows.tile_step % 4 != 0;
        const bool dense =
            operand == CF_W && !result && one_product(device, &s[operand], tensors[operand], tensor, own);
        if (!dense)
            *own = transform(device, &s[operand], operand, tensors[operand], tensor, &place);
        if (operand != CF_W)
            own->seconds += sector_seconds(layer, device, strategy, tensors[operand], s[operand].columns, tensor);
        /* Whose tensors are read once more, by a kernel of its own, and do not pair with others; each plane takes up what was found. */
        if (!result && cf_spectrum_is_scaled(s[operand].dtype) && !finds_scales(&s[operand], dense)) {
            own->bytes += tensor;
            own->seconds += tensor / device->bandwidth + 2.0 * device->stage_seconds +
                            0.2e-9 * (double)s[operand].groups * (double)s[operand].rows * (double)s[operand].columns;
        }
    }
    cost[products[pass]] = product(device, pass, s, strategy->product, layer->problem.math);
    const double more = later_chunks(layer, &s[CF_X], strategy) * device->stage_seconds;
    cost[products[pass]].seconds += more;
    for (int operand = 0; operand < CF_OPERAND_COUNT; ++operand)
        if (operand != CF_W) /* it serves all chunks of rows */
            cost[cf_pass_table[pass].result == operand ? stores[pass] : loads[operand]].seconds += more;
    const cf_order order = cf_strategy_order(layer, strategy);
    if (pass == CF_PASS_DATA && order.ordered > 1) {
        const int64_t rows = s[CF_X].rows * order.between;
        cost[CF_STAGE_STORE_GX].seconds +=
            (double)(is_large(device, &s[CF_X]) ? rows : cf_min(order.ordered, rows / order.beside)) *
            device->ordered_seconds;
    }
    if (pass != CF_PASS_DATA || cf_strategy_gx_store(layer, strategy) == CF_GX_DIRECT)
        return;
    double padded = (double)extents[CF_X][0] * (double)extents[CF_X][1];
    for (int a = 0; a < 3; ++a)
        padded *= (double)(layer->axis[a].pad_before + layer->axis[a].input + layer->axis[a].pad_after);
    const double bytes = elements(extents[CF_X]) * (double)cf_dtype_bytes(layer->x.dtype) +
                         padded * (double)cf_dtype_bytes(layer->compute);
    if (cf_strategy_gx_store(layer, strategy) == CF_GX_FOLDED)
        cost[CF_STAGE_FOLD_GX] = cost_of(device, 2.0 * bytes, padded, device->flops);
    else
        cost[CF_STAGE_STORE_GX].seconds += bytes / device->bandwidth;
}

/* The sums of the slices, one after the other. From an H200. */
static double add_seconds(double slices) { return slices > 1.0 ? 0.05e-6 * slices : 0.0; }

/* What a block of fused kernels does one after the other: it transforms the planes of its channels, and multiplies each with each. From
 * an H200, where the grid's small dense problems take nothing but this. */
static double fused_chain(const cf_device *device, int pass, double points, double rows, double blocks, double in,
                          double out, double chunk) {
    const double plane = 3e-6 + 0.15 * plane_seconds(device, points), product = 0.25e-6;
    if (pass != CF_PASS_WEIGHTS)
        return (in + out) * plane + in * out * product;
    const double slices = fmin(rows, fmax(1.0, device->threads / 8.0 / (blocks * out / chunk)));
    return ceil(rows / slices) * ((in + chunk) * plane + in * chunk * product) + add_seconds(slices);
}

/* Fused kernels of few channels, whose spectra or sums stay in registers (register_resident.cuh): the channels that stay; 0: not such a kernel. */
static double kept_channels(const cf_layer *layer, int pass, const cf_strategy *s, double in, double out) {
    const double few = pass == CF_PASS_WEIGHTS ? in : fmin(in, out);
    const bool serves = layer->groups == 1 && s->basis[0] == 1 && s->basis[1] > 1 && in * out > 1.0 && few <= 8.0;
    return serves ? few : 0.0;
}

/* A tensor that is read as planes goes through memory once more, at the rate of a copy. */
static double turn_seconds(const cf_device *device, const cf_fused_turn *turn) {
    const double bytes = elements(turn->extent) * (double)cf_dtype_bytes(turn->tensor.dtype) + (double)turn->bytes;
    return bytes / (1.3 * device->bandwidth) + device->stage_seconds;
}

/* How long they take where the channels of a point are neighbours in memory and its row is not: the tensor of the many channels goes through
 * memory once more, as planes; or, of too few channels, it takes so much longer to write it, to read it, and to read it for the gradient of
 * the weights. From an H200. */
static double turned(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *s, double seconds) {
    const bool outputs = layer->out_channels > layer->in_channels;
    const cf_tensor *many = pass == CF_PASS_WEIGHTS || outputs ? &layer->y : &layer->x;
    const cf_fused_turn turn = cf_fused_turn_of(layer, pass, s);
    if (many->axis_stride[2] == 1)
        return seconds;
    if (turn.blocks == 0)
        return seconds * (pass == CF_PASS_WEIGHTS ? 2.0 : outputs == (pass == CF_PASS_FORWARD) ? 15.0 : 2.8);
    return seconds + turn_seconds(device, &turn);
}

static bool is_kept(const cf_layer *layer, int pass, const cf_strategy *s) {
    if (s->family != CF_FAMILY_FUSED)
        return false;
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    cf_strategy_spectra(layer, pass, s, spectrum);
    return kept_channels(layer, pass, s, (double)spectrum[CF_X].columns, (double)spectrum[CF_Y].columns) > 0.0;
}

double cf_model_shared_turn(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                            const cf_strategy *weights) {
    if (!is_kept(layer, CF_PASS_DATA, data) || !is_kept(layer, CF_PASS_WEIGHTS, weights))
        return 0.0;
    const cf_fused_turn of_data = cf_fused_turn_of(layer, CF_PASS_DATA, data),
                        of_weights = cf_fused_turn_of(layer, CF_PASS_WEIGHTS, weights);
    const bool both = of_data.blocks > 0 && of_data.reads && of_weights.blocks > 0 && !of_weights.x;
    return both ? turn_seconds(device, &of_weights) : 0.0;
}

/* Their time, from profiles on an H200 of L1 and of the grid's layers: arithmetic at a rate that is higher where tiles have whole rows, and
 * lower for sums over the many channels; for the gradient of the weights, spectra of x go through memory; small layers take what a block
 * does one after the other. */
static double kept_seconds(const cf_device *device, int pass, const cf_strategy *s, double operations, double rows,
                           double in, double out, double few, double plane) {
    static const double to_many[2] = {1.05, 1.33}, to_few[2] = {0.75, 1.06}, weights[2] = {1.05, 1.24};
    const bool sums = (pass == CF_PASS_FORWARD) == (in > out);
    const double *rates = pass == CF_PASS_WEIGHTS ? weights : sums ? to_few : to_many;
    const double step = 2.3e-6, multiprocessors = device->threads / 64.0;
    /* Of larger planes than those of L1, and of more channels, fewer fit. */
    const double large = (plane > 22e3 ? 1.5 : 1.0) * (few > 3.0 ? 1.5 : 1.0);
    const double work = large * operations / (device->fused_flops * rates[s->tiles[2] == 1]);
    double chain = (in + out) * step;
    /* A block has a row for all of its channels, and a multiprocessor mostly one block. */
    if (pass == CF_PASS_DATA && sums)
        chain *= fmax(1.0, 0.75 * ceil(rows / multiprocessors));
    if (pass == CF_PASS_FORWARD)
        chain = (in + fmin(out, fmax(4.0 * few, out * rows / 2.0 / multiprocessors))) * step;
    /* Of many rows, one is a phase ahead of the one before. */
    const double slices = fmin(rows, fmax(1.0, 2.0 * multiprocessors / out)), turns = ceil(rows / slices),
                 few_turns = 32.0;
    if (pass == CF_PASS_WEIGHTS)
        chain = (fmin(turns, few_turns) * 2.0 + fmax(0.0, turns - few_turns) * 1.5) * step + add_seconds(slices);
    double spectra = 0.0;
    if (pass == CF_PASS_WEIGHTS)
        spectra = 2.0 * rows * in * plane / device->bandwidth + device->stage_seconds +
                  plane_seconds(device, (double)(s->basis[1] * s->basis[2]));
    return fmax(work, chain) + spectra + device->stage_seconds;
}

/* Instructions of a line of n points whose thread has it in registers (conv/fused/pruned_dft.cuh), and of finding it. */
static double line_work(int64_t n) {
    static const struct {
        int64_t part;
        double work; /* of a point: arithmetic, as kernels make it */
    } powers[] = {{32, 13.5}, {16, 10.0}, {8, 7.0},   {4, 4.0}, {2, 2.0}, {27, 18.1},
                  {9, 11.1},  {3, 4.7},   {25, 17.0}, {5, 7.2}, {7, 9.4}};
    double work = 7.0;
    int64_t rest = n;
    for (size_t i = 0; i < sizeof powers / sizeof powers[0]; ++i)
        if (rest % powers[i].part == 0) {
            rest /= powers[i].part;
            work += powers[i].work;
        }
    return (double)n * work + 40.0;
}

/* What planes of single channels with short lines take beside others of as many points: rows in pairs of what is read and of what is written,
 * and columns of both. */
static double plane_share(const cf_layer *layer, const int64_t basis[3]) {
    if (basis[0] > 1 || basis[1] == 1 || basis[2] == 1 || basis[1] > 32 || basis[2] > 32)
        return 1.0;
    const double points = (double)(basis[1] * basis[2]);
    const double rows =
        (double)(cf_min(basis[1], layer->axis[1].input) + cf_min(basis[1], layer->axis[1].output)) / 2.0;
    const double work = rows * line_work(basis[2]) + 2.0 * (double)(basis[2] / 2 + 1) * line_work(basis[1]);
    return 0.93 * work / (2.0 * points * (2.5 * log2(points) + 1.0));
}

/* What planes of single channels take that stand side by side in memory: blocks have as many of them as half a sector, or as a whole one where no
 * sums stay, which leaves large ones no room for several blocks; and columns of two steps, or of powers of five, are slow. From an H200,
 * ConvNeXt's layers of 56x56. */
static double abreast_share(const cf_layer *layer, int pass, const int64_t basis[3], double plane) {
    const cf_tensor *x = &layer->x;
    if (x->group_stride != 1 || x->axis_stride[2] == 1)
        return 1.0;
    const double number = (double)cf_dtype_bytes(x->dtype), sector = 32.0 / number * plane;
    const bool longer = number > 2.0;
    if (pass == CF_PASS_WEIGHTS)
        return (longer ? 1.3 : 1.0) * (plane > 3.5e3 ? 1.7 : 1.0);
    const double room = sector > (longer ? 64e3 : 113e3) ? 1.2 : 1.0;
    return (longer ? 1.3 : 1.1) * room * (basis[1] > 40 ? 1.2 : basis[1] % 25 == 0 ? 1.12 : 1.0);
}

/* Tensors once, and the weights' spectra; the transforms' arithmetic, of x again for each block of sums of gw. */
static void model_fused(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                        cf_stage_cost cost[CF_STAGE_COUNT]) {
    cf_spectrum s[CF_OPERAND_COUNT];
    int64_t x[5], y[5], w[5];
    cf_strategy_spectra(layer, pass, strategy, s);
    cf_layer_extents(layer, x, y, w);
    const double points = (double)(s[CF_X].basis[0] * s[CF_X].basis[1] * s[CF_X].basis[2]), bins = (double)s[CF_X].bins;
    const double number = (double)cf_dtype_bytes(s[CF_X].dtype), plane = 2.0 * number * bins;
    const double in = (double)s[CF_X].columns, out = (double)s[CF_Y].columns, rows = (double)s[CF_X].rows,
                 groups = (double)layer->groups;
    /* From rates on an H200: gradients of weights keep sums in registers, and large planes leave room for fewer threads; products of several
     * channels read all weights for every plane. */
    const bool lines = cf_long_serves(layer, pass, strategy);
    const double rate =
        device->fused_flops *
        (lines ? 2.1
               : (in * out > 1 ? 0.7 : 1.45) / (pass == CF_PASS_WEIGHTS ? 1.4 : 1.0) / (plane > 30e3 ? 1.4 : 1.0));
    const double few = lines ? 0.0 : kept_channels(layer, pass, strategy, in, out);
    double chunk = out;
    if (pass == CF_PASS_WEIGHTS && few == 0.0) /* sums that stay in a hundred kilobytes */
        chunk = fmin(out, fmax(1.0, floor((110e3 / plane - in - 1.0) / in)));
    const double again = out / chunk;
    double share = in * out == 1.0 && !lines ? plane_share(layer, s[CF_X].basis) : 1.0;
    if (in * out == 1.0 && !lines)
        share *= abreast_share(layer, pass, s[CF_X].basis, plane);
    const double transforms =
                     share * rows * groups * (again * in + out) * points * (2.5 * log2(points > 2 ? points : 2) + 1.0),
                 products = 8.0 * rows * groups * in * out * bins;
    /* Long lines go through memory twice more on their way, in pieces. */
    const double pieces = lines && points > 2.0 * CF_LONG_MOST_POINTS ? 4.0 * rows * groups * plane : 0.0;
    const double bytes = elements(x) * (double)cf_dtype_bytes(layer->x.dtype) * again +
                         elements(y) * (double)cf_dtype_bytes(layer->y.dtype) + pieces;
    const double spectra = groups * in * out * plane;
    const double tensor =
        elements(w) * (double)cf_dtype_bytes(pass == CF_PASS_WEIGHTS ? layer->gw.dtype : layer->w.dtype);
    cf_stage_cost whole = cost_of(device, bytes + spectra, transforms + (in * out > 1 ? 4.0 : 1.0) * products, rate);
    whole.operations = transforms + products;
    if (few > 0.0)
        whole.seconds = turned(layer, device, pass, strategy,
                               fmax((bytes + spectra) / device->bandwidth,
                                    kept_seconds(device, pass, strategy, whole.operations, rows, in, out, few, plane)));
    else if (!lines)
        whole.seconds = fmax(whole.seconds, fused_chain(device, pass, points, rows,
                                                        ceil(groups / fmax(1.0, 20e3 / plane)), in, out, chunk));
    cost[whole_passes[pass]] = whole;
    cost[pass == CF_PASS_WEIGHTS ? CF_STAGE_STORE_GW : CF_STAGE_LOAD_W] =
        cost_of(device, spectra + tensor, 2.5 * spectra / number * log2(points > 2 ? points : 2), device->flops);
}

void cf_model_pass(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                   cf_stage_cost cost[CF_STAGE_COUNT]) {
    memset(cost, 0, CF_STAGE_COUNT * sizeof *cost);
    if (strategy->family == CF_FAMILY_FUSED) {
        model_fused(layer, device, pass, strategy, cost);
        return;
    }
    if (strategy->family == CF_FAMILY_DIRECT) {
        model_direct(layer, pass, cost);
        return;
    }
    model_staged(layer, device, pass, strategy, cost);
    if (strategy->family == CF_FAMILY_REFERENCE)
        model_reference(cost);
}

cf_product_variant cf_model_product(const cf_layer *layer, const cf_device *device, int pass,
                                    const cf_strategy *strategy) {
    /* Of those that cost the same the first one is taken. */
    static const cf_product_variant variants[] = {CF_PRODUCT_LOOP, CF_PRODUCT_TENSOR, CF_PRODUCT_BLAS};
    cf_product_variant best = CF_PRODUCT_LOOP;
    double least = HUGE_VAL;
    for (int i = 0; i < CF_PRODUCT_VARIANTS; ++i) {
        const char *why;
        cf_strategy s = *strategy;
        cf_stage_cost cost[CF_STAGE_COUNT];
        s.product = variants[i];
        if ((s.product == CF_PRODUCT_BLAS && !device->has_blas) ||
            !cf_families[s.family]->feasible(layer, pass, &s, &why) ||
            !cf_families[s.family]->runs_on(device, layer, pass, &s, &why))
            continue;
        cf_model_pass(layer, device, pass, &s, cost);
        if (cf_model_seconds(cost) < least) {
            least = cf_model_seconds(cost);
            best = s.product;
        }
    }
    return best;
}

double cf_model_seconds(const cf_stage_cost cost[CF_STAGE_COUNT]) {
    double sum = 0.0;
    for (int i = 0; i < CF_STAGE_COUNT; ++i)
        sum += cost[i].seconds < 0.0 ? HUGE_VAL : cost[i].seconds;
    return sum;
}

cf_stage_cost cf_model_bias(const conv_fft_plan *plan, int set) {
    const cf_layer *layer = &plan->layer;
    const cf_spectrum *s = &plan->pass[CF_PASS_WEIGHTS].spectrum[CF_Y];
    int64_t x[5], y[5], w[5];
    cf_layer_extents(layer, x, y, w);
    const bool bins = plan->sums_bias[set];
    const double numbers = bins ? (double)s->rows * (double)(s->groups * s->columns) : elements(y);
    const conv_fft_dtype dtype = bins ? s->dtype : layer->y.dtype;
    const cf_device *device = plan->device;
    const double bytes = (bins ? 2.0 : 1.0) * numbers * (double)cf_dtype_bytes(dtype);
    cf_stage_cost cost = cost_of(device, bytes, numbers, device->flops);
    /* From an H200: 19 MB in 16 and 51 MB in 31 microseconds, in one launch or two. */
    if (device->overlaps && !bins)
        cost.seconds = fmax(numbers / device->flops, bytes / (0.8 * device->bandwidth)) + 2.0 * device->stage_seconds;
    return cost;
}
