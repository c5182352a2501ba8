/* SPDX-License-Identifier: Apache-2.0 */
/* Every public function of fbfft.h: check the arguments, one call down. */
#include "conv/context.h"
#include "fbfft/plan.h"

#include <string.h>

#define REQUIRE_POINTER(pointer) CF_REQUIRE((pointer) != NULL, #pointer " is NULL; it must not be")

static conv_fft_status check_kind(int rank, int kind) {
    CF_REQUIRE(rank >= 1 && rank <= CONV_FFT_MAX_RANK, "rank is %d; it must be 1 to %d", rank, CONV_FFT_MAX_RANK);
    CF_REQUIRE(kind == FBFFT_R2C || kind == FBFFT_C2R, "kind is %d; it must be FBFFT_R2C (0) or FBFFT_C2R (1)", kind);
    return CONV_FFT_SUCCESS;
}

conv_fft_status fbfft_desc_init(fbfft_desc *desc, int rank, fbfft_kind kind) {
    REQUIRE_POINTER(desc);
    CF_FORWARD(check_kind(rank, (int)kind));
    memset(desc, 0, sizeof *desc);
    desc->rank = rank;
    desc->kind = kind;
    desc->scale = 1.0;
    for (int a = 0; a < CONV_FFT_MAX_RANK; ++a)
        desc->basis[a] = 1;
    return CONV_FFT_SUCCESS;
}

conv_fft_status fbfft_plan_create(conv_fft_context *context, const fbfft_desc *desc, fbfft_plan **plan) {
    REQUIRE_POINTER(context);
    REQUIRE_POINTER(desc);
    REQUIRE_POINTER(plan);
    CF_FORWARD(check_kind(desc->rank, (int)desc->kind));
    for (int a = 0; a < desc->rank; ++a) {
        CF_REQUIRE(desc->basis[a] >= 1, "basis[%d] is %lld; it must be at least 1", a, (long long)desc->basis[a]);
        CF_REQUIRE(desc->extent[a] >= 0 && desc->extent[a] <= desc->basis[a],
                   "extent[%d] is %lld; it must be 0 to %lld, the basis", a, (long long)desc->extent[a],
                   (long long)desc->basis[a]);
    }
    for (int i = 0; i < 4; ++i)
        CF_REQUIRE(desc->reserved[i] == 0, "reserved[%d] is %lld; it must be 0", i, (long long)desc->reserved[i]);
    if (!context->gpu)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "context is on the CPU; this version has transforms on GPUs only");
    return cf_fft_plan_create(context->gpu, desc, plan);
}

void fbfft_plan_destroy(fbfft_plan *plan) { cf_fft_plan_destroy(plan); }

const char *fbfft_plan_description(const fbfft_plan *plan) { return plan ? plan->description : ""; }

static conv_fft_status check_pointer(const char *name, const void *pointer, bool empty) {
    CF_REQUIRE(pointer != NULL || empty, "%s is NULL; it must point to device memory", name);
    CF_REQUIRE((uintptr_t)pointer % 4 == 0, "%s is %p; it must be a multiple of 4 bytes, the size of one real number",
               name, pointer);
    return CONV_FFT_SUCCESS;
}

conv_fft_status fbfft_execute(const fbfft_plan *plan, const void *in, void *out, int64_t batch,
                              struct CUstream_st *stream) {
    REQUIRE_POINTER(plan);
    CF_REQUIRE(batch >= 0, "batch is %lld; it must be at least 0", (long long)batch);
    CF_FORWARD(check_pointer("in", in, batch == 0));
    CF_FORWARD(check_pointer("out", out, batch == 0));
    return cf_fft_execute(plan, in, out, batch, stream);
}
