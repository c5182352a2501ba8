/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stage interface: what a device must do for the pipeline transform -> product -> inverse.
 *
 * Plans and family `staged` use these operations only, and do not know the device. Families with kernels of their own
 * know it. Objects are made at plan time. The run operations allocate nothing, and touch only their arguments and
 * `scratch`.
 */
#ifndef CF_CORE_STAGE_H
#define CF_CORE_STAGE_H

#include "core/recording.h"
#include "core/spectrum.h"
#include "core/status.h"
#include "core/window.h"

#include <stdbool.h>

/* One transform, either way, between a tensor and a spectrum of the same window. */
typedef struct cf_transform_desc {
    bool inverse;
    cf_tensor tensor;
    cf_window window;
    cf_spectrum spectrum;
    double scale; /* factor of the results; a true inverse has 1 / product of the basis */
    /* Inverse only. Rows of one sample may write the same elements; such rows are stored in order. Rows do not overlap
     * if their distance is a multiple of `ordered` (a divisor of rows_per_sample; 0 and 1: no rows overlap). Among
     * each beside * between rows, rows at a distance of `between` do not overlap either. */
    int64_t ordered, beside, between;
} cf_transform_desc;

/* The three products per bin, rows r, output columns o, input columns c. */
typedef enum cf_cgemm_kind {
    CF_CGEMM_FORWARD,          /* Y[r][o] = sum_c X[r][c] conj(W[o][c]) */
    CF_CGEMM_BACKWARD_DATA,    /* X[r][c] = sum_o Y[r][o] W[o][c] */
    CF_CGEMM_BACKWARD_WEIGHTS, /* W[o][c] = sum_r conj(Y[r][o]) X[r][c] */
} cf_cgemm_kind;

/* How the product is computed. */
typedef enum cf_cgemm_variant {
    CF_CGEMM_BLAS,
    CF_CGEMM_LOOP,
    CF_CGEMM_TENSOR, /* the library's own kernels on tensor cores, on devices with tensor_flops */
    CF_CGEMM_VARIANTS
} cf_cgemm_variant;

typedef struct cf_cgemm cf_cgemm; /* the compiled kernel of variant TENSOR; each device has its own type */

typedef struct cf_cgemm_desc {
    cf_cgemm_kind kind;
    cf_cgemm_variant variant;
    conv_fft_dtype dtype;                  /* of a real part that is read; 16-bit types: variant TENSOR only */
    conv_fft_dtype result_dtype;           /* of a real part that is written */
    conv_fft_math math;                    /* TF32 and HALF allow rounded factors */
    int64_t bins, in_columns, out_columns; /* columns of X and of Y */
    int64_t rows, groups;                  /* of X and Y in total; they choose the compiled kernel */
    cf_cgemm *compiled;                    /* variant TENSOR: made by products_list */
} cf_cgemm_desc;

/* A convolution by its definition. Output o of an axis reads coordinate origin + o * stride + tap * dilation. */
typedef struct cf_convolution_axis {
    int64_t input, output, taps, stride, dilation, origin;
    conv_fft_padding mode;
} cf_convolution_axis;

/* x[sample][group][in channel], y[sample][group][out channel], w[group][out channel][in channel], each with three axes.
 * The gradient of x needs padding with zeros. */
typedef struct cf_convolution_desc {
    cf_cgemm_kind kind;
    cf_tensor x, w, y;
    cf_convolution_axis axis[3];
    int64_t batch, groups, in_channels, out_channels; /* channels: of a group */
} cf_convolution_desc;

/* Sum of scratch[sample][channel][padded axes] over the padded positions of each element of `tensor`. The scratch is
 * dense and of the compute type. GPUs also read a scratch whose rows are further apart, one of the tensor's type, and
 * with `last` one in the order [sample][padded axes][channel of all groups]. */
typedef struct cf_fold_desc {
    cf_tensor tensor;
    conv_fft_dtype scratch_dtype;
    int64_t channels;  /* per group */
    int64_t pad[3];    /* padded index = index + pad */
    int64_t padded[3]; /* extents of the scratch */
    int64_t row;       /* positions from one row of the scratch to the next */
    int64_t size[3];   /* extents of the tensor */
    conv_fft_padding mode;
    bool last;
} cf_fold_desc;

/* gbias[channel] = sum over samples and positions of gy. */
typedef struct cf_bias_desc {
    cf_tensor tensor;
    conv_fft_dtype result_dtype;
    int64_t samples, channels; /* channels over all groups */
    int64_t size[3];
} cf_bias_desc;

typedef struct cf_transform cf_transform; /* each device's own */
typedef struct cf_convolution cf_convolution;
typedef struct cf_pair cf_pair;             /* two forward transforms, computed by one launch */
typedef struct cf_build_list cf_build_list; /* what a plan must have compiled */
typedef struct cf_timer cf_timer;           /* marks in a stream, and the time between them */

