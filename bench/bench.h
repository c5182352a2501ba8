/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - what the parts of bench_conv share. */
#ifndef BENCH_H
#define BENCH_H

#include "conv_fft.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---------------------------------------------------------------------------- shape.c: a layer as plain numbers */

/* A layer with dense channels-first tensors, zero padding and always three axes; axes that the problem lacks
   come first, with extent 1. */
typedef struct bench_shape {
    int64_t batch, groups, in, out; /* in, out: channels per group */
    int64_t d[3], k[3], m[3];       /* extents of the input, the kernel and the output */
    int64_t stride[3], dilation[3], pad[3];
} bench_shape;

void bench_shape_of(const conv_fft_problem *p, const int64_t output[CONV_FFT_MAX_RANK], bench_shape *s);

static inline int64_t bench_volume(const int64_t v[3]) { return v[0] * v[1] * v[2]; }
static inline int64_t bench_x_count(const bench_shape *s) { return s->batch * s->groups * s->in * bench_volume(s->d); }
static inline int64_t bench_w_count(const bench_shape *s) { return s->groups * s->out * s->in * bench_volume(s->k); }
static inline int64_t bench_y_count(const bench_shape *s) { return s->batch * s->groups * s->out * bench_volume(s->m); }

/* Operations of one pass of a direct convolution, padding counted: two per tap and output. */
double bench_direct_gflop(const bench_shape *s);

/* ------------------------------------------------------------------------- suite.c: cases, from files of layers */

typedef struct bench_case {
    char suite[48], name[80];
    conv_fft_problem problem;
    bench_shape shape;
} bench_case;

typedef struct bench_suite {
    bench_case *cases;
    size_t count;
} bench_suite;

/* Reads [NAME=]FILE; NAME is the file's name unless given. False: a message has been written. */
bool bench_suite_read(const char *argument, bench_suite *suite);
void bench_suite_free(bench_suite *suite);

/* Reduces the batch, then the channels, until a direct pass needs at most max_gflop (0: no limit), and says so
   in the name. */
bool bench_case_fit(bench_case *c, double max_gflop);

/* --------------------------------------------------------------------------------- classes of precision, and data.c */

/* What is compared with one another: the type of the tensors and the arithmetic. The name is the results' precision. */
typedef struct bench_class {
    const char *name;
    conv_fft_dtype dtype;
    conv_fft_math math;
    double max_error;      /* of the library: beyond this a result is wrong, not inexact */
    double baseline_error; /* a baseline beyond this computes in another class */
} bench_class;

#define BENCH_CLASSES 4
extern const bench_class bench_classes[BENCH_CLASSES];

/* Inputs x, w, gy of the case at hand, channels first, rounded to the class's type; on the CPU also the outputs. */
typedef struct bench_data {
    float *x, *w, *gy, *y, *gx, *gw;
} bench_data;

struct bench_gpu;

/* A tensor as the implementations are given it: [outer][channels][space], channels last: [outer][space][channels]. */
typedef struct bench_tensor {
    void *memory; /* of the device */
    conv_fft_dtype dtype;
    bool last;
    int64_t outer, channels, space;
} bench_tensor;

typedef struct bench_tensors {
    bench_tensor x, w, gy, y, gx, gw;
} bench_tensors;

/* False: a message has been written, nothing is to be freed. gpu: NULL on the CPU, where the tensors are the data. */
bool bench_data_create(const bench_case *layer, const struct bench_gpu *gpu, bench_data *data);
void bench_data_free(bench_data *data);
bool bench_tensors_create(const bench_case *layer, const struct bench_gpu *gpu, const bench_data *data,
                          bench_tensors *tensors);
void bench_tensors_free(const struct bench_gpu *gpu, bench_tensors *tensors);

/* Overwrites it with NaN. */
bool bench_tensor_poison(const struct bench_gpu *gpu, const bench_tensor *tensor);
/* Some elements; an index is that of the element with channels first. */
bool bench_tensor_fetch(const struct bench_gpu *gpu, const bench_tensor *tensor, const int64_t *index, int64_t count,
                        float *values);

