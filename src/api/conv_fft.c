/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of conv_fft.h except for tuning. They check the arguments and call down once. */
#include "api/check.h"
#include "api/log_call.h"
#include "autotune/records/record_store.h"
#include "autotune/tune.h"
#include "conv/plan/family.h"
#include "conv/problem/parse.h"
#include "core/dtype.h"
#include "cuda/driver/report.h"

#include <string.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

int conv_fft_version(void) {
    return CONV_FFT_VERSION_MAJOR * 10000 + CONV_FFT_VERSION_MINOR * 100 + CONV_FFT_VERSION_PATCH;
}

const char *conv_fft_version_string(void) {
    return TEXT(CONV_FFT_VERSION_MAJOR) "." TEXT(CONV_FFT_VERSION_MINOR) "." TEXT(CONV_FFT_VERSION_PATCH);
}

int conv_fft_version_abi(void) { return CONV_FFT_ABI; }

static conv_fft_status check_reserved(const int64_t *reserved, int count) {
    for (int i = 0; i < count; ++i) {
        CF_REQUIRE(reserved[i] == 0, "options.reserved[%d] is %lld; it must be 0", i, (long long)reserved[i]);
    }
    return CONV_FFT_SUCCESS;
}

/* ------------------------------------------------------------------------------------------ context */

conv_fft_status conv_fft_context_options_init(conv_fft_context_options *options) {
    REQUIRE_POINTER(options);
    memset(options, 0, sizeof *options);
    options->device = CONV_FFT_DEVICE_AUTO;
    options->struct_bytes = sizeof *options;
    return CONV_FFT_SUCCESS;
}

conv_fft_status conv_fft_context_create(const conv_fft_context_options *options, conv_fft_context **context) {
    REQUIRE_POINTER(context);
    conv_fft_context_options defaults;
    conv_fft_context_options_init(&defaults);
    if (!options)
        options = &defaults;
    CF_REQUIRE(options->struct_bytes == sizeof *options,
               "options.struct_bytes is %lld; it must be %zu: call conv_fft_context_options_init(&options) before you "
               "set fields",
               (long long)options->struct_bytes, sizeof *options);
    CF_REQUIRE(options->device >= CONV_FFT_DEVICE_CPU,
               "options.device is %d; it must be a GPU ordinal, CONV_FFT_DEVICE_AUTO (-1) or CONV_FFT_DEVICE_CPU (-2)",
               options->device);
    CF_REQUIRE(options->threads >= 0 && options->threads <= 4096, "options.threads is %d; it must be 0 to 4096",
               options->threads);
    CF_REQUIRE(options->log_level >= CONV_FFT_LOG_DEFAULT && options->log_level <= CONV_FFT_LOG_CALLS,
               "options.log_level is %d; it must be 0 to 4", (int)options->log_level);
    CF_FORWARD(check_reserved(options->reserved, 3));
    conv_fft_context *made;
    CF_FORWARD(cf_context_create(options, &made));
    const conv_fft_status status = cf_tuner_create(made, options->cache_directory);
    if (status != CONV_FFT_SUCCESS) {
        cf_context_destroy(made);
        return status;
    }
    *context = made;
    return CONV_FFT_SUCCESS;
}

void conv_fft_context_destroy(conv_fft_context *context) {
    if (context)
        cf_tuner_destroy(context->tuner);
    cf_context_destroy(context);
}

int conv_fft_context_device(const conv_fft_context *context) {
    return context ? context->ordinal : CONV_FFT_DEVICE_AUTO;
}

const char *conv_fft_context_description(const conv_fft_context *context) {
    return context ? context->description : "";
}

conv_fft_status conv_fft_devices_report(char *text, size_t bytes, size_t *needed) {
    CF_REQUIRE(text != NULL || bytes == 0, "text is NULL; it must point to %zu bytes", bytes);
    const cf_search search = cf_search_default();
    cf_text report = {.text = text, .bytes = bytes};
    cf_device_report(&search, NULL, &report);
    if (needed)
        *needed = report.length + 1;
    return CONV_FFT_SUCCESS;
}

/* ------------------------------------------------------------------------------------------ problem */

conv_fft_status conv_fft_problem_init(conv_fft_problem *p, int rank) {
    REQUIRE_POINTER(p);
    CF_REQUIRE(rank >= 1 && rank <= CONV_FFT_MAX_RANK, "rank is %d; it must be 1 to %d", rank, CONV_FFT_MAX_RANK);
    cf_problem_defaults(p, rank);
    return CONV_FFT_SUCCESS;
}