/* Where a call's tensor block starts: the tensor pointer stands for this sample and group. */
typedef struct cf_origin {
    int64_t sample, group;
} cf_origin;

typedef struct cf_device cf_device;

/* An argument of a call, and the bytes from it on that the call may touch. */
typedef struct cf_memory_argument {
    const char *name;
    const void *pointer; /* NULL: not given */
    size_t bytes;        /* 0: it is not touched */
} cf_memory_argument;

/* Operations that only some plans call. */
typedef enum cf_operation {
    CF_OPERATION_ZERO = 1,
    CF_OPERATION_FOLD = 2,
    CF_OPERATION_BIAS_GRADIENT = 4
} cf_operation;

typedef struct cf_device_ops {
    /* Slow work that every plan needs. It is done once, before the first plan. */
    conv_fft_status (*prepare)(cf_device *device);
    /* Whether the device has transforms of this basis, computed in this type. */
    bool (*transforms)(const cf_device *device, const int64_t basis[3], conv_fft_dtype dtype);
    /* A created transform can say how much scratch it needs. It can run after it was built. After a build that failed
     * it can only be destroyed. */
    conv_fft_status (*transform_create)(cf_device *device, const cf_transform_desc *desc, cf_transform **transform);
    /* A pair covers whole spectra of all groups. *pair = NULL: a pair would not be faster. Both transforms must outlive
     * the pair. This operation and the other ones of pairs are NULL if the device has no pairs. */
    conv_fft_status (*pair_create)(cf_device *device, const cf_transform *first, const cf_transform *second,
                                   cf_pair **pair);
    /* All that a plan needs is listed first, and then compiled together. build_end compiles it if `status` is SUCCESS,
     * and returns the first failure. If the device compiles nothing, these five operations are NULL. */
    conv_fft_status (*build_begin)(cf_device *device, cf_build_list **list);
    conv_fft_status (*build_end)(cf_build_list *list, conv_fft_status status);
    /* List what the transforms need. aligned: in every run the tensors begin at multiples of 16 bytes. */
    conv_fft_status (*transforms_list)(cf_device *device, cf_transform *const *transforms, int count,
                                       cf_pair *const *pairs, int pair_count, bool aligned, cf_build_list *list);
    /* List what the products need. */
    conv_fft_status (*products_list)(cf_device *device, cf_cgemm_desc *const *descs, int count, cf_build_list *list);
    /* List what these operations need, a set of cf_operation. */
    conv_fft_status (*operations_list)(cf_device *device, unsigned operations, cf_build_list *list);
    void (*transform_destroy)(cf_transform *transform);
    void (*pair_destroy)(cf_pair *pair);        /* NULL is allowed */
    void (*product_destroy)(cf_cgemm *product); /* NULL is allowed */
    /* Bytes of scratch that a run of `rows` rows may use. */
    size_t (*transform_scratch)(const cf_transform *transform, int64_t rows);

    /* block <- transform of the windows of tensor. */
    conv_fft_status (*forward)(const cf_transform *transform, const void *tensor, cf_origin origin, cf_block block,
                               void *scratch, struct CUstream_st *stream);
    /* The same for both transforms of a pair. It needs no scratch. */
    conv_fft_status (*forward_pair)(const cf_pair *pair, const void *const tensor[2], const cf_block block[2],
                                    struct CUstream_st *stream);
    /* tensor <- windows of the inverse of block (+ bias[channel]) (+ old contents). `channel` counts over all groups.
     * bias may be NULL. */
    conv_fft_status (*inverse)(const cf_transform *transform, cf_block block, void *tensor, cf_origin origin,
                               const void *bias, bool accumulate, void *scratch, struct CUstream_st *stream);
    /* One product per bin and group. The three blocks cover the same groups. The blocks of X and Y cover the same rows,
     * the block of W covers all rows of W. `accumulate` adds to the result's old contents. scratch: product_scratch()
     * bytes, aligned to 64, or NULL: then long sums may take longer. */
    conv_fft_status (*product)(cf_device *device, const cf_cgemm_desc *desc, cf_block x, cf_block w, cf_block y,
                               bool accumulate, void *scratch, struct CUstream_st *stream);
    size_t (*product_scratch)(const cf_device *device, const cf_cgemm_desc *desc); /* NULL: no scratch is used */
    /* Convolutions by their definition. These operations are NULL on GPUs, where family `spatial` has kernels of its
     * own. */
    conv_fft_status (*convolution_create)(cf_device *device, const cf_convolution_desc *desc,
                                          cf_convolution **convolution);
    void (*convolution_destroy)(cf_convolution *convolution); /* NULL is allowed */
    size_t (*convolution_scratch)(const cf_convolution *convolution);
    /* The kind says which tensor is written. bias: of y, or NULL. scratch is aligned to 64 bytes. */
    conv_fft_status (*convolve)(const cf_convolution *convolution, void *x, void *w, void *y, const void *bias,
                                bool accumulate, void *scratch, struct CUstream_st *stream);
    /* A prediction. */
    double (*convolution_seconds)(const cf_device *device, const cf_convolution_desc *desc);
    /* Samples and groups count from the pointers. scratch: [samples][groups * channels][padded]. */
    conv_fft_status (*fold)(cf_device *device, const cf_fold_desc *desc, const void *scratch, int64_t samples,
                            int64_t groups, void *tensor, bool accumulate, struct CUstream_st *stream);
    /* scratch: bias_scratch() bytes, aligned to 64, or NULL: then the sum may take longer. */
    conv_fft_status (*bias_gradient)(cf_device *device, const cf_bias_desc *desc, const void *gy, void *gbias,
                                     bool accumulate, void *scratch, struct CUstream_st *stream);
    size_t (*bias_scratch)(const cf_device *device, const cf_bias_desc *desc); /* NULL: no scratch is used */
    conv_fft_status (*clear)(cf_device *device, void *memory, size_t bytes, struct CUstream_st *stream);
    /* tensor <- 0 over all its elements: extents {samples, channels, axes}. */
    conv_fft_status (*zero)(cf_device *device, const cf_tensor *tensor, const int64_t extents[5], void *data,
                            struct CUstream_st *stream);

    /* INVALID_ARGUMENT: the device cannot work on these arguments in this stream. NULL: it can work on all. */
    conv_fft_status (*check_arguments)(const cf_device *device, const cf_memory_argument *arguments, int count,
                                       struct CUstream_st *stream);

    /* Between record_begin and record_end, the run operations of this thread are recorded and not done. They get the
     * addresses of core/recording.h. NULL is returned if one of them cannot be recorded. These operations are NULL if
     * the device records nothing. */
    void (*record_begin)(cf_device *device);
    cf_recording *(*record_end)(cf_device *device);
    /* Do what was recorded, on an address or NULL for each argument. Before that, check_arguments if `checks` is not
     * NULL. */
    conv_fft_status (*record_run)(const cf_device *device, const cf_recording *recording,
                                  const cf_memory_argument checks[CF_ARGUMENT_COUNT],
                                  const void *const arguments[CF_ARGUMENT_COUNT], struct CUstream_st *stream);
    void (*record_destroy)(cf_recording *recording); /* NULL is allowed */

    /* For measuring. Device memory; `write` copies from host memory and returns when the copy is done. */
    conv_fft_status (*allocate)(cf_device *device, size_t bytes, void **memory);
    conv_fft_status (*write)(cf_device *device, void *memory, const void *host, size_t bytes);
    void (*release)(cf_device *device, void *memory);
    /* Marks 0, 1, ... are set in this order and may be set again. timer_seconds waits for a mark and gives the seconds
     * since the mark before it. */
    conv_fft_status (*timer_create)(cf_device *device, cf_timer **timer);
    void (*timer_destroy)(cf_timer *timer); /* NULL is allowed */
    conv_fft_status (*timer_mark)(cf_timer *timer, int mark, struct CUstream_st *stream);
    conv_fft_status (*timer_seconds)(cf_timer *timer, int mark, double *seconds);
    /* Whether the host may wait for the stream. It may not while the stream is being captured into a graph. NULL:
     * always. */
    bool (*may_wait)(const cf_device *device, struct CUstream_st *stream);
} cf_device_ops;