/* Memory of the device. NULL: a message has been written. */
void *bench_allocate(const struct bench_gpu *gpu, size_t bytes, const char *what);
void bench_free(const struct bench_gpu *gpu, void *memory);
/* The stream of everything measured; NULL on the CPU. */
struct CUstream_st *bench_stream(const struct bench_gpu *gpu);

/* -------------------------------------------------------- implementations: ours.c direct_loops.c onednn.c cudnn.c */

typedef struct bench_check bench_check;

typedef struct bench_job {
    const bench_case *layer;
    conv_fft_pass pass;
    bool kept; /* spectra of the tensors that do not change are there already */
    const bench_class *class;
    const bench_data *data;
    const bench_tensors *tensors;
    conv_fft_context *context;
    struct bench_gpu *gpu; /* NULL: the CPU */
    const bench_check *check;
} bench_job;

typedef struct bench_impl {
    char name[32];
    char strategy[512];
    uint64_t workspace_bytes;
    const bench_job *job;
    void *state;
    bool (*run)(struct bench_impl *self);
    bool (*finish)(
        struct bench_impl *self); /* brings the output into the plain layout, outside the timed part; may be NULL */
    void (*close)(struct bench_impl *self);
} bench_impl;

/* Each fills impl in for its job. False: not available for this job, a message has been written, nothing is to
   be closed. */
bool bench_ours_open(bench_impl *impl, const bench_job *job);
/* The library's plan by measurement. */
bool bench_tuned_open(bench_impl *impl, const bench_job *job);
/* The candidate of one family of kernels that the cost model likes best. Quiet where there is none. */
bool bench_staged_open(bench_impl *impl, const bench_job *job);
bool bench_fused_open(bench_impl *impl, const bench_job *job);
bool bench_reference_open(bench_impl *impl, const bench_job *job); /* of cuFFT */
/* The plan of a pass with kept spectra, used without them: they are made in every run. */
bool bench_unkept_open(bench_impl *impl, const bench_job *job);
bool bench_direct_open(bench_impl *impl, const bench_job *job);
bool bench_onednn_open(bench_impl *impl, const bench_job *job);
bool bench_onednn_blocked_open(bench_impl *impl, const bench_job *job);
bool bench_cudnn_open(bench_impl *impl, const bench_job *job);

/* What the transforms take whose spectra are kept, of an opened pass with kept spectra of ours: milliseconds, by the
   library's profile, and a text. False: a message has been written. */
bool bench_ours_transforms(const bench_impl *impl, double *ms, char *text, size_t bytes);
/* Bytes, operations and time of each stage of the library's plan, by its profile. It needs no tensors of the job. False: a
   message has been written. */
bool bench_ours_profile(const bench_job *job, conv_fft_description *description);
/* Makes the plans of all these cases and of the passes in the set and forgets them, on several threads: their kernels
   are in the cache afterwards. A plan that cannot be made is passed over. threads 0: as many as there are processors. */
void bench_prepare(conv_fft_context *context, const bench_case *cases, size_t count, unsigned pass_set, long threads);

/* "oneDNN 2.6.3", or "no oneDNN". */
const char *bench_onednn_version(void);

/* ----------------------------------------------------------- check.c: the error, from sampled outputs in double */

/* Computes a random sample of the outputs of some passes by their definition. NULL: out of memory. */
bench_check *bench_check_create(const bench_case *layer, const bench_data *data, const bench_tensors *tensors,
                                int passes);
void bench_check_destroy(bench_check *check);
/* ||got - exact|| / ||exact|| over the sample, the larger one of two gradients; only the outputs of `passes`. NaN if an
   output is NaN. False: the device failed. */
bool bench_check_error(const bench_check *check, const struct bench_gpu *gpu, int passes, double *error);
/* Overwrites the outputs of some passes with NaN. */
bool bench_poison(const bench_tensors *tensors, const struct bench_gpu *gpu, int passes);

/* ----------------------------------------------------------------------------------------- measure.c: the clock */

typedef struct bench_timer bench_timer;

