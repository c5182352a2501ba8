/* SPDX-License-Identifier: Apache-2.0 */
/* The error of outputs, from a random sample that is computed in double. */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include "common/tensors.h"

typedef struct bench_check bench_check;

/* Compute a random sample of the outputs of some passes by their definition. NULL: out of memory. */
bench_check *bench_check_create(const bench_case *layer, const bench_data *data, const bench_tensors *tensors,
                                int passes);
void bench_check_destroy(bench_check *check);

/* ||got - exact|| / ||exact|| over the sample of the outputs of `passes`. Of two gradients the larger error
 * counts. NaN if an output is NaN. False: the device failed. */
bool bench_check_error(const bench_check *check, const struct bench_gpu *gpu, int passes, double *error);

/* Overwrite the outputs of some passes with NaN. */
bool bench_poison(const bench_tensors *tensors, const struct bench_gpu *gpu, int passes);

#endif
