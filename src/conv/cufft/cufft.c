/* SPDX-License-Identifier: Apache-2.0 */
/* Family `cufft`: what a plan needs. */
#include "conv/cufft/state.h"
#include "conv/gpu/device.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/nvrtc.h"

#include <stdlib.h>
#include <string.h>

#define UNIT_BYTES ((int64_t)64 << 20) /* bytes of the padded planes that are transformed at once */

cf_cufft_axis cf_cufft_axis_of(const cf_layer *layer, int axis) {
    const conv_fft_problem *p = &layer->problem;
    const int own = axis - (3 - p->rank);
    if (own < 0)
        return (cf_cufft_axis){.input = 1, .kernel = 1, .output = 1, .stride = 1, .dilation = 1};
    return (cf_cufft_axis){.input = p->input[own],
                           .kernel = p->kernel[own],
                           .output = layer->axis[axis].output,
                           .pad_before = p->pad_before[own],
                           .pad_after = p->pad_after[own],
                           .stride = p->stride[own],
                           .dilation = p->dilation[own]};
}

/* One tile is enough for all three passes: where products wrap around, they meet only zeros. */
static int64_t min_basis(const cf_cufft_axis *a) {
    return cf_max(cf_max(a->input + cf_max(a->pad_before, a->pad_after), a->kernel), a->output);
}

static bool channels_first(const cf_tensor *t, const int64_t extents[5]) {
    const int64_t strides[5] = {t->sample_stride, t->channel_stride, t->axis_stride[0], t->axis_stride[1],
                                t->axis_stride[2]};
    int64_t stride = 1;
    for (int a = 4; a >= 0; --a) {
        if (extents[a] > 1 && strides[a] != stride)
            return false;
        stride *= extents[a];
    }
    return true;
}

bool cf_cufft_feasible(const cf_layer *layer, int pass, const cf_strategy *strategy, const char **why) {
    int64_t x[5], y[5], w[5];
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    cf_strategy s = *strategy;
    *why = "the reference computes FP32 and FP64 tensors only";
    if (layer->x.dtype != layer->compute)
        return false;
    *why = "the reference takes dense tensors only, channels first";
    cf_layer_extents(layer, x, y, w);
    if (!channels_first(&layer->x, x) || !channels_first(&layer->y, y) || !channels_first(&layer->w, w))
        return false;
    for (int a = 0; a < 3; ++a) {
        const cf_cufft_axis axis = cf_cufft_axis_of(layer, a);
        *why = "the reference has no stride and no dilation, and pads with zeros only";
        if (axis.stride != 1 || axis.dilation != 1 || layer->axis[a].mode != CONV_FFT_PAD_ZEROS)
            return false;
        *why = "a basis must be a product of powers of 2, 3, 5 and 7";
        if (!cf_is_basis(s.basis[a]))
            return false;
        *why = "a basis is too small: the reference has one tile, of input and padding, kernel, and output";
        if (s.basis[a] < min_basis(&axis))
            return false;
    }
    *why = "the last basis must be at least 2 for cuFFT";
    if (s.basis[2] < 2)
        return false;
    *why = "its spectra exceed 64 TiB";
    s.spectrum = layer->compute;
    return cf_strategy_spectra(layer, pass, &s, spectrum);
}

bool cf_cufft_runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *strategy,
                      const char **why) {
    (void)layer, (void)pass, (void)strategy;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    *why = "cuFFT needs a GPU";
    if (!gpu)
        return false;
    *why = "cuBLAS is missing; install the CUDA toolkit, or pip install nvidia-cublas (CUDA 12: nvidia-cublas-cu12)";
    if (!device->has_blas)
        return false;
    const cf_library *library = cf_cufft_library(gpu->cufft);
    *why = library->problem;
    return library->usable;
}

