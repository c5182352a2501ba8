/* SPDX-License-Identifier: Apache-2.0 */
/* The costs of transforms. Most figures are from measurements on an H200. */
#include "conv/plan/cost/stage_cost.h"

#include "core/arith.h"
#include "core/calibration.h"
#include "core/dtype.h"
#include "fbfft/tensor_core/config.h"
#include "fbfft/tensor_core/dft_matrix.h"

#include <math.h>

/* Whether so many planes with 16-bit spectra fit the shared memory of a multiprocessor. */
static bool planes_fit(const cf_spectrum *s, int planes) {
    const double plane = 8.0 * (double)(s->basis[0] * s->basis[1] * (s->basis[2] / 2 + 1)), shared_bytes = 200e3;
    return planes * plane <= shared_bytes;
}

bool cf_cost_is_large(const cf_device *device, const cf_spectrum *s) {
    const int64_t points = s->basis[0] * s->basis[1] * s->basis[2];
    return points > cf_max(cf_max(s->basis[0], s->basis[1]), s->basis[2]) &&
           (cf_dtype_bytes(s->dtype) > 2 ? points > device->plane_points
                                         : device->is_gpu && !planes_fit(s, CF_SCALE_COLUMNS));
}

/* Whether the tensor-core FFT applies (fbfft/tensor_core/config.h): a 16-bit spectrum, not w, and a supported
 * size. In channels-last layout it also needs a multiple of eight channels, unless a line has one channel. */
static bool by_matrices(const cf_device *device, const cf_spectrum *s, int operand, const cf_tensor *tensor) {
    const bool apart = tensor->axis_stride[2] == 1 || tensor->channel_stride != 1 || s->columns == 1;
    const bool taken = (cf_tensor_fft_takes_plane(s->basis, !apart) || cf_tensor_fft_takes_line(s->basis, !apart)) &&
                       (apart || s->channels % CF_SCALE_COLUMNS == 0);
    return device->tensor_flops > 0.0 && cf_dtype_bytes(s->dtype) == 2 && operand != CF_W && taken;
}

bool cf_cost_finds_scales(const cf_spectrum *s, bool product) {
    return s->columns % CF_SCALE_COLUMNS == 0 && (product || planes_fit(s, CF_SCALE_COLUMNS));
}

/* The rate of a transform's arithmetic. The tensor-core FFT of lines has the rate of planes in a profile of layer
 * L2, because both issue as many instructions. Other kernels with 16-bit spectra have eight planes or lines at a
 * time, which is more than is best. This does not matter for w, which is mostly zeros. */
static double transform_rate(const cf_device *device, const cf_spectrum *s, int operand, const cf_tensor *tensor) {
    const bool more =
        device->tensor_flops > 0.0 && cf_dtype_bytes(s->dtype) == 2 && operand != CF_W && tensor->channel_stride == 1;
    const bool products = by_matrices(device, s, operand, tensor), line = s->basis[1] == 1, volume = s->basis[0] > 1;
    const int64_t points = s->basis[1] * s->basis[2];
    const double others = volume || (line ? points >= 256 : points <= 400) ? 0.85 : line ? 0.45 : 0.7;
    return device->flops * (products ? line ? 2.1 : 1.25 : more ? others : 1.0);
}

/* The factor of lines on tensor cores. Short lines: blocks have many of them, which are read number by number, or
 * in pieces of all or of a part of a signal. Long lines: a block has one of them. */
static double line_factor(double points, const cf_placement *place) {
    if (points < 256.0)
        return !place->vectors ? 1.7 : place->whole ? 0.95 : 1.45;
    return points >= 2048.0 ? 1.3 : 1.0;
}

/* The factor of two kernels with 16-bit spectra. They move half the bytes with as many instructions. It is larger
 * where rows overlap and do not begin at multiples of four numbers. It is small for w, which is mostly zeros, and
 * for its gradient, of which few rows are stored. */
static double two_kernel_factor(int operand, const cf_placement *place) {
    return operand == CF_W ? place->result ? 0.2 : 0.6 : place->odd ? 1.6 : 1.3;
}

/* Planes with 16-bit spectra. */
static bool is_plane(const cf_device *device, const cf_spectrum *s, int operand) {
    return device->is_gpu && cf_dtype_bytes(s->dtype) == 2 && s->basis[0] == 1 && s->basis[1] > 1 && operand != CF_W;
}

/* Their factor if they are parts of larger planes. In shared memory overlapping parts read some rows twice, and most
 * rows begin between multiples of four numbers. On tensor cores only phases of a stride take longer. */
static double part_factor(double points, bool products, const cf_placement *place) {
    if (place->whole || (products && !place->strided))
        return 1.0;
    return points <= 256.0 || (place->overlaps && !products) ? 2.0 : products ? 1.4 : 1.25;
}

/* In shared memory a block takes so many of them, and little of its time overlaps. */
static double planes_of_block(bool result) { return result ? 4.0 : 8.0; }

