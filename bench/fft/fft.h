/* SPDX-License-Identifier: Apache-2.0 */
/* fft.h - what the parts of bench_fft share. Messages and the results file are those of bench.h. */
#ifndef BENCH_FFT_H
#define BENCH_FFT_H

#include "bench.h"
#include "cuda/driver/memory.h"
#include "cuda/jit/kernel.h"
#include "fbfft.h"

/* ------------------------------------------------------------------------------------------------ cases.c: the suite */

/* Planes of a basis, and the part of them that holds data (forward) or is wanted (inverse): three axes, those that a rank
 * lacks come first and have one point. */
typedef struct fft_case {
    char name[80];
    int rank;
    int64_t basis[3], data[3], channels, batch;
    bool complex_signal; /* C2C, forward only; else R2C and C2R */
    bool
        frequency_major; /* the spectrum: [bin][batch][channel]. Else, as signals always are, planes one after the other */
    bool doubles;
    bool halves; /* C2C of FP16, both sides */
} fft_case;

#define FFT_MAX_CASES 112

/* Writes the cases and returns how many. Names are unique among the cases of one type. quick: batches of at most 2^22
 * elements. */
size_t fft_suite(bool quick, fft_case cases[FFT_MAX_CASES]);

bool fft_padded(const fft_case *c);
bool fft_same_transform(const fft_case *a, const fft_case *b); /* with any batches */
const char *fft_pass(const fft_case *c, bool inverse);         /* of the results */
const char *fft_precision(const fft_case *c);

static inline int64_t fft_planes(const fft_case *c) { return c->batch * c->channels; }
static inline int64_t fft_points(const fft_case *c) { return c->basis[0] * c->basis[1] * c->basis[2]; }
static inline int64_t fft_last_bins(const fft_case *c) { return c->complex_signal ? c->basis[2] : c->basis[2] / 2 + 1; }
static inline int64_t fft_bins(const fft_case *c) { return c->basis[0] * c->basis[1] * fft_last_bins(c); }
static inline size_t fft_number_bytes(const fft_case *c) {
    return c->doubles ? sizeof(double) : c->halves ? sizeof(uint16_t) : sizeof(float);
}
/* Numbers of one plane, two a complex one. */
static inline int64_t fft_signal(const fft_case *c) {
    return c->data[0] * c->data[1] * c->data[2] * (c->complex_signal ? 2 : 1);
}
static inline int64_t fft_spectrum(const fft_case *c) { return 2 * fft_bins(c); }

/* ------------------------------------------------------------------------------------------ cufft.c: cuFFT's library */

typedef int fft_cufft_plan;
struct float2;
struct double2;

/* X(member, parameters); the members have the names of the exported symbols. */
#define FFT_CUFFT_FUNCTIONS(X)                                                                                     \
    X(cufftGetProperty, (unsigned property, int *value))                                                           \
    X(cufftPlanMany, (fft_cufft_plan * plan, int rank, int *n, int *in_embed, int in_stride, int in_distance,      \
                      int *out_embed, int out_stride, int out_distance, unsigned type, int batch))                 \
    X(cufftCreate, (fft_cufft_plan * plan))                                                                        \
    X(cufftXtMakePlanMany, (fft_cufft_plan plan, int rank, long long *n, long long *in_embed, long long in_stride, \
                            long long in_distance, int in_type, long long *out_embed, long long out_stride,        \
                            long long out_distance, int out_type, long long batch, size_t *bytes, int type))       \
    X(cufftXtExec, (fft_cufft_plan plan, void *in, void *out, int direction))                                      \
    X(cufftGetSize, (fft_cufft_plan plan, size_t * bytes))                                                         \
    X(cufftSetStream, (fft_cufft_plan plan, cf_cu_stream stream))                                                  \
    X(cufftExecR2C, (fft_cufft_plan plan, float *in, struct float2 *out))                                          \
    X(cufftExecC2R, (fft_cufft_plan plan, struct float2 * in, float *out))                                         \
    X(cufftExecC2C, (fft_cufft_plan plan, struct float2 * in, struct float2 * out, int direction))                 \
    X(cufftExecD2Z, (fft_cufft_plan plan, double *in, struct double2 *out))                                        \
    X(cufftExecZ2D, (fft_cufft_plan plan, struct double2 * in, double *out))                                       \
    X(cufftDestroy, (fft_cufft_plan plan))