static conv_fft_status make_transforms(const conv_fft_plan *plan, const cf_pass_plan *pass, cf_cufft_state *s) {
    const cf_spectrum *const spectra = pass->spectrum;
    const int64_t points = spectra->basis[0] * spectra->basis[1] * spectra->basis[2];
    const int64_t real_bytes = (int64_t)cf_dtype_bytes(spectra->dtype);
    const bool doubles = plan->layer.compute == CONV_FFT_FP64;
    int64_t planes = 1;
    for (int i = 0; i < CF_OPERAND_COUNT; ++i)
        planes = cf_max(planes, spectra[i].groups * spectra[i].rows * spectra[i].columns);
    s->unit = cf_max(1, cf_min(planes, UNIT_BYTES / (points * real_bytes)));
    s->padded = cf_align((size_t)(s->unit * points * real_bytes));
    s->bins = cf_align((size_t)(s->unit * spectra->bins * 2 * real_bytes));
    CF_FORWARD(cf_cufft_plan_create(s->gpu->cufft, spectra->basis, s->unit, false, doubles, &s->forward));
    CF_FORWARD(cf_cufft_plan_create(s->gpu->cufft, spectra->basis, s->unit, true, doubles, &s->inverse));
    const size_t forward = cf_cufft_plan_work_bytes(s->forward), inverse = cf_cufft_plan_work_bytes(s->inverse);
    s->work = cf_align(forward > inverse ? forward : inverse);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status prepare(conv_fft_plan *plan, int index) {
    cf_pass_plan *pass = &plan->pass[index];
    cf_cufft_state *s = calloc(1, sizeof *s);
    if (!s)
        return cf_fail_memory(sizeof *s, "a plan of the reference");
    pthread_mutex_init(&s->mutex, NULL);
    s->gpu = cf_gpu_of_layers(plan->device);
    pass->state = s;
    pass->strategy.spectrum = plan->layer.compute;
    cf_strategy_spectra(&plan->layer, index, &pass->strategy, pass->spectrum);
    pass->product = (cf_cgemm_desc){.kind = cf_pass_table[index].product,
                                    .variant = CF_CGEMM_BLAS,
                                    .dtype = pass->strategy.spectrum,
                                    .bins = pass->spectrum[CF_X].bins,
                                    .in_columns = pass->spectrum[CF_X].columns,
                                    .out_columns = pass->spectrum[CF_Y].columns};
    return plan->layer.batch > 0 ? make_transforms(plan, pass, s) : CONV_FFT_SUCCESS;
}

static conv_fft_status list_kernels(conv_fft_plan *plan, int pass, cf_build_list *list) {
    static const char *const names[CF_CUFFT_KERNELS] = {"cf_cufft_pad", "cf_cufft_crop", "cf_cufft_to_spectrum",
                                                        "cf_cufft_from_spectrum"};
    static const char *const entries[CF_CUFFT_KERNELS] = {
        "CF_CUFFT_PAD_KERNEL", "CF_CUFFT_CROP_KERNEL", "CF_CUFFT_TO_SPECTRUM_KERNEL", "CF_CUFFT_FROM_SPECTRUM_KERNEL"};
    cf_cufft_state *s = plan->pass[pass].state;
    const bool doubles = plan->layer.compute == CONV_FFT_FP64;
    for (int i = 0; i < CF_CUFFT_KERNELS; ++i) {
        cf_source source = {.name = names[i],
                            .options = {"--device-as-default-execution-space", doubles ? "-DCF_REAL=double" : NULL},
                            .dynamic_shared = i >= CF_CUFFT_TO_SPECTRUM ? 32 * 33 * (doubles ? 16u : 8u) : 0};
        CF_FORWARD(cf_gpu_small_text(entries[i], &source));
        CF_FORWARD(cf_build_list_add(list, &source, &s->kernel[i], NULL));
    }
    return CONV_FFT_SUCCESS;
}

static void release(conv_fft_plan *plan, int pass) {
    cf_cufft_state *s = plan->pass[pass].state;
    plan->pass[pass].state = NULL;
    if (!s)
        return;
    cf_cufft_plan_destroy(s->forward);
    cf_cufft_plan_destroy(s->inverse);
    for (int i = 0; i < CF_CUFFT_KERNELS; ++i)
        cf_kernel_destroy(s->kernel[i]);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static size_t chunk_bytes(const cf_spectrum *s, int64_t rows) {
    return cf_align((size_t)(s->groups * s->bins * rows * s->columns) * 2 * cf_dtype_bytes(s->dtype));
}

static cf_workspace workspace(const conv_fft_plan *plan, int set, int64_t rows) {
    const cf_pass_plan *pass = &plan->pass[set == CONV_FFT_FORWARD         ? CF_PASS_FORWARD
                                           : set == CONV_FFT_BACKWARD_DATA ? CF_PASS_DATA
                                                                           : CF_PASS_WEIGHTS];
    const cf_cufft_state *s = pass->state;
    cf_workspace ws = {.rows = rows};
    ws.x = chunk_bytes(&pass->spectrum[CF_W], pass->spectrum[CF_W].rows);
    ws.y = ws.x + chunk_bytes(&pass->spectrum[CF_X], rows);
    ws.scratch = ws.y + chunk_bytes(&pass->spectrum[CF_Y], rows);
    ws.bytes = ws.scratch + s->padded + s->bins + s->work + CF_WORKSPACE_SLACK;
    return ws;
}

conv_fft_status cf_cufft_candidates(const cf_layer *layer, cf_device *device, int pass,
                                    bool (*visit)(const cf_strategy *strategy, void *user), void *user) {
    cf_strategy s, before;
    const char *why;
    memset(&s, 0, sizeof s);
    memset(&before, 0, sizeof before);
    s.family = &cf_cufft_family;
    s.spectrum = layer->compute;
    /* Candidates: the smallest basis, the next one that is even on the last axis, and the next power of two. */
    for (int choice = 0; choice < 3; ++choice) {
        for (int a = 0; a < 3; ++a) {
            const cf_cufft_axis axis = cf_cufft_axis_of(layer, a);
            int64_t n = cf_next_basis(min_basis(&axis));
            while ((choice == 1 && a == 2 && n % 2) || (choice == 2 && (n & (n - 1))) || (a == 2 && n < 2))
                n = cf_next_basis(n + 1);
            s.basis[a] = n;
            s.tiles[a] = 1;
        }
        const bool repeats = memcmp(s.basis, before.basis, sizeof s.basis) == 0;
        before = s;
        if (!repeats && cf_cufft_feasible(layer, pass, &s, &why) && cf_cufft_runs_on(device, layer, pass, &s, &why) &&
            !visit(&s, user))
            break;
    }
    return CONV_FFT_SUCCESS;
}

static const char *library_version(const cf_device *device) {
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    return gpu ? cf_cufft_library(gpu->cufft)->version : NULL;
}

const cf_family cf_cufft_family = {.name = "cufft",
                                   .old_name = "reference",
                                   .fields = 1u << CF_FIELD_BASIS | 1u << CF_FIELD_CHUNK,
                                   .library = "cufft",
                                   .library_version = library_version,
                                   .feasible = cf_cufft_feasible,
                                   .runs_on = cf_cufft_runs_on,
                                   .prepare = prepare,
                                   .list_kernels = list_kernels,
                                   .release = release,
                                   .workspace = workspace,
                                   .run = cf_cufft_run,
                                   .predict = cf_cufft_predict,
                                   .candidates = cf_cufft_candidates};
