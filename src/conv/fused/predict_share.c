/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/fused/predict_share.h"

#include "core/arith.h"
#include "core/dtype.h"

#include <math.h>

/* Instructions of a line of n points that a thread has in registers (conv/fused/pruned_fft.cuh). They include the
 * addresses of its points. */
static double line_work(int64_t n) {
    static const struct {
        int64_t part;
        double work; /* arithmetic instructions for each point */
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

/* A plane has rows in pairs, of what is read and of what is written, and columns of both. */
double cf_cost_plane_share(const cf_layer *layer, const int64_t basis[3]) {
    if (basis[0] > 1 || basis[1] == 1 || basis[2] == 1 || basis[1] > 32 || basis[2] > 32)
        return 1.0;
    const double points = (double)(basis[1] * basis[2]);
    const double rows =
        (double)(cf_min(basis[1], layer->axis[1].input) + cf_min(basis[1], layer->axis[1].output)) / 2.0;
    const double work = rows * line_work(basis[2]) + 2.0 * (double)(basis[2] / 2 + 1) * line_work(basis[1]);
    return 0.93 * work / (2.0 * points * (2.5 * log2(points) + 1.0));
}

/* Blocks have as many planes as half a sector has numbers, or a whole sector where no sums stay in registers. So
 * large planes leave no room for several blocks. Columns of two steps, or of powers of five, are slow. From an
 * H200: ConvNeXt's layers of 56x56. */
double cf_cost_channels_last_share(const cf_layer *layer, int pass, const int64_t basis[3], double plane) {
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
