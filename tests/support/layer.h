/* SPDX-License-Identifier: Apache-2.0 */
/* One problem with its tensors and expected results, run through the public API and checked. */
#ifndef TEST_LAYER_H
#define TEST_LAYER_H

#include "reference/conv.h"
#include "support/compare.h"
#include "support/random_problems.h"

/** A tensor that calls read, and its values as stored. */
typedef struct operand {
    tensor tensor;
    double *values;
} operand;

/** A tensor that calls write, what it should hold, the same of absolute values, and its old contents for the accumulate
 * flags. */
typedef struct result {
    const char *name;
    tensor tensor;
    double *expected, *magnitude, *old;
    double share; /* of non-zeros that `expected` must have */
} result;

typedef struct layer {
    conv_fft_problem problem;
    ref_shape shape;
    operand x, w, bias, gy;
    result y, gx, gw, gbias;
    size_t workspace_alignment;
} layer;

/** Random inputs; expected results from the reference. */
layer layer_create(const conv_fft_problem *problem, generator *g);
void layer_destroy(layer *l);

/** Replace values of an operand by `values` and compute the expected results anew. */
void layer_set(layer *l, operand *o, const double *values);
void layer_compute_expected(layer *l);

/** One backward call. */
typedef struct backward_call {
    bool gx, gw, gbias; /* wanted */
    bool separate;      /* through conv_fft_backward_data() and conv_fft_backward_weights() */
    unsigned flags;     /* CONV_FFT_ACCUMULATE_* */
} backward_call;

/* Each runs a call and checks status, results, canaries, workspace, and that nothing else was written. False on
 * failure. */
bool layer_check_forward(layer *l, const conv_fft_plan *plan, bool with_bias);
bool layer_check_backward(layer *l, const conv_fft_plan *plan, const backward_call *call);
/** The adjoint identity between what y (without bias), gx and gw hold now. */
bool layer_check_adjoint(layer *l);
/** Forward, joint backward and adjoint identity; then with bias, separate calls and accumulate flags. */
bool layer_check_all(layer *l, const conv_fft_plan *plan);
/** Forward that stores both spectra, then forward and backward that read them and no tensor, then with w's alone. */
bool layer_check_kept(layer *l, const conv_fft_plan *plan);

/* The parts of those checks. `call` names the call in messages. */

/** Workspace of exactly the size that `pass` needs. */
guarded layer_workspace(const layer *l, const conv_fft_plan *plan, conv_fft_pass pass);
/** Free it; false if bytes beside it were written. */
bool release_workspace(guarded *workspace, const char *call);
/** The call was a success, and so is what it has enqueued, which is waited for. */
bool check_status(conv_fft_status status, const char *call);
/** No input tensor has changed. */
bool check_inputs(const layer *l, const char *call);
/** A result against expected + extra[]; extra (bias or old contents) may be NULL. */
bool check_result(const layer *l, const result *r, const double *extra, const char *call);

/** A CPU context with this many threads (0: default). Ends the program if there is none. */
conv_fft_context *test_context(int threads);
/** The same with a cache directory of its own. */
conv_fft_context *test_context_in(const char *directory, int threads);
/** A problem line; a new case begins with it. Ends the program if it is bad. */
conv_fft_problem test_problem(const char *line);
/** Plan of a layer; a failure is reported as one of the case and gives NULL. options may be NULL. */
conv_fft_plan *test_plan(conv_fft_context *context, const conv_fft_problem *problem,
                         const conv_fft_plan_options *options);
/** The least workspace_limit for these passes, taken from the sentence about one that is too low. Zero if there is no
 * such sentence. */
uint64_t smallest_workspace_limit(conv_fft_context *context, const conv_fft_problem *problem,
                                  const conv_fft_plan_options *options);
/** The largest number in a sentence. */
uint64_t largest_number(const char *text);
/** Problem line with custom strides, for messages. */
void describe_problem(const conv_fft_problem *problem, char *text, size_t bytes);

/** The worst ratios seen by the checks above, one line. */
void print_worst_ratios(const char *title);

#endif
