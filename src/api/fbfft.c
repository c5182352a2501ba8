/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of fbfft.h. They check the arguments and call down once. */
#include "conv/plan/context.h"
#include "core/dtype.h"
#include "fbfft/plan/cpu.h"
#include "fbfft/plan/explain.h"

#include <string.h>

enum {
    TENSOR_CORE_ALIGNMENT = CF_C2C_FP16_ALIGNMENT /* bytes, of every arithmetic that is told from the default */
};

#define REQUIRE_POINTER(pointer) CF_REQUIRE((pointer) != NULL, #pointer " is NULL; it must not be")

conv_fft_status fbfft_desc_init(fbfft_desc *desc, int rank, fbfft_kind kind) {
    REQUIRE_POINTER(desc);
    CF_FORWARD(cf_fft_check_kind(rank, (int)kind));
    memset(desc, 0, sizeof *desc);
    desc->rank = rank;
    desc->kind = kind;
    desc->scale = 1.0;
    desc->channels = 1;
    for (int a = 0; a < CONV_FFT_MAX_RANK; ++a)
        desc->basis[a] = desc->step[a] = 1;
    return CONV_FFT_SUCCESS;
}

conv_fft_status fbfft_plan_create(conv_fft_context *context, const fbfft_desc *desc, fbfft_plan **plan) {
    REQUIRE_POINTER(context);
    REQUIRE_POINTER(desc);
    REQUIRE_POINTER(plan);
    cf_fft_problem problem;
    CF_FORWARD(cf_fft_resolve(desc, &problem));
    return context->gpu ? cf_fft_plan_create(context->gpu, &problem, plan)
                        : cf_fft_cpu_create(context->device, &problem, plan);
}

void fbfft_plan_destroy(fbfft_plan *plan) {
    if (plan && plan->on_cpu)
        cf_fft_cpu_destroy(plan);
    else
        cf_fft_plan_destroy(plan);
}

const char *fbfft_plan_description(const fbfft_plan *plan) { return plan ? plan->description : ""; }

static size_t workspace_of(const fbfft_plan *plan, int64_t batch) {
    return plan->on_cpu ? cf_fft_cpu_workspace(plan, batch) : cf_fft_plan_workspace(plan, batch);
}

conv_fft_status fbfft_plan_workspace(const fbfft_plan *plan, int64_t batch, size_t *bytes) {
    REQUIRE_POINTER(plan);
    REQUIRE_POINTER(bytes);
    CF_FORWARD(cf_fft_check_batch(&plan->problem, batch));
    *bytes = workspace_of(plan, batch);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status check_pointer(const char *name, const void *pointer, conv_fft_dtype dtype,
                                     const cf_fft_problem *problem, bool is_complex) {
    const size_t number = (is_complex ? 2 : 1) * cf_dtype_bytes(dtype);
    CF_REQUIRE(pointer != NULL, "%s is NULL; it must point to memory of the context's device", name);
    CF_REQUIRE((uintptr_t)pointer % number == 0, "%s is %p; it must be a multiple of %zu bytes, the size of one %s",
               name, pointer, number, is_complex ? "complex number" : "number");
    CF_REQUIRE(!(problem->c2c_fp16 || problem->c2c_split) || (uintptr_t)pointer % TENSOR_CORE_ALIGNMENT == 0,
               "%s is %p; it must be a multiple of %d bytes where %s", name, pointer, TENSOR_CORE_ALIGNMENT,
               problem->c2c_fp16 ? "the spectrum is FP16" : "arithmetic is FBFFT_ARITHMETIC_SPLIT (2)");
    return CONV_FFT_SUCCESS;
}

conv_fft_status fbfft_execute(const fbfft_plan *plan, const void *in, void *out, int64_t batch, void *workspace,
                              size_t bytes, struct CUstream_st *stream) {
    REQUIRE_POINTER(plan);
    CF_FORWARD(cf_fft_check_batch(&plan->problem, batch));
    if (batch == 0)
        return CONV_FFT_SUCCESS;
    const cf_transform_desc *t = &plan->problem.transform;
    const void *signal = t->inverse ? out : in, *spectrum = t->inverse ? in : out;
    const char *const names[] = {"in", "out"};
    CF_FORWARD(check_pointer(names[t->inverse], signal, t->tensor.dtype, &plan->problem, plan->problem.complex_signal));
    CF_FORWARD(check_pointer(names[!t->inverse], spectrum, t->spectrum.dtype, &plan->problem, true));
    const size_t needed = workspace_of(plan, batch);
    CF_REQUIRE(workspace != NULL || needed == 0, "workspace is NULL; a batch of %lld needs %zu bytes of it",
               (long long)batch, needed);
    CF_REQUIRE(bytes >= needed, "bytes is %zu; a batch of %lld needs at least %zu", bytes, (long long)batch, needed);
    if (!plan->on_cpu)
        return cf_fft_execute(plan, in, out, batch, workspace, stream);
    cf_fft_cpu_execute(plan, in, out, batch, workspace);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status find_properties(const conv_fft_context *context, const char *file,
                                       cf_gpu_properties *properties) {
    CF_REQUIRE(context || file, "context and facts_file are NULL; one of them must say which GPU");
    CF_REQUIRE(!context || !file, "context is given, and facts_file is %s; one of them must be NULL", file);
    if (file)
        return cf_gpu_properties_load(file, properties);
    if (!context->gpu)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "context computes on the CPU; it must be a GPU's, or facts_file must describe one");
    *properties = context->gpu->properties;
    return CONV_FFT_SUCCESS;
}

conv_fft_status fbfft_explain(const conv_fft_context *context, const char *facts_file, const fbfft_desc *desc,
                              int64_t batch, char *text, size_t bytes, size_t *needed) {
    REQUIRE_POINTER(desc);
    CF_REQUIRE(text != NULL || bytes == 0, "text is NULL; it must point to %zu bytes", bytes);
    cf_fft_problem problem;
    cf_gpu_properties properties;
    CF_FORWARD(cf_fft_resolve(desc, &problem));
    CF_FORWARD(cf_fft_check_batch(&problem, batch));
    CF_FORWARD(find_properties(context, facts_file, &properties));
    if (properties.compute_major < CF_GPU_MIN_COMPUTE_MAJOR)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "%s has compute capability %lld; at least %d.0 is needed",
                       properties.name, (long long)properties.compute_major, CF_GPU_MIN_COMPUTE_MAJOR);
    cf_text whole = {.text = text, .bytes = bytes};
    CF_FORWARD(cf_fft_explain(&problem, &properties, batch, &whole));
    if (needed)
        *needed = whole.length + 1;
    return CONV_FFT_SUCCESS;
}
