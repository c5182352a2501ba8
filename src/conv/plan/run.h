/* SPDX-License-Identifier: Apache-2.0 */
/* How a plan runs: the arguments of a call, and the stages that a profile times. */
#ifndef CF_CONV_RUN_H
#define CF_CONV_RUN_H

#include "conv/plan/plan.h"

/* X(name, text): every stage that a call can have, in the order of descriptions. */
#define CF_STAGE_LIST(X)          \
    X(BIAS, "sum gbias")          \
    X(LOAD_W, "transform w")      \
    X(LOAD_X, "transform x")      \
    X(LOAD_GY, "transform gy")    \
    X(PRODUCT_Y, "product y")     \
    X(PRODUCT_GX, "product gx")   \
    X(PRODUCT_GW, "product gw")   \
    X(STORE_Y, "inverse y")       \
    X(STORE_GX, "inverse gx")     \
    X(FOLD_GX, "fold gx")         \
    X(STORE_GW, "inverse gw")     \
    X(CONVOLVE_Y, "convolve y")   \
    X(CONVOLVE_GX, "convolve gx") \
    X(CONVOLVE_GW, "convolve gw")

#define CF_STAGE_ENUM(name, text) CF_STAGE_##name,
typedef enum cf_stage_kind {
    CF_STAGE_LIST(CF_STAGE_ENUM) CF_STAGE_COUNT
} cf_stage_kind;
#undef CF_STAGE_ENUM

extern const char *const cf_stage_names[CF_STAGE_COUNT];

/* The stages of a measured call in the order in which they ran. stage[i] ended at mark i + 1 of the timer. */
typedef struct cf_stage_times {
    cf_timer *timer;
    cf_stage_kind *stage;
    int count, capacity;
    conv_fft_status status; /* the first failure of a mark */
} cf_stage_times;

typedef struct cf_call {
    const void *x, *w, *bias, *gy; /* x and w are NULL if a kept spectrum is read */
    void *y, *gx, *gw, *gbias;     /* NULL: not wanted */
    void *x_spectrum, *w_spectrum; /* kept spectra, or NULL */
    unsigned flags;
    void *workspace;
    bool after_data; /* the same call has just computed gx in this workspace */
    struct CUstream_st *stream;
    cf_stage_times *stage_times; /* NULL: not measured */
} cf_call;

/* Mark the end of a stage if the call is measured. */
void cf_stage_done(const conv_fft_plan *plan, const cf_call *call, cf_stage_kind stage);

/* Run a set of passes: FORWARD, or any of BACKWARD_DATA and BACKWARD_WEIGHTS, or 0 for the gradient of the bias
 * alone. If the plan has recorded the launches of such a call, they are launched. Otherwise the families run. */
conv_fft_status cf_run(const conv_fft_plan *plan, int set, const cf_call *call);

/* The same after a check of the arguments. INVALID_ARGUMENT: the device cannot work on one of them. */
conv_fft_status cf_run_checked(const conv_fft_plan *plan, int set, const cf_call *call);

/* Record the launches of all calls of a plan, without flags and kept spectra. Everything else of the plan is
 * complete. */
void cf_run_record(conv_fft_plan *plan);

/* Compute the whole spectrum of w, after a check of the arguments. The workspace is that of the set. */
conv_fft_status cf_run_transform_weights(const conv_fft_plan *plan, int set, const cf_call *call);

#endif
