/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan has the three passes of a layer, each with its strategy, ready to run.
 *
 * THE PASS TABLE. Per bin, with rows r (batch x shifts x tiles), input columns c (phases x channels), output columns o:
 *
 *     pass              reads    writes   product (core/device_ops.h)                summed over
 *     forward           x, w     y        Y[r][o]  = sum_c X[r][c] conj(W[o][c])     c
 *     backward data     gy, w    gx       GX[r][c] = sum_o GY[r][o] W[o][c]          o
 *     backward weights  gy, x    gw       GW[o][c] = sum_r conj(GY[r][o]) X[r][c]    r
 *
 * Passes share transforms. A list holds all transforms; passes with equal descriptions get the same pointer. So both
 * backward passes read the same spectrum of gy exactly if their pointers are equal.
 */
#ifndef CF_CONV_PLAN_H
#define CF_CONV_PLAN_H

#include "conv/plan/strategy.h"
#include "conv/problem/layer.h"
#include "core/device_ops.h"

enum {
    CF_PASS_FORWARD,
    CF_PASS_DATA,
    CF_PASS_WEIGHTS,
    CF_PASS_COUNT
}; /* conv_fft_pass is 1 << pass */

/* The operands of a pass. Each has a role, which chooses its window. */
enum {
    CF_X,
    CF_W,
    CF_Y,
    CF_OPERAND_COUNT
};

typedef struct cf_pass_row {
    int result;                     /* the operand that is written; the other two are read */
    cf_role role[CF_OPERAND_COUNT]; /* roles of the operands */
    cf_cgemm_kind product;
    const char *name;
} cf_pass_row;

extern const cf_pass_row cf_pass_table[CF_PASS_COUNT];

/* How gx is stored. */
typedef enum cf_gx_store {
    CF_GX_DIRECT, /* every element is stored once */
    CF_GX_ZEROED, /* gx is cleared first, because some elements are not reached or tiles are added in gx itself */
    CF_GX_FOLDED  /* gx is computed in a padded scratch, which is then folded into gx */
} cf_gx_store;

typedef struct cf_pass_plan {
    cf_strategy strategy;
    cf_spectrum spectrum[CF_OPERAND_COUNT]; /* rows of x and y: those of the whole batch */
    cf_transform *transform[CF_OPERAND_COUNT];
    /* staged: transforms both operands that are read, in the order X, W, Y. NULL: each has its own launch. */
    cf_pair *pair;
    cf_cgemm_desc product;
    cf_gx_store gx_store;
    int64_t gx_phases; /* staged: rows that the inverse makes of one row of gx; 1 without segments */
    cf_fold_desc fold;
    void *state; /* of families other than staged; these use only the strategy above */
} cf_pass_plan;

/* The workspace of a call, as offsets in bytes. */
typedef struct cf_workspace {
    int64_t rows;         /* rows of a chunk: those of whole samples, or a part of one sample's */
    size_t w, gw, x, y;   /* spectra; gx uses the place of x */
    size_t fold, scratch; /* padded gx; scratch of the device */
    size_t bytes;
} cf_workspace;

#define CF_WORKSPACE_SLACK 64 /* the pointer may have any alignment */

typedef struct cf_transform_entry {
    cf_transform_desc desc;
    cf_transform *transform;
} cf_transform_entry;

struct conv_fft_plan {
    cf_layer layer;
    cf_device *device;
    int passes;
    bool any_alignment; /* on a GPU, tensors need not begin at multiples of CF_RECORDED_ALIGNMENT bytes */
    bool logs_calls;    /* every call writes a line: api/log_call.h */
    int tuned, given;   /* the passes whose strategies a tuning record or the caller has chosen; else: the cost model */
    bool trusted;       /* calls do not ask the driver about memory and stream */
    cf_pass_plan pass[CF_PASS_COUNT];
    bool shares_gy; /* both backward passes read the same spectrum of gy, or are one kernel */
    cf_bias_desc bias;
    size_t bias_scratch;                           /* scratch of its sum, if the workspace is large enough */
    bool sums_bias[CONV_FFT_BACKWARD + 1];         /* for each set of passes: cf_family.sums_bias() */
    int64_t chunk_groups;                          /* divides the groups */
    cf_workspace workspace[CONV_FFT_BACKWARD + 1]; /* for each set of passes that may run in one call */
    size_t argument_bytes[CF_ARGUMENT_COUNT]; /* of each tensor, and of kept spectra; a call's workspace is above */
    unsigned gaps; /* bits 1 << CF_ARGUMENT_X etc.: between elements of the tensor is memory that is not its own */
    /* The launches of each set of passes, without and with gbias. NULL: a call decides them anew. */
    cf_recording *recording[CONV_FFT_BACKWARD + 1][2];
    cf_transform_entry transforms[CF_OPERAND_COUNT * CF_PASS_COUNT];
    int transform_count;
    double tuned_seconds[CONV_FFT_BACKWARD + 1]; /* measured by the tuner, for each set of passes; 0: not measured */
};

/* strategy[p] is read for the passes of the set. any_alignment: as in conv_fft_plan_options. INVALID_ARGUMENT: a
 * strategy is infeasible, or it needs more than the limit (0: none) even with the smallest chunks; *smallest is then
 * the needed size. */
conv_fft_status cf_plan_create(const cf_layer *layer, cf_device *device, int passes,
                               const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment, uint64_t workspace_limit,
                               uint64_t *smallest, conv_fft_plan **plan);
conv_fft_status cf_fail_workspace_limit(uint64_t limit, uint64_t smallest);
void cf_plan_destroy(conv_fft_plan *plan);

/* Bytes of the whole spectrum of an operand. -1: no pass of the plan reads it. -2: its passes read different
 * spectra. */
int64_t cf_plan_spectrum_bytes(const conv_fft_plan *plan, conv_fft_operand operand);

/* The first pass of the plan that reads the operand's spectrum, or NULL. */
const cf_pass_plan *cf_plan_reader(const conv_fft_plan *plan, int operand);

#endif
