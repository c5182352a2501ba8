/* SPDX-License-Identifier: Apache-2.0 */
/* Which planes of a spectrum block a unit holds, and where their elements are in the tensor. */
#ifndef CF_CPU_UNIT_H
#define CF_CPU_UNIT_H

#include "cpu/backend.h"
#include "cpu/fft/kernels.h"

/* One call's arguments, the same for all its units. */
typedef struct cf_call {
    const cf_transform *transform;
    const void *tensor;
    cf_origin origin;
    cf_block block;
    cf_cpu_strides strides; /* of the block */
    const void *bias;
    bool accumulate, stream;
    char *scratch;
    /* Planes are counted group, then row (or sample, if ordered), then column. */
    int64_t planes, rows_per_plane; /* ordered: the rows of one sample, one after the other; else 1 */
    int64_t units;
} cf_call;

/* Set the lanes of unit `index`. If ordered, they hold row `step` of their samples; else `step` is 0. Memory comes from
 * the thread's part of the scratch. */
void cf_unit_set(cf_unit *unit, const cf_call *call, int64_t index, int64_t step, int thread);

#endif
