/* SPDX-License-Identifier: Apache-2.0 */
/* A call that computes y or gx, and its tasks. */
#ifndef CF_CPU_SPATIAL_SIGNAL_H
#define CF_CPU_SPATIAL_SIGNAL_H

#include "cpu/spatial/convolution.h"

typedef struct cf_signal_call {
    const cf_convolution *c;
    const cf_tensor *from, *to;
    const void *signal, *w, *bias;
    void *result;
    bool accumulate;
    const char *weights; /* packed */
    char *signals;       /* packed, of all tasks; weights that are visited once */
    char *memory;        /* of the threads */
    int64_t tasks, groups, blocks[3];
} cf_signal_call;

/* A task: results of one sample and group from position `at` of each lattice on. */
typedef struct cf_signal_task {
    int64_t group, sample; /* channelwise: block and item of lanes */
    int64_t at[3], part;
    char *signal, *sums; /* packed; of one block of results */
} cf_signal_task;

/* One lattice of each axis, and the positions that the task has of it. */
typedef struct cf_signal_part {
    const cf_lattice *axis[3];
    int64_t count[3], taps;
    int64_t row, plane, channel; /* numbers of the sums from one row, plane, channel to the next */
    const int64_t *a_offset, *b_offset;
} cf_signal_part;

/* products.c. The parts of a task, one after the other. False: there is no more. */
bool cf_next_part(const cf_convolution *c, const cf_signal_task *t, int64_t *index, cf_signal_part *p);
/* sums += the products of `outer` blocks of channels, of which `run` channels are added. Products with rows of padding
 * are left out, except where rows are joined. */
void cf_add_products(const cf_convolution *c, const cf_signal_task *t, const cf_signal_part *p, const char *signal,
                     const char *weights, int64_t outer, int64_t run, char *sums);

#endif