/* Owns the buffer that flushes the CPU's caches. gpu: NULL: the CPU. NULL: out of memory. */
bench_timer *bench_timer_create(struct bench_gpu *gpu);
void bench_timer_destroy(bench_timer *timer);
/* Bytes touched between two runs. */
size_t bench_timer_flush_bytes(const bench_timer *timer);
/* Least number of runs that count. */
int bench_timer_least_runs(const bench_timer *timer);

double bench_now_ms(void);
double bench_median(double *values, int count); /* sorts them */

/* Median milliseconds of each implementation; they take turns until each has used `seconds` (flushes counted) and
   has run often enough. False: a run failed. */
bool bench_measure(bench_timer *timer, bench_impl *impls, size_t count, double seconds, double *ms);

/* ------------------------------------------------------------------------------------------- csv.c: the results */

typedef struct bench_row {
    char suite[48], layer[80], pass[16], precision[8], impl[32], strategy[640];
    bool channels_last;
    double ms, rel_l2;
    uint64_t workspace_bytes;
} bench_row;

/* Rows of one run of (part of) a suite. header: comment lines, each beginning with '#' and ending with '\n'. */
typedef struct bench_part {
    char header[1024];
    bench_row *rows;
    size_t count, capacity;
} bench_part;

bool bench_part_add(bench_part *part, const bench_row *row);

/* Writes the part into the file; rows there of the same suite, case, pass, precision and layout are replaced. Several
   processes may write into one file. path NULL: to the standard output. */
bool bench_csv_write(const char *path, const bench_part *part);
/* Does the file have rows like this one, under a header of this commit? */
bool bench_csv_has(const char *path, const char *commit, const bench_row *row);

/* -------------------------------------------------------------------------------------------------------- run.c */

typedef struct bench_pass {
    const char *name;
    conv_fft_pass pass;
    bool kept;
} bench_pass;

#define BENCH_PASSES 8
#define BENCH_DEFAULT_PASSES 0x0fu /* those without kept spectra */
extern const bench_pass bench_passes[BENCH_PASSES];

#define BENCH_MAX_SUITES 32

typedef struct bench_options {
    const char *suites[BENCH_MAX_SUITES];
    int suite_count;
    const char *only;          /* a case's name; NULL: all */
    unsigned pass_set;         /* bit i: bench_passes[i] */
    long count, skip, threads; /* 0: all cases; none; OpenMP's default */
    long shard, shards;        /* of every `shards` cases the one with this number, from 0; shards 0: all */
    int device;
    const bench_class *class;
    bool channels_last;
    const char *out, *commit;          /* NULL: the standard output; what git says */
    double seconds, search, max_gflop; /* seconds 0: the device's default */
    double minutes;                    /* 0: no limit */
    bool tune, families, stages, resume, prepare_only, list, verbose;
} bench_options;

/* False: something that was to be measured was not, or gave a wrong result; messages have been written. */
bool bench_run(const bench_options *o);

/* ------------------------------------------------------------------------- build_info.c: the same for all programs */

/* What was built: the one given, else what git says here. */
void bench_commit(const char *given, char *text, size_t bytes);
/* Today. */
void bench_date(char *text, size_t bytes);
/* The version of the GPU's driver. */
void bench_driver(char *text, size_t bytes);
/* The value of a key in a file of "key : value" lines; of "", the first line; `otherwise` if there is none. */
void bench_first_line(const char *path, const char *key, const char *otherwise, char *text, size_t bytes);

/* --------------------------------------------------------------------- conditions.c: what the results' headers say */

/* The conditions of the run, as comment lines. */
void bench_conditions(bench_part *part, const char *suite, const bench_options *o, double seconds,
                      const conv_fft_context *context, const struct bench_gpu *gpu, const bench_timer *timer);

/* ------------------------------------------------------------------------------------------------------- main.c */

/* "bench_conv: " and a message, on the standard error stream. */
void bench_message(const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;

/* Copies a text, cut to fit. */
void bench_copy(char *to, size_t bytes, const char *from);

#endif /* BENCH_H */
