/* SPDX-License-Identifier: Apache-2.0 */
/* fused_emit FACTS float|double CORE SHARE PREFIX: write the kernels that the cases of this run launch to CORE sources
 * of the core and SHARE sources of the share (emit.h). fused_registration.h explains the sources. The library's own
 * functions are called with pointers that are never read. Their builds and launches are recorded. */
#include "kernels/emit.h"
#include "kernels/fused_cases.h"

#include "conv/gpu/device.h"
#include "core/dtype.h"
#include "cuda/driver/pointer_check.h"
#include "cuda/jit/kernel_sources.h"
#include "fbfft/common/kernel_text.h"
#include "fbfft/plan/gpu_transform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_WRITTEN = 4000
};

typedef struct built_kernel {
    cf_kernel kernel;
    const char *entry;
    char text[];
} built_kernel;

static int number; /* of the case */
static FILE *out;  /* where its kernels go */
static uint64_t written[MAX_WRITTEN];
static int written_count;

static void need(bool condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "case %d: %s\n", number, what);
    exit(1);
}

/* -------------------------------------------------------------------------------- in the place of the library's own */

conv_fft_status __wrap_cf_kernels_build(cf_gpu *gpu, const cf_source *sources, int count, cf_kernel **kernels);
conv_fft_status __wrap_cf_kernels_build(cf_gpu *gpu, const cf_source *sources, int count, cf_kernel **kernels) {
    for (int i = 0; i < count; ++i) {
        built_kernel *const k = malloc(sizeof *k + strlen(sources[i].text) + 1);
        need(k, "no memory");
        strcpy(k->text, sources[i].text);
        k->entry = sources[i].name;
        k->kernel = (cf_kernel){.gpu = gpu};
        kernels[i] = &k->kernel;
    }
    return CONV_FFT_SUCCESS;
}

void __wrap_cf_kernel_destroy(cf_kernel *kernel);
void __wrap_cf_kernel_destroy(cf_kernel *kernel) { free(kernel); }

static bool is_written(uint64_t hash) {
    for (int i = 0; i < written_count; ++i)
        if (written[i] == hash)
            return true;
    need(written_count < MAX_WRITTEN, "too many kernels");
    written[written_count++] = hash;
    return false;
}

conv_fft_status __wrap_cf_kernel_start(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                       cf_cu_stream stream);
conv_fft_status __wrap_cf_kernel_start(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                       cf_cu_stream stream) {
    (void)launch, (void)parameters, (void)stream;
    const built_kernel *const built = (const built_kernel *)(const void *)kernel;
    const char *const text = built->text;
    const uint64_t hash = fused_text_hash(text);
    if (is_written(hash))
        return CONV_FFT_SUCCESS;
    char name[64];
    snprintf(name, sizeof name, "kernel_%d_%d", number, written_count);
    const char *const entry = built->entry;
    fprintf(out, "#define %s %s\nnamespace in_%s {\n%s}\n#undef %s\n", entry, name, name, text, entry);
    fprintf(out, "static const Registration add_%s(0x%llxull, in_%s::%s);\n\n", name, (unsigned long long)hash, name,
            name);
    return CONV_FFT_SUCCESS;
}

/* Transforms of the weights have their own tests. */
conv_fft_status __wrap_cf_gpu_transforms_list(cf_gpu_transform *const *transforms, int count, cf_gpu_pair *const *pairs,
                                              int pair_count, bool aligned, cf_build_list *list);
conv_fft_status __wrap_cf_gpu_transforms_list(cf_gpu_transform *const *transforms, int count, cf_gpu_pair *const *pairs,
                                              int pair_count, bool aligned, cf_build_list *list) {
    (void)transforms, (void)count, (void)pairs, (void)pair_count, (void)aligned, (void)list;
    return CONV_FFT_SUCCESS;
}

conv_fft_status __wrap_cf_gpu_transform_run(const cf_gpu_transform *transform, const cf_gpu_transform_call *call,
                                            struct CUstream_st *stream);
conv_fft_status __wrap_cf_gpu_transform_run(const cf_gpu_transform *transform, const cf_gpu_transform_call *call,
                                            struct CUstream_st *stream) {
    (void)transform, (void)call, (void)stream;
    return CONV_FFT_SUCCESS;
}