/* What a plan knows of a device. Each device's own struct begins with this one. */
struct cf_device {
    const cf_device_ops *ops;
    const struct cf_calibration *calibration; /* core/calibration.h; NULL: the device is no GPU */
    int threads;                              /* the maximum that a call uses, >= 1 */
    bool has_blas;
    double flops;         /* per second, for the cost model: transforms */
    double fused_flops;   /* the same in kernels that transform both ways; 0: the device has none */
    double product_flops; /* large products */
    double tensor_flops;  /* the same on tensor cores, as accurate as FP32; 0: the device has none */
    double bandwidth;     /* bytes per second */
    double stage_seconds; /* fixed cost of one stage */
    bool is_gpu;          /* computing overlaps memory traffic: the longer of the two times counts */
    /* Transforms reach `flops` if the last axis is a multiple of row_unit and no axis is longer than line_points;
     * otherwise they reach half of it. Spectra of several axes with more than plane_points points are written and read
     * once more. So are 16-bit spectra of which eight planes do not fit a multiprocessor. */
    int64_t row_unit, line_points, plane_points;
    /* Cost of each tile of a sample if tiles are stored in order; of each tile if spectra are large. */
    double ordered_seconds;
    double chunk_bytes, group_bytes; /* bytes of spectra that are processed at a time */
};

#endif
