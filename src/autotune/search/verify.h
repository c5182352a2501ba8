/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two plans of one layer compute the same, on the random tensors of benchmark buffers. */
#ifndef CF_AUTOTUNE_VERIFY_H
#define CF_AUTOTUNE_VERIFY_H

#include "autotune/search/bench_buffers.h"

/* Results of a plan, on the host. Of a large result, the first, a middle and the last part. */
typedef struct cf_snapshot {
    char *data;
    size_t bytes;
} cf_snapshot;

/* Run the plan and keep its results. OUT_OF_MEMORY, or what the run returns. */
conv_fft_status cf_snapshot_take(const cf_bench_buffers *buffers, const conv_fft_plan *plan, cf_snapshot *snapshot);
void cf_snapshot_clear(cf_snapshot *snapshot);

/* Whether two snapshots agree as closely as two computations in the layer's precision: the norm of each result's
 * difference, and every element. A NaN agrees with nothing. */
bool cf_snapshots_agree(const cf_bench_buffers *buffers, const cf_layer *layer, const cf_snapshot *a,
                        const cf_snapshot *b);

#endif
