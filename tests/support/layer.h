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

/** A tensor that calls write: its expected values, the same sums over absolute values, and its old contents for the
 * accumulate flags. */
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

/** Replace the values of an operand, and compute the expected results again. */
void layer_set(layer *l, operand *o, const double *values);
void layer_compute_expected(layer *l);
/** Give the weights of each output channel a magnitude of their own. */
void layer_grade_weights(layer *l);
/** Set all values of x and w to one value. */
void layer_fill(layer *l, double value);

/** One backward call. */
typedef struct backward_call {
    bool gx, gw, gbias; /* wanted */
    bool separate;      /* through conv_fft_backward_data() and conv_fft_backward_weights() */
    unsigned flags;     /* CONV_FFT_ACCUMULATE_* */
} backward_call;

/* Each runs a call and checks status, results, canaries and workspace, and that nothing else was written. Returns false
 * on failure. */
bool layer_check_forward(layer *l, const conv_fft_plan *plan, bool with_bias);
bool layer_check_backward(layer *l, const conv_fft_plan *plan, const backward_call *call);
/** The bits of gx, and with `weights` those of gw, are those of separate calls, if one call computes both. */
bool layer_check_same_bits(layer *l, const conv_fft_plan *plan, bool weights);
/** The adjoint identity between the current contents of y (without bias), gx and gw. */
bool layer_check_adjoint(layer *l);
/** Forward, joint backward and adjoint identity; then with bias, separate calls and accumulate flags. */
bool layer_check_all(layer *l, const conv_fft_plan *plan);
/** Forward stores both spectra. Then forward and backward read both spectra and no tensor; then only the spectrum of
 * w. */
bool layer_check_kept(layer *l, const conv_fft_plan *plan);

/* Parts of these checks. `call` is the name of the call in messages. */

/** Workspace of exactly the size that `pass` needs. */
guarded layer_workspace(const layer *l, const conv_fft_plan *plan, conv_fft_pass pass);
/** Free it. Returns false if bytes beside it were written. */
bool release_workspace(guarded *workspace, const char *call);
/** Wait for the call's work, and check that both the call and the work succeeded. */
bool check_status(conv_fft_status status, const char *call);
/** No input tensor has changed. */
bool check_inputs(const layer *l, const char *call);
/** A result against expected + extra[]; extra (bias or old contents) may be NULL. */
bool check_result(const layer *l, const result *r, const double *extra, const char *call);

/** A CPU context with this many threads (0: default). Ends the program if there is none. */
conv_fft_context *test_context(int threads);
/** The same with its own cache directory. */
conv_fft_context *test_context_in(const char *directory, int threads);
/** Parse a problem line and begin a new case with it. A bad line ends the program. */
conv_fft_problem test_problem(const char *line);
/** Make a plan of a layer. A failure is a failure of the case and gives NULL. options may be NULL. */
conv_fft_plan *test_plan(conv_fft_context *context, const conv_fft_problem *problem,
                         const conv_fft_plan_options *options);
/** The smallest workspace_limit for these passes, from the message about a limit that is too low. Zero if there is no
 * such message. One if a plan needs no workspace. */
uint64_t smallest_workspace_limit(conv_fft_context *context, const conv_fft_problem *problem,
                                  const conv_fft_plan_options *options);
/** The largest number in a text. */
uint64_t largest_number(const char *text);
/** Problem line with custom strides, for messages. */
void describe_problem(const conv_fft_problem *problem, char *text, size_t bytes);

/** Print the worst ratios of the checks above in one line. */
void print_worst_ratios(const char *title);

#endif