cf_stage_cost cf_cost_transform(const cf_device *device, const cf_spectrum *s, int operand, const cf_tensor *tensor,
                                double tensor_bytes, const cf_placement *place) {
    const double points = (double)(s->basis[0] * s->basis[1] * s->basis[2]);
    const double planes = (double)s->groups * (double)s->rows * (double)s->columns;
    const int64_t longest = cf_max(cf_max(s->basis[0], s->basis[1]), s->basis[2]);
    const double odd = s->basis[2] % device->row_unit && s->basis[2] > 1 ? 2.0 : 1.0;
    const bool products = by_matrices(device, s, operand, tensor), lines = products && s->basis[1] == 1;
    const double line = longest > device->line_points && !products ? 2.0 : 1.0;
    const double passes = cf_cost_is_large(device, s) ? 3.0 : 1.0;
    /* Three axes in one kernel, whose windows overlap in short rows. */
    const double solid = device->is_gpu && s->basis[0] > 1 && passes == 1.0 ? 1.7 : 1.0;
    const double operations = planes * 2.5 * points * log2(points > 2 ? points : 2) * odd * line;
    const double spectrum_bytes = passes * planes * (double)s->bins * 2.0 * (double)cf_dtype_bytes(s->dtype);
    /* Load and store handle the positions of the basis one by one. `extra` is the count of instructions that a
     * line on tensor cores takes whatever its length, or a plane on a CPU. Short lines have rows only. Short lines with
     * 16-bit spectra take more of them elsewhere with channels last: lines of 20 points on an H200. */
    const bool short_line = device->tensor_flops > 0.0 && s->basis[0] * s->basis[1] == 1 && points < 256.0 &&
                            cf_dtype_bytes(s->dtype) == 2 && operand != CF_W && tensor->channel_stride == 1;
    const double extra = !device->is_gpu ? 1500.0 : lines ? points < 256.0 ? 400.0 : 17e3 : short_line ? 900.0 : 0.0;
    cf_stage_cost cost = cf_cost_of(device, tensor_bytes + spectrum_bytes, operations + planes * (points + extra),
                                    transform_rate(device, s, operand, tensor));
    const double line_blocks = lines ? line_factor(points, place) : 1.0;
    const bool plane = is_plane(device, s, operand);
    const double parts = plane ? part_factor(points, products, place) : 1.0;
    const bool two = cf_cost_is_large(device, s) && cf_dtype_bytes(s->dtype) == 2;
    const double two_kernels = two ? two_kernel_factor(operand, place) : 1.0;
    cost.seconds =
        solid * two_kernels * line_blocks * parts * (cost.seconds - device->stage_seconds) + device->stage_seconds;
    if (s->basis[1] > 1 && !two)
        cost.seconds = fmax(cost.seconds, (plane && !products ? planes_of_block(place->result) : 1.0) *
                                                  cf_cost_plane_seconds(device, points) +
                                              device->stage_seconds);
    /* Planes and long lines in channels-last layout are read as single numbers of several lines. */
    const bool strided = device->is_gpu && tensor->channel_stride == 1 && tensor->axis_stride[2] != 1 &&
                         (s->basis[1] > 1 || points > 512.0);
    if (strided && s->columns > 8 && !products)
        cost.seconds = 1.4 * (cost.seconds - device->stage_seconds) + device->stage_seconds;
    /* Columns of channels-first planes are moved as single numbers. Each takes a sector, and two if it is stored: 64
     * columns of 64 points on an H200. */
    if (device->is_gpu && tensor->channel_stride != 1 && tensor->axis_stride[2] != 1 && s->columns > 1) {
        const double sectors = 32.0 / (double)cf_dtype_bytes(tensor->dtype) * (place->result ? 2.0 : 1.0);
        cost.seconds = fmax(cost.seconds, sectors * tensor_bytes / device->bandwidth);
    }
    return cost;
}

/* FP32 values take two matrix products. Where the number of rows is even, half of the work is enough. */
bool cf_cost_dense_transform(const cf_device *device, const cf_spectrum *s, const cf_tensor *tensor,
                             double tensor_bytes, cf_stage_cost *cost) {
    const double planes = (double)s->groups * (double)s->rows * (double)s->columns;
    const int64_t taps = (int64_t)ceil(tensor_bytes / (double)cf_dtype_bytes(tensor->dtype) / planes),
                  counts[3] = {1, 1, taps};
    if (device->tensor_flops <= 0.0 || cf_dtype_bytes(s->dtype) != 2 || !planes_fit(s, 1) ||
        !cf_dense_takes(s->basis, counts))
        return false;
    const double terms = (double)cf_round_up(taps, 16) * (tensor->dtype == CONV_FFT_FP32 ? 2.0 : 1.0),
                 share = s->basis[1] % 2 == 0 && taps > 16 ? 0.5 : 1.0;
    *cost = cf_cost_of(device, tensor_bytes + planes * (double)s->bins * 4.0,
                       4.0 * planes * (double)s->bins * terms * share,
                       device->calibration->dense_rate * device->tensor_flops);
    cost->seconds += device->stage_seconds; /* blocks make the matrix before they multiply */
    return true;
}