typedef struct fft_cufft {
    cf_library library;
#define FFT_CUFFT_MEMBER(member, parameters) unsigned(*member) parameters;
    FFT_CUFFT_FUNCTIONS(FFT_CUFFT_MEMBER)
#undef FFT_CUFFT_MEMBER
} fft_cufft;

/* LIBRARY_MISSING: as library.problem says. */
conv_fft_status fft_cufft_open(fft_cufft *cufft, const cf_gpu *gpu);

/* ------------------------------------------------------------------------------- reference.c: the definition, in double */

/* out <- the unscaled transform of one plane; both in natural order. OUT_OF_MEMORY. */
conv_fft_status fft_reference(const fft_case *c, bool inverse, const float *in, double *out);
/* Complex multiplications that it takes. */
int64_t fft_reference_work(const fft_case *c);

/* --------------------------------------------------------------------------------------- data.c: inputs and the error */

/* One case, one direction. */
typedef struct fft_job {
    const fft_case *c;
    bool inverse;
    cf_gpu *gpu;
    conv_fft_context *context;
    const fft_cufft *cufft;
    cf_cu_stream stream;
    void *in, *out; /* device memory; `in` is never written to */
    size_t in_bytes, out_bytes;
    float *block; /* the first planes of `in`, in natural order, on the host; the others repeat them */
    int64_t block_planes;
    double *expected; /* of sampled planes, in natural order */
} fft_job;

/* Fills in job.in and all below it: random numbers, those of spectra Hermitian if the signal is real. */
conv_fft_status fft_data_create(fft_job *job);
void fft_data_destroy(fft_job *job);

/* The input in natural order, whatever order the case has, into in_bytes of device memory. */
conv_fft_status fft_natural_input(const fft_job *job, void *to);
/* Overwrites the output with NaN. */
conv_fft_status fft_poison(const fft_job *job);
/* ||out - exact|| / ||exact|| over the sampled planes; NaN if an output is NaN. natural: the output is in natural order,
 * whatever order the case has. */
conv_fft_status fft_error(const fft_job *job, bool natural, double *error);

/* ------------------------------------------------------------------------------------- ours.c baselines.c: the rivals */

typedef struct fft_impl {
    char name[32], strategy[640];
    uint64_t workspace_bytes;
    const fft_job *job;
    void *state;
    bool transforms;                                   /* its output can be compared */
    bool natural;                                      /* its output is in natural order, whatever the case says */
    conv_fft_status (*restore)(struct fft_impl *self); /* outside the timed part, before each run; may be NULL */
    conv_fft_status (*run)(struct fft_impl *self);
    conv_fft_status (*finish)(struct fft_impl *self); /* brings the result to job.out, not timed; may be NULL */
    void (*close)(struct fft_impl *self);
} fft_impl;

/* Each fills in impl, whose job is set; on failure nothing is to be closed. */
conv_fft_status fft_ours_open(fft_impl *impl);
conv_fft_status fft_cufft_alone_open(fft_impl *impl);
conv_fft_status fft_cufft_padded_open(fft_impl *impl); /* with a copy into, or out of, whole planes */
conv_fft_status fft_copy_open(fft_impl *impl);

fbfft_desc fft_desc_of(const fft_case *c, bool inverse);

/* ------------------------------------------------------------------------------------------------ measure.c: the clock */

#define FFT_MAX_IMPLS 4
#define FFT_FLUSH_BYTES ((size_t)256 << 20)

typedef struct fft_timer {
    const cf_gpu *gpu;
    cf_cu_stream stream;
    cf_cu_event start, end;
    void *flush;
    int repeats;
} fft_timer;

conv_fft_status fft_timer_create(fft_timer *timer, const cf_gpu *gpu, cf_cu_stream stream, int repeats);
void fft_timer_destroy(fft_timer *timer);

/* Median milliseconds of each, by device events. They take turns, and L2 is flushed before every run. */
conv_fft_status fft_measure(const fft_timer *timer, fft_impl *impls, size_t count, double *ms);

/* ------------------------------------------------------------------------------------------------------------- run.c */

typedef struct fft_options {
    const char *out, *only, *commit, *precision; /* NULL: standard output, all cases, git's answer, any */
    const char *cache;                           /* of kernels; NULL: a folder of this run */
    bool quick;
} fft_options;

/* False: something that was to be measured was not, or gave a wrong result; messages have been written. */
bool fft_bench(const fft_options *o, const fft_case *cases, size_t count);

#endif
