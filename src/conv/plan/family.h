/* SPDX-License-Identifier: Apache-2.0 */
/* A family is one way to compute passes. A strategy names its family. Other code calls its operations and never
 * compares families. */
#ifndef CF_CONV_FAMILY_H
#define CF_CONV_FAMILY_H

#include "conv/plan/cost/stage_cost.h"
#include "conv/plan/plan.h"
#include "conv/plan/run.h"

/* How a search finds strategies of a family. */
typedef enum cf_search_space {
    CF_SEARCH_LISTED,  /* the family lists them: cf_family.candidates(), or none */
    CF_SEARCH_SPECTRA, /* bases and tiles, each with every product, overlap and chunk: spectra are in the workspace */
    CF_SEARCH_KERNELS, /* bases and tiles only: spectra of signals are not in the workspace */
    CF_SEARCH_SINGLE   /* one strategy without fields: cf_family_strategy() */
} cf_search_space;

struct cf_family {
    const char *name;
    const char *old_name; /* in older strategy lines; NULL: the same */
    /* The name of another family with the same fields: this one replaces it for every pass that it can compute.
     * NULL: none. */
    const char *replaces;
    unsigned fields; /* bit f: its strategy line has field f, CF_FIELD_BASIS etc. */
    cf_search_space search_space;
    /* The family runs whole convolutions of another library. Records keep the best time of such strategies
     * (direct_ms), and plans with own_kernels do without them. */
    bool baseline;
    const char *library; /* the library that the family needs besides CUDA's own and cuBLAS; NULL: none */
    /* The version of that library. NULL: the device has no such library. */
    const char *(*library_version)(const cf_device *device);
    /* True if the strategy computes the pass; otherwise *why is a clause. */
    bool (*feasible)(const cf_layer *layer, int pass, const cf_strategy *strategy, const char **why);
    /* True if the device can run a feasible strategy; otherwise *why is a clause. */
    bool (*runs_on)(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *strategy,
                    const char **why);
    /* Set the sizes that the layout of the workspace needs. */
    conv_fft_status (*prepare)(conv_fft_plan *plan, int pass);
    /* List the kernels that the plan has compiled. NULL: nothing. */
    conv_fft_status (*list_kernels)(conv_fft_plan *plan, int pass, cf_build_list *list);
    /* Free everything that prepare and list_kernels have made. prepare may be called again. */
    void (*release)(conv_fft_plan *plan, int pass); /* NULL: nothing */
    /* Lay out the workspace of prepared passes that run in one call, with chunks of at most `rows` rows. */
    cf_workspace (*workspace)(const conv_fft_plan *plan, int set, int64_t rows);
    conv_fft_status (*run)(const conv_fft_plan *plan, int set, const cf_call *call);
    /* Set the costs of all stages that a pass with a feasible strategy has. The costs are zero before the call. */
    void (*predict)(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                    cf_stage_cost cost[CF_STAGE_COUNT]);
    /* The time that a call for both gradients saves, each by a strategy of this family. NULL: none. */
    double (*saved_seconds)(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                            const cf_strategy *weights);
    /* Call `visit` with the strategies that are worth a try, the most promising first, until it returns false. */
    conv_fft_status (*candidates)(const cf_layer *layer, cf_device *device, int pass,
                                  bool (*visit)(const cf_strategy *strategy, void *user), void *user);
    /* The time of the first of these strategies, as far as it is known without measuring; HUGE_VAL: it is not. NULL: it
     * never is, and the cost model does not choose the family. */
    double (*first_seconds)(const cf_layer *layer, const cf_device *device, int pass);
    /* Whether both gradients of a prepared plan run as one. NULL: they do if they share the spectrum of gy. */
    bool (*shares_gy)(const conv_fft_plan *plan);
    /* Whether a run of these passes, which include backward weights, also gives the gradient of the bias. NULL: it
     * never does. */
    bool (*sums_bias)(const conv_fft_plan *plan, int set);
};

/* All families, and NULL at the end: conv/families.c. */
extern const cf_family *const cf_families[];

/* The only strategy of a family with CF_SEARCH_SINGLE. */
cf_strategy cf_family_strategy(const cf_family *family);

/* The family of this name, new or old; NULL: there is none. */
const cf_family *cf_family_named(const char *name);

#endif
