/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cufft` transforms whole planes in place; in padded cases its planes already hold their zeros. `cufft-padded` also
 * moves the data into or out of such planes, with a kernel that touches nothing else; the planes are zeroed once
 * before. cuFFT reads and writes spectra in natural order.
 */
#include "fft/baselines.h"

#include "cuda/jit/launch.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    CUFFT_TYPE_C2C = 0x29,
    CUFFT_TYPE_R2C = 0x2a,
    CUFFT_TYPE_C2R = 0x2c,
    CUFFT_TYPE_D2Z = 0x6a,
    CUFFT_TYPE_Z2D = 0x6c,
    CUFFT_FORWARD = -1,
    CUDA_C_16F = 6,
    MOVE_THREADS = 256
};

typedef struct with_cufft {
    fft_cufft_plan plan;
    bool planned, moves; /* moves: each run moves the data */
    float *planes;       /* whole planes; NULL if the case is not padded */
    void *spectrum;      /* C2R: a copy of the input, which cuFFT may destroy */
    void *natural;       /* C2R: the input in natural order, if the case has another one */
    cf_kernel *move;
} with_cufft;

static conv_fft_status cufft_status(unsigned result, const char *call) {
    return result == 0 ? CONV_FFT_SUCCESS : cf_fail(CONV_FFT_DEVICE_ERROR, "%s failed with result %u", call, result);
}
#define CUFFT(call, ...) cufft_status(impl->job->cufft->call(__VA_ARGS__), #call)

/* ---- between data and planes */

/* For one or two axes and FP32, as in all padded cases. */
static conv_fft_status build_move(const fft_job *job, cf_kernel **kernel) {
    static const char format[] = "extern \"C\" __global__ void move(const float *in, float *out, unsigned count) {\n"
                                 "    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, row = i / %uu;\n"
                                 "    const unsigned at = (row / %uu * %uu + row %% %uu) * %uu + i %% %uu;\n"
                                 "    if (i < count) out[%s] = in[%s];\n"
                                 "}\n";
    const fft_case *const c = job->c;
    const unsigned rows = (unsigned)c->data[1], columns = (unsigned)c->data[2];
    char text[512];
    snprintf(text, sizeof text, format, columns, rows, (unsigned)c->basis[1], rows, (unsigned)c->basis[2], columns,
             job->inverse ? "i" : "at", job->inverse ? "at" : "i");
    const cf_source source = {.name = "move", .text = text};
    return cf_kernels_build(job->gpu, &source, 1, kernel);
}

static conv_fft_status move(const fft_job *job, const with_cufft *w) {
    unsigned count = (unsigned)(fft_signal(job->c) * fft_planes(job->c));
    const void *in = job->inverse ? w->planes : job->in;
    void *out = job->inverse ? job->out : w->planes;
    const cf_launch launch = {.grid = {(count + MOVE_THREADS - 1) / MOVE_THREADS, 1, 1}, .block = {MOVE_THREADS, 1, 1}};
    void *parameters[] = {&in, &out, &count};
    return cf_kernel_launch(w->move, &launch, parameters, job->stream);
}

static conv_fft_status make_planes(fft_impl *impl, with_cufft *w) {
    const fft_job *const job = impl->job;
    const size_t bytes = (size_t)(fft_points(job->c) * fft_planes(job->c)) * sizeof(float);
    void *memory = NULL;
    CF_FORWARD(build_move(job, &w->move));
    CF_FORWARD(cf_gpu_allocate(job->gpu, bytes, &memory));
    w->planes = memory;
    impl->workspace_bytes += bytes;
    CF_FORWARD(cf_gpu_fill(job->gpu, w->planes, 0, bytes, job->stream));
    return job->inverse ? CONV_FFT_SUCCESS : move(job, w);
}

/* ---- cuFFT */

static unsigned type_of(const fft_job *job) {
    if (job->c->complex_signal)
        return CUFFT_TYPE_C2C;
    if (job->c->doubles)
        return job->inverse ? CUFFT_TYPE_Z2D : CUFFT_TYPE_D2Z;
    return job->inverse ? CUFFT_TYPE_C2R : CUFFT_TYPE_R2C;
}

static conv_fft_status make_half_plan(fft_impl *impl, with_cufft *w) {
    const fft_case *const c = impl->job->c;
    long long n[3] = {c->basis[0], c->basis[1], c->basis[2]};
    size_t bytes = 0;
    CF_FORWARD(CUFFT(cufftCreate, &w->plan));
    w->planned = true;
    CF_FORWARD(CUFFT(cufftXtMakePlanMany, w->plan, c->rank, n + 3 - c->rank, NULL, 1, 0, CUDA_C_16F, NULL, 1, 0,
                     CUDA_C_16F, fft_planes(c), &bytes, CUDA_C_16F));
    impl->workspace_bytes += bytes;
    return CUFFT(cufftSetStream, w->plan, impl->job->stream);
}

static conv_fft_status make_plan(fft_impl *impl, with_cufft *w) {
    const fft_case *const c = impl->job->c;
    int n[3] = {(int)c->basis[0], (int)c->basis[1], (int)c->basis[2]};
    size_t bytes = 0;
    if (c->halves)
        return make_half_plan(impl, w);
    CF_FORWARD(CUFFT(cufftPlanMany, &w->plan, c->rank, n + 3 - c->rank, NULL, 1, 0, NULL, 1, 0, type_of(impl->job),
                     (int)fft_planes(c)));
    w->planned = true;
    CF_FORWARD(CUFFT(cufftSetStream, w->plan, impl->job->stream));
    CF_FORWARD(CUFFT(cufftGetSize, w->plan, &bytes));
    impl->workspace_bytes += bytes;
    return CONV_FFT_SUCCESS;
}

static conv_fft_status prepare(fft_impl *impl, with_cufft *w) {
    const fft_job *const job = impl->job;
    if (fft_padded(job->c))
        CF_FORWARD(make_planes(impl, w));
    if (job->inverse)
        CF_FORWARD(cf_gpu_allocate(job->gpu, job->in_bytes, &w->spectrum));
    if (job->inverse && job->c->frequency_major) {
        CF_FORWARD(cf_gpu_allocate(job->gpu, job->in_bytes, &w->natural));
        CF_FORWARD(fft_natural_input(job, w->natural));
    }
    CF_FORWARD(cf_gpu_enter(job->gpu));
    return cf_gpu_left(job->gpu, make_plan(impl, w));
}

static void close_cufft(fft_impl *impl) {
    with_cufft *const w = impl->state;
    const cf_gpu *const gpu = impl->job->gpu;
    if (w->planned && cf_gpu_enter(gpu) == CONV_FFT_SUCCESS) {
        impl->job->cufft->cufftDestroy(w->plan);
        cf_gpu_leave(gpu);
    }
    cf_kernel_destroy(w->move);
    cf_gpu_free(gpu, w->planes);
    cf_gpu_free(gpu, w->spectrum);
    cf_gpu_free(gpu, w->natural);
    free(w);
}

static conv_fft_status restore_spectrum(fft_impl *impl) {
    const fft_job *const job = impl->job;
    const with_cufft *const w = impl->state;
    return cf_gpu_copy(job->gpu, w->spectrum, w->natural ? w->natural : job->in, job->in_bytes, job->stream);
}

static conv_fft_status execute_from(fft_impl *impl, void *in, void *out) {
    const fft_cufft_plan plan = ((const with_cufft *)impl->state)->plan;
    if (impl->job->c->halves)
        return CUFFT(cufftXtExec, plan, in, out, CUFFT_FORWARD);
    switch (type_of(impl->job)) {
    case CUFFT_TYPE_C2C:
        return CUFFT(cufftExecC2C, plan, in, out, CUFFT_FORWARD);
    case CUFFT_TYPE_D2Z:
        return CUFFT(cufftExecD2Z, plan, in, out);
    case CUFFT_TYPE_Z2D:
        return CUFFT(cufftExecZ2D, plan, in, out);
    case CUFFT_TYPE_C2R:
        return CUFFT(cufftExecC2R, plan, in, out);
    default:
        return CUFFT(cufftExecR2C, plan, in, out);
    }
}

static conv_fft_status execute(fft_impl *impl) {
    const fft_job *const job = impl->job;
    const with_cufft *const w = impl->state;
    CF_FORWARD(cf_gpu_enter(job->gpu));
    void *const signal = w->planes ? w->planes : job->inverse ? job->out : job->in;
    return cf_gpu_left(job->gpu,
                       execute_from(impl, job->inverse ? w->spectrum : signal, job->inverse ? signal : job->out));
}

static conv_fft_status run_cufft(fft_impl *impl) {
    const with_cufft *const w = impl->state;
    if (w->moves && !impl->job->inverse)
        CF_FORWARD(move(impl->job, w));
    CF_FORWARD(execute(impl));
    return w->moves && impl->job->inverse ? move(impl->job, w) : CONV_FFT_SUCCESS;
}

static conv_fft_status move_out(fft_impl *impl) { return move(impl->job, impl->state); }

static conv_fft_status open_cufft(fft_impl *impl, const char *name, const char *strategy, bool moves) {
    if (!impl->job->cufft->library.usable)
        return cf_fail(CONV_FFT_LIBRARY_MISSING, "cuFFT: %s", impl->job->cufft->library.problem);
    with_cufft *const w = calloc(1, sizeof *w);
    if (!w)
        return cf_fail_memory(sizeof *w, "a baseline");
    w->moves = moves;
    impl->state = w;
    snprintf(impl->name, sizeof impl->name, "%s", name);
    snprintf(impl->strategy, sizeof impl->strategy, "%s", strategy);
    impl->transforms = impl->natural = true;
    impl->restore = impl->job->inverse ? restore_spectrum : NULL;
    impl->run = run_cufft;
    impl->finish = fft_padded(impl->job->c) && impl->job->inverse && !moves ? move_out : NULL;
    impl->close = close_cufft;
    const conv_fft_status status = prepare(impl, w);
    if (status != CONV_FFT_SUCCESS)
        close_cufft(impl);
    return status;
}

conv_fft_status fft_cufft_alone_open(fft_impl *impl) {
    return open_cufft(impl, "cufft", impl->job->c->halves ? "cufftXtMakePlanMany" : "cufftPlanMany", false);
}

conv_fft_status fft_cufft_padded_open(fft_impl *impl) {
    return open_cufft(impl, "cufft-padded",
                      impl->job->inverse ? "cufftPlanMany + cropping copy" : "padding copy + cufftPlanMany", true);
}

/* ---- a copy */

typedef struct copying {
    void *from, *to;
    size_t bytes;
} copying;

static conv_fft_status run_copy(fft_impl *impl) {
    const copying *const c = impl->state;
    return cf_gpu_copy(impl->job->gpu, c->to, c->from, c->bytes, impl->job->stream);
}

static void close_copy(fft_impl *impl) {
    copying *const c = impl->state;
    cf_gpu_free(impl->job->gpu, c->from);
    cf_gpu_free(impl->job->gpu, c->to);
    free(c);
}

/* It moves as many bytes as the transform reads and writes, and its numbers are as random as the input. */
static conv_fft_status make_copy(const fft_job *job, copying *c) {
    CF_FORWARD(cf_gpu_allocate(job->gpu, c->bytes, &c->from));
    CF_FORWARD(cf_gpu_allocate(job->gpu, c->bytes, &c->to));
    for (size_t done = 0; done < c->bytes; done += job->in_bytes) {
        const size_t left = c->bytes - done;
        CF_FORWARD(cf_gpu_copy(job->gpu, (char *)c->from + done, job->in, left < job->in_bytes ? left : job->in_bytes,
                               job->stream));
    }
    return cf_gpu_synchronize(job->gpu, job->stream);
}

conv_fft_status fft_copy_open(fft_impl *impl) {
    copying *const c = calloc(1, sizeof *c);
    if (!c)
        return cf_fail_memory(sizeof *c, "a baseline");
    c->bytes = (impl->job->in_bytes + impl->job->out_bytes) / 2;
    impl->state = c;
    snprintf(impl->name, sizeof impl->name, "copy");
    snprintf(impl->strategy, sizeof impl->strategy, "(read + written) / 2 bytes");
    impl->run = run_copy;
    impl->close = close_copy;
    const conv_fft_status status = make_copy(impl->job, c);
    if (status != CONV_FFT_SUCCESS)
        close_copy(impl);
    return status;
}
