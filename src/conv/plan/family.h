/* SPDX-License-Identifier: Apache-2.0 */
/* A family is one way to compute passes. A strategy names its family. Other code calls these operations and does not
 * ask which family it is. */
#ifndef CF_CONV_FAMILY_H
#define CF_CONV_FAMILY_H

#include "conv/plan/plan.h"
#include "conv/plan/run.h"

typedef struct cf_family {
    /* True if the strategy computes the pass; otherwise *why is a clause. */
    bool (*feasible)(const cf_layer *layer, int pass, const cf_strategy *strategy, const char **why);
    /* True if the device can run a feasible strategy; otherwise *why is a clause. */
    bool (*runs_on)(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *strategy,
                    const char **why);
    /* prepare: find out what the pass needs, so that the workspace can be laid out. build: what takes long, after
     * that. */
    conv_fft_status (*prepare)(conv_fft_plan *plan, int pass);
    conv_fft_status (*build)(conv_fft_plan *plan, int pass); /* NULL: nothing */
    /* Free what prepare and build have made, which may be nothing. prepare may follow. */
    void (*release)(conv_fft_plan *plan, int pass); /* NULL: nothing */
    /* Lay out the workspace of prepared passes that run in one call, with chunks of at most `rows` rows. */
    cf_workspace (*workspace)(const conv_fft_plan *plan, int set, int64_t rows);
    conv_fft_status (*run)(const conv_fft_plan *plan, int set, const cf_call *call);
    /* Call `visit` with strategies that are worth timing, the most promising first, until it returns false. NULL: the
     * tuner makes them from bases and tiles of the axes. */
    conv_fft_status (*candidates)(const cf_layer *layer, cf_device *device, int pass,
                                  bool (*visit)(const cf_strategy *strategy, void *user), void *user);
    /* Whether both gradients of a prepared plan run as one. NULL: they do if they share the spectrum of gy. */
    bool (*shares_gy)(const conv_fft_plan *plan);
    /* Whether a run of these passes, which include backward weights, also gives the gradient of the bias. NULL: it
     * never does. */
    bool (*sums_bias)(const conv_fft_plan *plan, int set);
} cf_family;

/* All families, by cf_family_id: conv/families.c. */
extern const cf_family *const cf_families[CF_FAMILY_COUNT];

/* Declares the functions of a family, and initialises its struct, by its prefix. The family has all functions but
 * shares_gy and sums_bias. */
#define CF_FAMILY_DECLARE(prefix)                                                                                \
    bool prefix##_feasible(const cf_layer *layer, int pass, const cf_strategy *strategy, const char **why);      \
    bool prefix##_runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *strategy, \
                          const char **why);                                                                     \
    conv_fft_status prefix##_prepare(conv_fft_plan *plan, int pass);                                             \
    conv_fft_status prefix##_build(conv_fft_plan *plan, int pass);                                               \
    void prefix##_release(conv_fft_plan *plan, int pass);                                                        \
    cf_workspace prefix##_workspace(const conv_fft_plan *plan, int set, int64_t rows);                           \
    conv_fft_status prefix##_run(const conv_fft_plan *plan, int set, const cf_call *call);                       \
    conv_fft_status prefix##_candidates(const cf_layer *layer, cf_device *device, int pass,                      \
                                        bool (*visit)(const cf_strategy *strategy, void *user), void *user)
#define CF_FAMILY_OF(prefix)                                                                                         \
    {                                                                                                                \
        prefix##_feasible, prefix##_runs_on, prefix##_prepare, prefix##_build, prefix##_release, prefix##_workspace, \
            prefix##_run, prefix##_candidates, NULL, NULL                                                            \
    }

#endif