conv_fft_status __wrap_cf_gpu_zero(cf_device *device, const cf_tensor *tensor, const int64_t extents[5], void *data,
                                   struct CUstream_st *stream);
conv_fft_status __wrap_cf_gpu_zero(cf_device *device, const cf_tensor *tensor, const int64_t extents[5], void *data,
                                   struct CUstream_st *stream) {
    (void)device, (void)tensor, (void)extents, (void)data, (void)stream;
    return CONV_FFT_SUCCESS;
}

/* All memory is host memory. */
conv_fft_status __wrap_cf_gpu_check_in_context(const cf_gpu *gpu, const cf_gpu_argument *arguments, int count,
                                               cf_cu_stream stream);
conv_fft_status __wrap_cf_gpu_check_in_context(const cf_gpu *gpu, const cf_gpu_argument *arguments, int count,
                                               cf_cu_stream stream) {
    (void)gpu, (void)arguments, (void)count, (void)stream;
    return CONV_FFT_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

static void emit(const fused_case *c, const char *properties) {
    /* Addresses far apart: nothing reads the memory. */
    const uintptr_t far = (uintptr_t)1 << 40;
    fused_opened o;
    need(fused_case_open(c, number, properties, &o), conv_fft_last_error());
    const size_t shift = c->shifted ? cf_dtype_bytes(o.problem.dtype) : 0;
    void *const x = (void *)(far + shift), *const y = (void *)(2 * far + shift), *const gx = (void *)(3 * far + shift);
    void *const w = (void *)(4 * far + (c->shifted ? cf_dtype_bytes(o.plan->layer.w.dtype) : 0));
    void *const gw = (void *)(5 * far + (c->shifted ? cf_dtype_bytes(o.plan->layer.gw.dtype) : 0));
    void *const memory = (void *)(6 * far);
    const size_t bytes = SIZE_MAX;
    conv_fft_status status = CONV_FFT_SUCCESS;
    if (c->passes & CONV_FFT_FORWARD)
        status = conv_fft_forward(o.plan, x, w, NULL, y, memory, bytes, NULL);
    need(status == CONV_FFT_SUCCESS, conv_fft_last_error());
    if (c->passes & CONV_FFT_BACKWARD_DATA)
        status = conv_fft_backward_data(o.plan, w, y, gx, 0, memory, bytes, NULL);
    need(status == CONV_FFT_SUCCESS, conv_fft_last_error());
    if (c->passes & CONV_FFT_BACKWARD_WEIGHTS)
        status = conv_fft_backward_weights(o.plan, x, y, gw, NULL, 0, memory, bytes, NULL);
    need(status == CONV_FFT_SUCCESS, conv_fft_last_error());
    if ((c->passes & CONV_FFT_BACKWARD) == CONV_FFT_BACKWARD)
        status = conv_fft_backward(o.plan, x, w, y, gx, gw, NULL, 0, memory, bytes, NULL);
    need(status == CONV_FFT_SUCCESS, conv_fft_last_error());
    fused_case_close(&o);
}

/* The core is written first: a kernel that core and share have in common belongs to the core. */
static void emit_part(emission *e, test_part part, bool doubles, const char *properties, const fused_case *cases,
                      int count) {
    for (number = 0; number < count; ++number)
        if (fused_case_is_double(&cases[number]) == doubles && fused_case_part(number) == part) {
            out = emission_next(e, part);
            emit(&cases[number], properties);
        }
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: fused_emit FACTS float|double CORE SHARE PREFIX\n");
        return 1;
    }
    const bool doubles = strcmp(argv[2], "double") == 0;
    const fused_case *cases;
    const int count = fused_case_list(argv[1], &cases);
    emission e;
    emission_open(&e, argv[5], "kernels/fused_registration.h", atoi(argv[3]), atoi(argv[4]));
    emit_part(&e, TEST_CORE, doubles, argv[1], cases, count);
    emit_part(&e, TEST_SHARE, doubles, argv[1], cases, count);
    return emission_close(&e);
}