conv_fft_status conv_fft_problem_output(const conv_fft_problem *p, int64_t output[CONV_FFT_MAX_RANK]) {
    REQUIRE_POINTER(p);
    REQUIRE_POINTER(output);
    cf_layer layer;
    CF_FORWARD(cf_layer_make(p, &layer));
    for (int a = 0; a < p->rank; ++a)
        output[a] = layer.axis[3 - p->rank + a].output;
    return CONV_FFT_SUCCESS;
}

conv_fft_status conv_fft_problem_parse(const char *line, conv_fft_problem *p, char *name, size_t name_bytes) {
    REQUIRE_POINTER(line);
    REQUIRE_POINTER(p);
    return cf_problem_parse(line, p, name, name_bytes);
}

conv_fft_status conv_fft_problem_format(const conv_fft_problem *p, char *text, size_t bytes) {
    REQUIRE_POINTER(p);
    REQUIRE_POINTER(text);
    cf_layer layer;
    CF_FORWARD(cf_layer_make(p, &layer));
    return cf_problem_format(&layer, text, bytes);
}

/* --------------------------------------------------------------------------------------------- plan */

conv_fft_status conv_fft_plan_options_init(conv_fft_plan_options *options) {
    REQUIRE_POINTER(options);
    memset(options, 0, sizeof *options);
    options->passes = CONV_FFT_ALL_PASSES;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_check_plan_options(const conv_fft_plan_options *options) {
    CF_REQUIRE(options->passes >= 1 && options->passes <= CONV_FFT_ALL_PASSES,
               "options.passes is %d; it must be 1 to %d", options->passes, CONV_FFT_ALL_PASSES);
    CF_REQUIRE(options->tuning >= CONV_FFT_TUNE_CACHED && options->tuning <= CONV_FFT_TUNE_EXHAUSTIVE,
               "options.tuning is %d; it must be 0 to 3", (int)options->tuning);
    CF_REQUIRE(options->keep >= 0 && options->keep <= (CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W),
               "options.keep is %d; it must be 0 to 3", options->keep);
    CF_REQUIRE(options->tune_milliseconds >= 0, "options.tune_milliseconds is %lld; it must be at least 0",
               (long long)options->tune_milliseconds);
    CF_REQUIRE(options->tune_again == 0 || options->tune_again == 1, "options.tune_again is %d; it must be 0 or 1",
               options->tune_again);
    CF_REQUIRE(options->trusted == 0 || options->trusted == 1, "options.trusted is %d; it must be 0 or 1",
               options->trusted);
    CF_REQUIRE(options->own_kernels == 0 || options->own_kernels == 1, "options.own_kernels is %lld; it must be 0 or 1",
               (long long)options->own_kernels);
    CF_REQUIRE(options->any_alignment == 0 || options->any_alignment == 1,
               "options.any_alignment is %lld; it must be 0 or 1", (long long)options->any_alignment);
    return check_reserved(options->reserved, 1);
}

conv_fft_status conv_fft_plan_create(conv_fft_context *context, const conv_fft_problem *problem,
                                     const conv_fft_plan_options *options, conv_fft_plan **plan) {
    REQUIRE_POINTER(context);
    REQUIRE_POINTER(problem);
    REQUIRE_POINTER(plan);
    conv_fft_plan_options defaults;
    conv_fft_plan_options_init(&defaults);
    if (!options)
        options = &defaults;
    CF_FORWARD(cf_check_plan_options(options));
    CF_FORWARD(cf_autotune_plan(context, problem, options, NULL, plan));
    (*plan)->trusted = options->trusted;
    (*plan)->logs_calls = context->log_level >= CONV_FFT_LOG_CALLS;
    return CONV_FFT_SUCCESS;
}

void conv_fft_plan_destroy(conv_fft_plan *plan) { cf_plan_destroy(plan); }

static const char *pass_name(int set) {
    static const char *const names[] = {"none",
                                        "CONV_FFT_FORWARD",
                                        "CONV_FFT_BACKWARD_DATA",
                                        "CONV_FFT_FORWARD + CONV_FFT_BACKWARD_DATA",
                                        "CONV_FFT_BACKWARD_WEIGHTS",
                                        "CONV_FFT_FORWARD + CONV_FFT_BACKWARD_WEIGHTS",
                                        "CONV_FFT_BACKWARD",
                                        "CONV_FFT_ALL_PASSES"};
    return set >= 0 && set <= 7 ? names[set] : "out of range";
}

/* Check that the plan was made for all passes of the set. */
static conv_fft_status check_made_for(const conv_fft_plan *plan, int set) {
    CF_REQUIRE((plan->passes & set) == set, "pass is %s; the plan was made for passes %d (%s)", pass_name(set),
               plan->passes, pass_name(plan->passes));
    return CONV_FFT_SUCCESS;
}

static conv_fft_status check_pass(const conv_fft_plan *plan, int pass) {
    CF_REQUIRE(
        pass == CONV_FFT_FORWARD || pass == CONV_FFT_BACKWARD_DATA || pass == CONV_FFT_BACKWARD_WEIGHTS ||
            pass == CONV_FFT_BACKWARD,
        "pass is %d; it must be CONV_FFT_FORWARD (1), _BACKWARD_DATA (2), _BACKWARD_WEIGHTS (4) or _BACKWARD (6)",
        pass);
    return check_made_for(plan, pass);
}

conv_fft_status conv_fft_plan_workspace(const conv_fft_plan *plan, conv_fft_pass pass, size_t *bytes) {
    REQUIRE_POINTER(plan);
    REQUIRE_POINTER(bytes);
    CF_FORWARD(check_pass(plan, pass));
    *bytes = plan->workspace[pass].bytes;
    return CONV_FFT_SUCCESS;
}

conv_fft_status conv_fft_plan_describe(const conv_fft_plan *plan, conv_fft_pass pass,
                                       conv_fft_description *description) {
    REQUIRE_POINTER(plan);
    REQUIRE_POINTER(description);
    CF_FORWARD(check_pass(plan, pass));
    cf_describe(plan, pass, NULL, description);
    return CONV_FFT_SUCCESS;
}

conv_fft_status conv_fft_profile(const conv_fft_plan *plan, conv_fft_pass pass, int repeats,
                                 conv_fft_description *description) {
    REQUIRE_POINTER(plan);
    REQUIRE_POINTER(description);
    CF_FORWARD(check_pass(plan, pass));
    CF_REQUIRE(repeats >= 1 && repeats <= 1000, "repeats is %d; it must be 1 to 1000", repeats);
    return cf_profile(plan, pass, repeats, description);
}

/* -------------------------------------------------------------------------------------------- layer */

/* An empty batch has no elements, so its tensors may be NULL. */
static conv_fft_status check_tensor(const char *name, const void *pointer, conv_fft_dtype dtype, bool may_be_null) {
    const size_t alignment = cf_dtype_bytes(dtype);
    CF_REQUIRE(pointer != NULL || may_be_null, "%s is NULL; it must point to a tensor", name);
    CF_REQUIRE((uintptr_t)pointer % alignment == 0,
               "%s is %p; it must be a multiple of %zu bytes, the size of one element", name, pointer, alignment);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status check_workspace_bytes(size_t needed, int set, const void *workspace, size_t bytes) {
    CF_REQUIRE(bytes >= needed, "workspace_bytes is %zu; %s needs at least %zu", bytes, pass_name(set), needed);
    CF_REQUIRE(workspace != NULL || needed == 0, "workspace is NULL; it must point to %zu bytes", needed);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status check_workspace(const conv_fft_plan *plan, int set, const void *workspace, size_t bytes) {
    return check_workspace_bytes(set && plan->layer.batch > 0 ? plan->workspace[set].bytes : 0, set, workspace, bytes);
}

/* One rule for x and w: the tensor is read, or if it is NULL the kept spectrum. */
static conv_fft_status check_kept(const conv_fft_plan *plan, const char *name, conv_fft_operand operand,
                                  const void *tensor, conv_fft_dtype dtype, const void *spectrum, bool may_be_null) {
    if (spectrum) {
        const size_t alignment = 2 * cf_dtype_bytes(plan->layer.compute);
        CF_REQUIRE((uintptr_t)spectrum % alignment == 0,
                   "%s_spectrum is %p; it must be a multiple of %zu bytes, the size of one complex number", name,
                   spectrum, alignment);
        const int64_t bytes = cf_plan_spectrum_bytes(plan, operand);
        CF_REQUIRE(bytes >= 0, "%s_spectrum is given; the plan has no spectrum of %s that its passes share", name,
                   name);
        if (!tensor)
            return CONV_FFT_SUCCESS;
    }
    return check_tensor(name, tensor, dtype, may_be_null);
}

conv_fft_status conv_fft_forward_kept(const conv_fft_plan *plan, const void *x, const void *w, const void *bias,
                                      void *y, void *x_spectrum, void *w_spectrum, void *workspace,
                                      size_t workspace_bytes, struct CUstream_st *stream) {
    REQUIRE_POINTER(plan);
    CF_FORWARD(check_made_for(plan, CONV_FFT_FORWARD));
    const cf_layer *layer = &plan->layer;
    const bool empty = layer->batch == 0;
    CF_FORWARD(check_kept(plan, "x", CONV_FFT_OPERAND_X, x, layer->x.dtype, x_spectrum, empty));
    CF_FORWARD(check_kept(plan, "w", CONV_FFT_OPERAND_W, w, layer->w.dtype, w_spectrum, false));
    CF_FORWARD(check_tensor("bias", bias, cf_tensor_bias_dtype(&layer->y), true));
    CF_FORWARD(check_tensor("y", y, layer->y.dtype, empty));
    CF_FORWARD(check_workspace(plan, CONV_FFT_FORWARD, workspace, workspace_bytes));
    const cf_call call = {.x = x,
                          .w = w,
                          .bias = bias,
                          .y = y,
                          .x_spectrum = x_spectrum,
                          .w_spectrum = w_spectrum,
                          .workspace = workspace,
                          .stream = stream};
    return plan->logs_calls ? cf_run_and_log(plan, CONV_FFT_FORWARD, &call, cf_run_checked)
                            : cf_run_checked(plan, CONV_FFT_FORWARD, &call);
}

conv_fft_status conv_fft_forward(const conv_fft_plan *plan, const void *x, const void *w, const void *bias, void *y,
                                 void *workspace, size_t workspace_bytes, struct CUstream_st *stream) {
    return conv_fft_forward_kept(plan, x, w, bias, y, NULL, NULL, workspace, workspace_bytes, stream);
}

conv_fft_status conv_fft_backward_kept(const conv_fft_plan *plan, const void *x, const void *w, const void *gy,
                                       void *gx, void *gw, void *gbias, unsigned flags, void *x_spectrum,
                                       void *w_spectrum, void *workspace, size_t workspace_bytes,
                                       struct CUstream_st *stream) {
    REQUIRE_POINTER(plan);
    const cf_layer *layer = &plan->layer;
    const bool empty = layer->batch == 0;
    const unsigned known = CONV_FFT_ACCUMULATE_GX | CONV_FFT_ACCUMULATE_GW | CONV_FFT_ACCUMULATE_GBIAS;
    const int set = (gx ? CONV_FFT_BACKWARD_DATA : 0) | (gw ? CONV_FFT_BACKWARD_WEIGHTS : 0);
    CF_FORWARD(check_made_for(plan, set));
    CF_REQUIRE(plan->passes & CONV_FFT_BACKWARD,
               "the plan was made for passes %d (%s); gradients need CONV_FFT_BACKWARD_DATA or _WEIGHTS", plan->passes,
               pass_name(plan->passes));
    CF_REQUIRE((flags & ~known) == 0,
               "flags is %u; it must be a sum of CONV_FFT_ACCUMULATE_GX (1), _GW (2) and _GBIAS (4)", flags);
    CF_FORWARD(check_tensor("gy", gy, layer->y.dtype, empty));
    CF_FORWARD(check_kept(plan, "x", CONV_FFT_OPERAND_X, x, layer->x.dtype, gw ? x_spectrum : NULL, empty || !gw));
    CF_FORWARD(check_kept(plan, "w", CONV_FFT_OPERAND_W, w, layer->w.dtype, gx ? w_spectrum : NULL, empty || !gx));
    CF_FORWARD(check_tensor("gx", gx, layer->x.dtype, true));
    CF_FORWARD(check_tensor("gw", gw, layer->gw.dtype, true));
    CF_FORWARD(check_tensor("gbias", gbias, layer->gw.dtype, true));
    CF_FORWARD(check_workspace(plan, set, workspace, workspace_bytes));
    const cf_call call = {.x = x,
                          .w = w,
                          .gy = gy,
                          .gx = gx,
                          .gw = gw,
                          .gbias = gbias,
                          .x_spectrum = x_spectrum,
                          .w_spectrum = w_spectrum,
                          .flags = flags,
                          .workspace = workspace,
                          .stream = stream};
    return plan->logs_calls ? cf_run_and_log(plan, set, &call, cf_run_checked) : cf_run_checked(plan, set, &call);
}

conv_fft_status conv_fft_backward(const conv_fft_plan *plan, const void *x, const void *w, const void *gy, void *gx,
                                  void *gw, void *gbias, unsigned flags, void *workspace, size_t workspace_bytes,
                                  struct CUstream_st *stream) {
    return conv_fft_backward_kept(plan, x, w, gy, gx, gw, gbias, flags, NULL, NULL, workspace, workspace_bytes, stream);
}

conv_fft_status conv_fft_backward_data(const conv_fft_plan *plan, const void *w, const void *gy, void *gx,
                                       unsigned flags, void *workspace, size_t workspace_bytes,
                                       struct CUstream_st *stream) {
    REQUIRE_POINTER(plan);
    CF_FORWARD(check_made_for(plan, CONV_FFT_BACKWARD_DATA));
    CF_FORWARD(check_tensor("gx", gx, plan->layer.x.dtype, plan->layer.batch == 0));
    return conv_fft_backward(plan, NULL, w, gy, gx, NULL, NULL, flags, workspace, workspace_bytes, stream);
}

conv_fft_status conv_fft_backward_weights(const conv_fft_plan *plan, const void *x, const void *gy, void *gw,
                                          void *gbias, unsigned flags, void *workspace, size_t workspace_bytes,
                                          struct CUstream_st *stream) {
    REQUIRE_POINTER(plan);
    CF_FORWARD(check_made_for(plan, CONV_FFT_BACKWARD_WEIGHTS));
    CF_FORWARD(check_tensor("gw", gw, plan->layer.gw.dtype, false));
    return conv_fft_backward(plan, x, NULL, gy, NULL, gw, gbias, flags, workspace, workspace_bytes, stream);
}

/* ------------------------------------------------------------------------------------- kept spectra */

conv_fft_status conv_fft_plan_spectrum(const conv_fft_plan *plan, conv_fft_operand operand, size_t *bytes) {
    REQUIRE_POINTER(plan);
    REQUIRE_POINTER(bytes);
    CF_REQUIRE(operand == CONV_FFT_OPERAND_X || operand == CONV_FFT_OPERAND_W,
               "operand is %d; it must be CONV_FFT_OPERAND_X (1) or CONV_FFT_OPERAND_W (2)", (int)operand);
    const int64_t size = cf_plan_spectrum_bytes(plan, operand);
    const char *name = operand == CONV_FFT_OPERAND_X ? "x" : "w";
    CF_REQUIRE(size != -1, "operand is %d (%s); no pass of the plan (passes %d) reads it", (int)operand, name,
               plan->passes);
    if (size < 0)
        return cf_fail(
            CONV_FFT_NOT_SUPPORTED,
            "the passes of this plan have no common spectra of %s: name it in options.keep; forced strategies must be "
            "staged and agree in basis, tiles, segments and dilation",
            name);
    *bytes = (size_t)size;
    return CONV_FFT_SUCCESS;
}

conv_fft_status conv_fft_transform_weights(const conv_fft_plan *plan, const void *w, void *w_spectrum, void *workspace,
                                           size_t workspace_bytes, struct CUstream_st *stream) {
    size_t bytes;
    CF_FORWARD(conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_W, &bytes));
    REQUIRE_POINTER(w);
    REQUIRE_POINTER(w_spectrum);
    CF_FORWARD(check_kept(plan, "w", CONV_FFT_OPERAND_W, w, plan->layer.w.dtype, w_spectrum, false));
    const int set = plan->passes & CONV_FFT_FORWARD ? CONV_FFT_FORWARD : CONV_FFT_BACKWARD_DATA;
    /* With a batch of 0, the weights still exist. */
    CF_FORWARD(check_workspace_bytes(plan->workspace[set].bytes, set, workspace, workspace_bytes));
    const cf_call call = {.w = w, .w_spectrum = w_spectrum, .workspace = workspace, .stream = stream};
    return plan->logs_calls ? cf_run_and_log(plan, set, &call, cf_run_transform_weights)
                            : cf_run_transform_weights(plan, set, &call);
}
