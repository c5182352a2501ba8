/* SPDX-License-Identifier: Apache-2.0 */
/**
 * conv_fft.h - convolution layers for CNN training, computed through small batched FFTs.
 *
 * The layer (cross-correlation, as in every deep-learning framework), per spatial axis:
 *
 *     y[o] = bias + sum_k w[k] * x[o * stride + k * dilation - pad_before]
 *
 * summed over the input channels of the group. Three passes (Vasilache et al., "Fast Convolutional
 * Nets With fbfft", arXiv 1412.7580, section 2, give the frequency-domain form of each):
 *
 *     forward            y  = conv(x, w) + bias     fbfft: fprop
 *     backward data      gx = d loss / d x          fbfft: bprop
 *     backward weights   gw = d loss / d w          fbfft: accGrad      (and gbias = d loss / d bias)
 *
 * HOW TO USE IT
 *     1. conv_fft_context_create()     once per device
 *     2. conv_fft_problem_init()       fill in the layer
 *     3. conv_fft_plan_create()        once per layer: chooses a strategy, compiles; may be slow
 *     4. conv_fft_plan_workspace()     the caller allocates that many bytes
 *     5. conv_fft_forward(), conv_fft_backward()   as often as wanted. Calls allocate no memory. One exception:
 *        when more calls run at the same time than ever before, one more handle of cuBLAS, cuDNN or cuFFT is created
 *
 * TENSORS, as C arrays. D1..Dr are the rank spatial extents (rank 1, 2 or 3), K1..Kr those of the kernel,
 * M1..Mr those of the output (conv_fft_problem_output()):
 *
 *                          layout FIRST (NCHW)                       layout LAST (NHWC)
 *     x, gx     x[batch][in_channels][D1]..[Dr]           x[batch][D1]..[Dr][in_channels]
 *     y, gy     y[batch][out_channels][M1]..[Mr]          y[batch][M1]..[Mr][out_channels]
 *     w, gw     w[out_channels][in_channels/groups][K1]..[Kr]   w[out_channels][K1]..[Kr][in_channels/groups]
 *     bias, gbias   bias[out_channels]
 *
 * or any other arrangement, by element strides in the problem. Extents and strides count elements; sizes of
 * memory count bytes.
 *
 * POINTERS  On a GPU context tensors, workspace and spectra are device memory; on a CPU context host memory.
 *     On a CPU the alignment of one element suffices for every pointer. On a GPU x, w, y and their gradients begin at
 *     multiples of 16 bytes, as all allocations do; with conv_fft_plan_options.any_alignment one element suffices.
 *     bias and gbias: one element. Spectra: one complex number, 8 bytes, or 16 for FP64 tensors. Workspace: any.
 *     No output may overlap an input or another output, and the workspace and spectra may overlap nothing. Calls refuse
 *     overlaps. Tensors with gaps between their elements (strides) may lie in each other's gaps; of these only an equal
 *     address is refused.
 * STREAMS   `stream` is a CUstream or cudaStream_t (NULL: the default stream). Work is enqueued and the call
 *     returns; nothing synchronises. On a CPU context the stream is ignored and the work is done on return.
 * THREADS   A context and a plan are immutable after creation: any number of threads may use one at once,
 *     each with its own workspace and outputs. Destroying a plan or a context must not overlap a use of it.
 *     On a CPU, a call computes on several threads if its work is worth it. All calls of a process share these threads.
 *     By default there are as many as OpenMP gives, but no more than the affinity mask and the quota of the process's
 *     control groups (rounded up) allow. conv_fft_context_description() says how many.
 *     After fork(), a child of a process that has computed on several threads computes on one; a GPU context stays
 *     with its process (CUDA's rule).
 * ERRORS    Every call returns a conv_fft_status. conv_fft_last_error() then gives, for the calling thread,
 *     one sentence that names the argument, its value and the allowed range. A failed call leaves its output
 *     arguments (handles, sizes) untouched unless it says otherwise. Nothing exits or aborts.
 * NUMERICS  conv_fft_math below. Results are the same bits for the same plan, inputs and device. A NaN or an
 *     Inf may spread over the tiles of its own sample that read it, never to another sample of y or gx; in gw it
 *     may spread over the whole tensor. In a layer of few channels per group a NaN or an Inf may also spread to
 *     neighbouring outputs and channels of its own sample that do not read it (README.md of src/conv/toeplitz,
 *     src/conv/spatial and src/conv/implicit_gemm say how far). Non-negative inputs can give results slightly below
 *     zero.
 *
 * The header needs no other header than the C library's, and compiles as C99 and as C++11.
 */
#ifndef CONV_FFT_H
#define CONV_FFT_H

#include <stddef.h>
#include <stdint.h>

/* The version stands here once; the build reads it. */
#define CONV_FFT_VERSION_MAJOR 0
#define CONV_FFT_VERSION_MINOR 2
#define CONV_FFT_VERSION_PATCH 0
/** Raised whenever a struct or the meaning of a call changes in a way that old callers would notice. */
#define CONV_FFT_ABI 1

#if defined(_WIN32)
#define CONV_FFT_API
#elif defined(__GNUC__)
#define CONV_FFT_API __attribute__((visibility("default")))
#else
#define CONV_FFT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The type behind CUstream and cudaStream_t. */
struct CUstream_st;

/* ------------------------------------------------------------------------------------------- status */

/** The list of statuses: X(name, value, text). */
#define CONV_FFT_STATUS_LIST(X)                                  \
    X(SUCCESS, 0, "success")                                     \
    X(INVALID_ARGUMENT, 1, "invalid argument")                   \
    X(NOT_SUPPORTED, 2, "not supported by this device or build") \
    X(OUT_OF_MEMORY, 3, "out of memory")                         \
    X(NO_DEVICE, 4, "no usable device")                          \
    X(LIBRARY_MISSING, 5, "a library is missing or too old")     \
    X(DEVICE_ERROR, 6, "the device reported an error")           \
    X(COMPILE_ERROR, 7, "a kernel did not compile")              \
    X(IO_ERROR, 8, "a file could not be read or written")        \
    X(CANCELLED, 9, "cancelled by the caller")                   \
    X(INTERNAL_ERROR, 10, "internal error")

#define CONV_FFT_STATUS_ENUM(name, value, text) CONV_FFT_##name = value,
/** The result of a call. Zero is success. */
typedef enum conv_fft_status {
    CONV_FFT_STATUS_LIST(CONV_FFT_STATUS_ENUM)
} conv_fft_status;
#undef CONV_FFT_STATUS_ENUM

/** A short constant text for a status; "unknown status" for any other number. Never NULL. */
CONV_FFT_API const char *conv_fft_status_string(conv_fft_status status);

/**
 * The sentence of the calling thread's most recent failed call, "" if there was none. It stays valid until
 * this thread's next failing call. Successful calls leave it as it is.
 */
CONV_FFT_API const char *conv_fft_last_error(void);

/** major * 10000 + minor * 100 + patch of the library that is loaded. */
CONV_FFT_API int conv_fft_version(void);
/** "major.minor.patch" of the library that is loaded. */
CONV_FFT_API const char *conv_fft_version_string(void);
/** CONV_FFT_ABI of the library that is loaded: a binding compares it with the number it was written for. */
CONV_FFT_API int conv_fft_version_abi(void);

/* ------------------------------------------------------------------------------------------ context */

/** A device and what belongs to it. Immutable; shared by all plans made with it. */
typedef struct conv_fft_context conv_fft_context;

/** Values of conv_fft_context_options.device. Numbers >= 0 are GPU ordinals. */
enum {
    CONV_FFT_DEVICE_AUTO = -1, /**< GPU 0 if it is usable, else the CPU */
    CONV_FFT_DEVICE_CPU = -2
};

/** The messages that the library writes to standard error. The environment variable CONV_FFT_LOG (1 to 4, or
 * silent, warning, info, calls) is the default. */
typedef enum conv_fft_log_level {
    CONV_FFT_LOG_DEFAULT = 0, /**< CONV_FFT_LOG, else warnings */
    CONV_FFT_LOG_SILENT = 1,
    CONV_FFT_LOG_WARNING = 2,
    CONV_FFT_LOG_INFO = 3,
    CONV_FFT_LOG_CALLS = 4 /**< also a line for each call, with its time; on a GPU each call then waits for its end */
} conv_fft_log_level;

/** Start from conv_fft_context_options_init(): other options are refused. */
typedef struct conv_fft_context_options {
    int device;                   /**< CONV_FFT_DEVICE_AUTO (default), CONV_FFT_DEVICE_CPU, or a GPU ordinal */
    int threads;                  /**< CPU threads a call may use, to 4096; 0 (default): see THREADS */
    conv_fft_log_level log_level; /**< default CONV_FFT_LOG_DEFAULT */
    /** NULL (default): CONV_FFT_CACHE_DIR, else $XDG_CACHE_HOME/conv_fft, else ~/.cache/conv_fft */
    const char *cache_directory;
    int64_t struct_bytes; /**< sizeof(conv_fft_context_options), by conv_fft_context_options_init() */
    int64_t reserved[3];  /**< zero */
} conv_fft_context_options;

/** Fill in the defaults. INVALID_ARGUMENT: options is NULL. */
CONV_FFT_API conv_fft_status conv_fft_context_options_init(conv_fft_context_options *options);

/**
 * Create a context. options may be NULL (defaults). With CONV_FFT_DEVICE_AUTO the CPU is taken when no GPU is
 * usable; conv_fft_context_device() says which and why.
 * INVALID_ARGUMENT, OUT_OF_MEMORY; NO_DEVICE: the GPU with the given number is not usable.
 */
CONV_FFT_API conv_fft_status conv_fft_context_create(const conv_fft_context_options *options,
                                                     conv_fft_context **context);

/** NULL is allowed. Plans of the context must have been destroyed before. */
CONV_FFT_API void conv_fft_context_destroy(conv_fft_context *context);

/** The GPU's ordinal, or CONV_FFT_DEVICE_CPU; CONV_FFT_DEVICE_AUTO if context is NULL. */
CONV_FFT_API int conv_fft_context_device(const conv_fft_context *context);

/** One line: the device, the libraries in use, and why this device was chosen. "" if context is NULL. Lives as long as
 * the context. */
CONV_FFT_API const char *conv_fft_context_description(const conv_fft_context *context);

/**
 * A report about the machine: every CUDA library with its version and file, or why it cannot be used and how to get
 * it; every GPU and its properties; the directory of compiled kernels. At most `bytes` (0 or more) bytes of text are
 * written, terminated. *needed (may be NULL) receives the bytes of the whole text. Makes no context and no file.
 * INVALID_ARGUMENT: text is NULL, and bytes is not 0.
 */
CONV_FFT_API conv_fft_status conv_fft_devices_report(char *text, size_t bytes, size_t *needed);

/* ------------------------------------------------------------------------------------------ problem */

#define CONV_FFT_MAX_RANK 3

/**
 * Every enumeration below is one list X(name, value, word, ...): the enumerator, its number, its word in problem lines.
 * The enum, the parser, the printer and the range checks come from the list.
 */

/** The list of element types: X(name, value, word, bytes of an element, bits of the significand). */
#define CONV_FFT_DTYPE_LIST(X)                                   \
    X(FP32, 0, "fp32", 4, 24)                                    \
    X(FP16, 1, "fp16", 2, 11) /* IEEE 754 binary16 */            \
    X(BF16, 2, "bf16", 2, 8)  /* the upper half of a binary32 */ \
    X(FP64, 3, "fp64", 8, 53)

#define CONV_FFT_DTYPE_ENUM(name, value, word, bytes, bits) CONV_FFT_##name = value,
/** Type of the elements of x, w, bias, y and their gradients. */
typedef enum conv_fft_dtype {
    CONV_FFT_DTYPE_LIST(CONV_FFT_DTYPE_ENUM) /* CONV_FFT_FP32, ... */
    CONV_FFT_DTYPE_SAME = -1                 /**< conv_fft_problem.weight_grad_dtype: the type of w */
} conv_fft_dtype;
#undef CONV_FFT_DTYPE_ENUM

/** The list of math modes: X(name, value, word). */
#define CONV_FFT_MATH_LIST(X)                                                                                   \
    X(DEFAULT, 0, "default") /* FP64 for FP64 tensors, else FP32 */                                             \
    X(FP32, 1, "fp32")       /* error like that of a direct FP32 convolution */                                 \
    X(TF32, 2, "tf32")       /* factors of 11 bits: error at most about twice that of cuDNN's TF32 */           \
    X(HALF, 3, "half")       /* 16-bit spectra where faster, FP32 sums: error at most 3 times one rounding's */ \
    X(FP64, 4, "fp64")

#define CONV_FFT_MATH_ENUM(name, value, word) CONV_FFT_MATH_##name = value,

/**
 * The arithmetic inside. Allowed: FP32 tensors: FP32, TF32. FP16 and BF16 tensors: FP32, HALF. FP64 tensors: FP64.
 * The CPU computes TF32 and HALF in FP32.
 * Errors are norm-wise: ||y - y_exact|| <= c * eps * || |x| conv |w| ||, norms over a tensor; docs/numerics.md
 * tabulates c. Small results beside much larger ones in the same transform have the error of the large ones.
 */
typedef enum conv_fft_math {
    CONV_FFT_MATH_LIST(CONV_FFT_MATH_ENUM) /* CONV_FFT_MATH_DEFAULT, ... */
} conv_fft_math;
#undef CONV_FFT_MATH_ENUM

/** The list of padding modes: X(name, value, word). */
#define CONV_FFT_PADDING_LIST(X)                                                                  \
    X(ZEROS, 0, "zeros")                                                                          \
    X(CIRCULAR, 1, "circular")   /* x[i + D] = x[i]; padding at most D on each side */            \
    X(REFLECT, 2, "reflect")     /* mirrored without repeating the edge; padding at most D - 1 */ \
    X(REPLICATE, 3, "replicate") /* the edge element; any padding */

#define CONV_FFT_PADDING_ENUM(name, value, word) CONV_FFT_PAD_##name = value,
/** The values of x outside its extent. The gradients are the exact adjoints. */
typedef enum conv_fft_padding {
    CONV_FFT_PADDING_LIST(CONV_FFT_PADDING_ENUM) /* CONV_FFT_PAD_ZEROS, ... */
} conv_fft_padding;
#undef CONV_FFT_PADDING_ENUM

/** The list of layouts: X(name, value, word). */
#define CONV_FFT_LAYOUT_LIST(X) \
    X(FIRST, 0, "first")        \
    X(LAST, 1, "last")

#define CONV_FFT_LAYOUT_ENUM(name, value, word) CONV_FFT_CHANNELS_##name = value,
/** Order of a dense tensor, drawn at the top of this file. */
typedef enum conv_fft_layout {
    CONV_FFT_LAYOUT_LIST(CONV_FFT_LAYOUT_ENUM) /* CONV_FFT_CHANNELS_FIRST, ... */
} conv_fft_layout;
#undef CONV_FFT_LAYOUT_ENUM

/** One convolution layer. Start from conv_fft_problem_init(); entries of unused axes are ignored. */
typedef struct conv_fft_problem {
    int rank;                              /**< 1..3, spatial axes */
    int64_t batch;                         /**< >= 0; default 1 */
    int64_t in_channels, out_channels;     /**< >= 1, multiples of groups; default 1 */
    int64_t groups;                        /**< >= 1; default 1; in_channels = depthwise */
    int64_t input[CONV_FFT_MAX_RANK];      /**< D, >= 1; default 1 */
    int64_t kernel[CONV_FFT_MAX_RANK];     /**< K, >= 1; default 1 */
    int64_t stride[CONV_FFT_MAX_RANK];     /**< >= 1; default 1 */
    int64_t dilation[CONV_FFT_MAX_RANK];   /**< >= 1; default 1 */
    int64_t pad_before[CONV_FFT_MAX_RANK]; /**< >= 0; default 0 */
    int64_t pad_after[CONV_FFT_MAX_RANK];  /**< >= 0; default 0 */
    conv_fft_padding padding;              /**< default ZEROS */
    conv_fft_layout tensor_layout;         /**< of x, y, gx, gy; default CHANNELS_FIRST */
    conv_fft_layout weight_layout;         /**< of w, gw; default CHANNELS_FIRST */
    conv_fft_dtype dtype;                  /**< of x, y, gx, gy, and w and bias without fp32_weights; default FP32 */
    conv_fft_dtype weight_grad_dtype; /**< of gw and gbias: SAME (default), dtype itself, or FP32 for 16-bit tensors */
    conv_fft_math math;               /**< default DEFAULT */
    /** Element strides; all zero (default) = dense in the layout above. x and gx: {batch, channel, axes};
     *  y and gy likewise; w and gw: {out_channel, in_channel, axes}. A set that is not all zero must be >= 0 and name
     *  every axis of extent > 1 of a tensor that is written, each being greater than what all smaller ones reach
     *  together; 0 repeats an input. */
    int64_t x_stride[2 + CONV_FFT_MAX_RANK];
    int64_t y_stride[2 + CONV_FFT_MAX_RANK];
    int64_t w_stride[2 + CONV_FFT_MAX_RANK];
    /** 1: w and bias are FP32 beside FP16 or BF16 tensors (master weights); the gradients' SAME then means FP32, too.
     *  0 (default): w and bias have the type dtype. */
    int64_t fp32_weights;
    int64_t reserved[3]; /**< zero */
} conv_fft_problem;

/** Defaults as named above, for `rank` spatial axes. INVALID_ARGUMENT: p is NULL, or rank is not 1..3. */
CONV_FFT_API conv_fft_status conv_fft_problem_init(conv_fft_problem *p, int rank);

/**
 * The output's spatial extents: output[a] = (D + pad_before + pad_after - (K - 1) * dilation - 1) / stride + 1, for a
 * < rank. Checks the whole problem. INVALID_ARGUMENT: a field is out of range (this includes a kernel larger than the
 * padded input and products of extents from 2^59 on), or a pointer is NULL.
 */
CONV_FFT_API conv_fft_status conv_fft_problem_output(const conv_fft_problem *p, int64_t output[CONV_FFT_MAX_RANK]);

/**
 * Read a problem line: an optional name, then key=value fields in any order. Omitted fields have their defaults.
 *
 *     L1 in=128x3x128x128 out=96 kernel=11x11 stride=1 dilation=1 pad=0 groups=1 mode=zeros layout=first
 *        dtype=fp32 math=fp32
 *
 * in=BATCHxCHANNELSxD1x.. (required; it gives the rank); out=channels (omitted: those of in); kernel, stride,
 * dilation, pad: one number for all axes or one per axis joined by x; pad=a:b is asymmetric (before:after), pad=same
 * keeps the extent for stride 1 (more after, if it cannot be even); mode=zeros|circular|reflect|replicate;
 * layout=first|last (tensors and weights), wlayout=first|last (weights alone); dtype=fp32|fp16|bf16|fp64;
 * w=same|fp32|fp16|bf16|fp64 (w and bias; same, that of dtype, or fp32 beside 16-bit tensors: fp32_weights);
 * gw=same|fp32|fp16|bf16|fp64 (their gradients; same, as w); math=fp32|tf32|half|fp64. `#` starts a comment. name (may
 * be NULL) receives the name, terminated. An empty or comment line gives rank 0 and succeeds.
 * INVALID_ARGUMENT: a field is wrong (the sentence names it), or the name needs more than name_bytes.
 */
CONV_FFT_API conv_fft_status conv_fft_problem_parse(const char *line, conv_fft_problem *p, char *name,
                                                    size_t name_bytes);

/** Write the problem line (without a name; strides are not part of it). INVALID_ARGUMENT: invalid problem, or `bytes`
 * too small (1024 suffice). */
CONV_FFT_API conv_fft_status conv_fft_problem_format(const conv_fft_problem *p, char *text, size_t bytes);

/* --------------------------------------------------------------------------------------------- plan */

/** The list of passes: X(name, value, text). The three passes first, then sets of them, which are sums. */
#define CONV_FFT_PASS_LIST(X)                                                                        \
    X(FORWARD, 1, "forward")                                                                         \
    X(BACKWARD_DATA, 2, "backward data")                                                             \
    X(BACKWARD_WEIGHTS, 4, "backward weights")                                                       \
    X(BACKWARD, 6, "both gradients") /* data and weights in one call, sharing the transform of gy */ \
    X(ALL_PASSES, 7, "all passes")

#define CONV_FFT_PASS_ENUM(name, value, text) CONV_FFT_##name = value,
/** Passes; a set is their sum. */
typedef enum conv_fft_pass {
    CONV_FFT_PASS_LIST(CONV_FFT_PASS_ENUM) /* CONV_FFT_FORWARD, ... */
} conv_fft_pass;
#undef CONV_FFT_PASS_ENUM

typedef enum conv_fft_tuning {
    CONV_FFT_TUNE_CACHED = 0, /**< default: a tuning record if there is one, else the cost model */
    CONV_FFT_TUNE_OFF = 1,    /**< the cost model alone */
    /** A record if there is one, else time the best few candidates of the cost model, and keep a record. */
    CONV_FFT_TUNE_MEASURE = 2,
    /** The same with every candidate that the cost model predicts within 3 times the best. */
    CONV_FFT_TUNE_EXHAUSTIVE = 3
} conv_fft_tuning;

/** Operands whose spectra a caller may keep. A set is their sum. */
typedef enum conv_fft_operand {
    CONV_FFT_OPERAND_X = 1,
    CONV_FFT_OPERAND_W = 2
} conv_fft_operand;

/** Start from conv_fft_plan_options_init(). */
typedef struct conv_fft_plan_options {
    int passes;               /**< set of conv_fft_pass; default CONV_FFT_ALL_PASSES */
    conv_fft_tuning tuning;   /**< default CONV_FFT_TUNE_CACHED */
    uint64_t workspace_limit; /**< bytes that no pass may exceed; 0 (default): no limit */
    /** Set of conv_fft_operand whose spectra will be kept; default 0. Then only strategies are chosen that have these
     * spectra and share them. On a GPU other strategies may be faster. */
    int keep;
    /** Milliseconds that measuring may take for one plan, compiling included; 0 (default): 10,000 for _MEASURE, no
     * limit for _EXHAUSTIVE. Forward and the gradients share it equally. If the time does not suffice to begin timing,
     * the cost model decides, with a warning, and no record is kept. */
    int64_t tune_milliseconds;
    int tune_again; /**< 1: measure even where there is a record; default 0 */
    /** 1: calls do not ask CUDA about their pointers and stream, which would take microseconds. A wrong pointer is then
     * undefined behaviour. For callers that know their pointers, such as bindings of frameworks. Default 0. */
    int trusted;
    /** Strategy lines (conv_fft_description.strategy) to use instead of choosing: forward, backward data, backward
     * weights. NULL: choose. */
    const char *strategy[3];
    int64_t own_kernels; /**< 1: no algorithm of cuDNN is chosen or listed by conv_fft_tune_candidates(); default 0 */
    /** 1: on a GPU tensors may begin at any element, not only at multiples of 16 bytes. More kernels are compiled, and
     * calls with such tensors are slower. Default 0. */
    int64_t any_alignment;
    /** NULL (default), or a number that another thread or a signal handler may set to non-zero. Measuring then ends
     * between two of its steps with CANCELLED. Records of finished searches stay. */
    const volatile int *cancel;
    int64_t reserved[1]; /**< zero */
} conv_fft_plan_options;

/** A compiled, tuned layer. Immutable. */
typedef struct conv_fft_plan conv_fft_plan;

/** Fill in the defaults. INVALID_ARGUMENT: options is NULL. */
CONV_FFT_API conv_fft_status conv_fft_plan_options_init(conv_fft_plan_options *options);

/**
 * Make a plan. options may be NULL (defaults). The problem is copied. All choosing, tuning and compiling happens here.
 * For a GPU the call starts processes that compile (conv_fft/compile-kernel beside the library), and waits for them.
 * INVALID_ARGUMENT: a field of the problem or of the options is wrong (the sentence names it); the workspace limit is
 * too small (the sentence gives a sufficient one); or no strategy runs the problem here (the sentence says which limit
 * it exceeds). OUT_OF_MEMORY. NOT_SUPPORTED: a forced strategy does not run on this device. CANCELLED: options.cancel
 * ended the measuring. On a GPU also LIBRARY_MISSING, COMPILE_ERROR, DEVICE_ERROR.
 */
CONV_FFT_API conv_fft_status conv_fft_plan_create(conv_fft_context *context, const conv_fft_problem *problem,
                                                  const conv_fft_plan_options *options, conv_fft_plan **plan);

/** NULL is allowed. No call that uses the plan may be running. */
CONV_FFT_API void conv_fft_plan_destroy(conv_fft_plan *plan);

/**
 * Bytes of workspace that calls of `pass` need (one of CONV_FFT_FORWARD, _BACKWARD_DATA, _BACKWARD_WEIGHTS,
 * _BACKWARD). The contents need not be kept between calls. INVALID_ARGUMENT: a NULL, or a pass that the plan was not
 * made for.
 */
CONV_FFT_API conv_fft_status conv_fft_plan_workspace(const conv_fft_plan *plan, conv_fft_pass pass, size_t *bytes);

#define CONV_FFT_MAX_STAGES 12

/** One stage of a pass. */
typedef struct conv_fft_stage {
    char name[24];       /**< "transform x", "product", "inverse y", "fold gx", "sum gbias", ... */
    double bytes;        /**< tensor and spectrum bytes read and written */
    double operations;   /**< floating-point operations */
    double predicted_ms; /**< by the cost model; negative: it has no prediction */
    double measured_ms;  /**< by conv_fft_profile(); negative: not measured */
} conv_fft_stage;

/** The strategy, memory and stages of one pass of a plan. */
typedef struct conv_fft_description {
    char strategy[256]; /**< the strategy line; for CONV_FFT_BACKWARD that of the weights pass */
    int64_t basis[CONV_FFT_MAX_RANK];
    int64_t tiles[CONV_FFT_MAX_RANK];
    int shares_gy; /**< CONV_FFT_BACKWARD: 1 if gy is read or transformed once for both gradients */
    uint64_t workspace_bytes;
    double predicted_ms; /**< sum of the stages; negative: one of them has no prediction */
    double measured_ms;  /**< sum of the stages, or the tuner's time (without bias and gbias); negative: not measured */
    int stage_count;
    conv_fft_stage stages[CONV_FFT_MAX_STAGES];
} conv_fft_description;

/** Describe a pass (or CONV_FFT_BACKWARD). INVALID_ARGUMENT: a NULL, or a pass that the plan was not made for. */
CONV_FFT_API conv_fft_status conv_fft_plan_describe(const conv_fft_plan *plan, conv_fft_pass pass,
                                                    conv_fft_description *description);

/**
 * Describe a pass and measure its stages: runs it `repeats` (1..1000) times on random data in memory of its own, with
 * a bias, and gives the median time of each stage. Synchronises. INVALID_ARGUMENT as above; OUT_OF_MEMORY;
 * DEVICE_ERROR.
 */
CONV_FFT_API conv_fft_status conv_fft_profile(const conv_fft_plan *plan, conv_fft_pass pass, int repeats,
                                              conv_fft_description *description);

/* -------------------------------------------------------------------------------------------- layer */

/** Flags of the backward calls. Without them old contents of the gradients are never read, they may be NaN. */
enum {
    CONV_FFT_ACCUMULATE_GX = 1,
    CONV_FFT_ACCUMULATE_GW = 2,
    CONV_FFT_ACCUMULATE_GBIAS = 4
};

/**
 * y = conv(x, w) + bias. bias may be NULL. A batch of 0 succeeds and touches nothing; x, y and workspace may be NULL
 * then.
 * INVALID_ARGUMENT: plan made without CONV_FFT_FORWARD; x, w or y NULL or misaligned; workspace NULL or smaller than
 * conv_fft_plan_workspace() says (the sentence gives both sizes); on a GPU also memory that it cannot access (ordinary
 * memory of the host, freed, of another GPU) or that ends too early, and a stream of another CUDA context: all that
 * CUDA can tell without waiting. NOT_SUPPORTED, DEVICE_ERROR: GPU contexts.
 */
CONV_FFT_API conv_fft_status conv_fft_forward(const conv_fft_plan *plan, const void *x, const void *w, const void *bias,
                                              void *y, void *workspace, size_t workspace_bytes,
                                              struct CUstream_st *stream);

/**
 * The gradients; any of gx, gw, gbias may be NULL (not wanted). x may be NULL if gw is, w may be NULL if gx is. gx
 * needs CONV_FFT_BACKWARD_DATA in the plan, gw needs CONV_FFT_BACKWARD_WEIGHTS, gbias either. Workspace: that of
 * CONV_FFT_BACKWARD, or of the one pass that is asked for; gbias alone needs none. flags: sum of
 * CONV_FFT_ACCUMULATE_*: add to the old contents. A batch of 0 sets gw and gbias to zero (unless they accumulate); the
 * other tensors and the workspace may be NULL then. Errors as conv_fft_forward().
 */
CONV_FFT_API conv_fft_status conv_fft_backward(const conv_fft_plan *plan, const void *x, const void *w, const void *gy,
                                               void *gx, void *gw, void *gbias, unsigned flags, void *workspace,
                                               size_t workspace_bytes, struct CUstream_st *stream);

/** gx alone: conv_fft_backward() without gw and gbias; workspace of CONV_FFT_BACKWARD_DATA. */
CONV_FFT_API conv_fft_status conv_fft_backward_data(const conv_fft_plan *plan, const void *w, const void *gy, void *gx,
                                                    unsigned flags, void *workspace, size_t workspace_bytes,
                                                    struct CUstream_st *stream);

/** gw, and gbias unless NULL: conv_fft_backward() without gx; workspace of CONV_FFT_BACKWARD_WEIGHTS. */
CONV_FFT_API conv_fft_status conv_fft_backward_weights(const conv_fft_plan *plan, const void *x, const void *gy,
                                                       void *gw, void *gbias, unsigned flags, void *workspace,
                                                       size_t workspace_bytes, struct CUstream_st *stream);

/* ------------------------------------------------------------------------------------- kept spectra */

/**
 * Bytes of the whole spectrum of x or w, for the calls below. The spectrum belongs to this plan, in a form of its own.
 * INVALID_ARGUMENT: a NULL, an unknown operand, or one that no pass of the plan reads.
 * NOT_SUPPORTED: the plan's passes have none in common: the operand was not named in options.keep, or strategies were
 * forced that are not `staged` or differ in basis, tiles or dilation.
 */
CONV_FFT_API conv_fft_status conv_fft_plan_spectrum(const conv_fft_plan *plan, conv_fft_operand operand, size_t *bytes);

/** The spectrum of w, for inference or for several calls with the same weights. Workspace: that of CONV_FFT_FORWARD,
 * or of CONV_FFT_BACKWARD_DATA if the plan has no forward pass, for an empty batch too. Errors as conv_fft_forward()
 * and conv_fft_plan_spectrum(). */
CONV_FFT_API conv_fft_status conv_fft_transform_weights(const conv_fft_plan *plan, const void *w, void *w_spectrum,
                                                        void *workspace, size_t workspace_bytes,
                                                        struct CUstream_st *stream);

/**
 * conv_fft_forward() with caller-owned spectra (conv_fft_plan_spectrum() bytes each; NULL = not kept). One rule for x
 * and for w, here and in conv_fft_backward_kept(): tensor and spectrum given: the tensor is read and its spectrum
 * stored; tensor NULL: the spectrum is read. Errors as there; INVALID_ARGUMENT also for a misaligned spectrum, and for
 * one that the plan does not share.
 */
CONV_FFT_API conv_fft_status conv_fft_forward_kept(const conv_fft_plan *plan, const void *x, const void *w,
                                                   const void *bias, void *y, void *x_spectrum, void *w_spectrum,
                                                   void *workspace, size_t workspace_bytes, struct CUstream_st *stream);

/** conv_fft_backward() with caller-owned spectra of x (read for gw) and w (read for gx). Errors as
 * conv_fft_forward_kept(). */
CONV_FFT_API conv_fft_status conv_fft_backward_kept(const conv_fft_plan *plan, const void *x, const void *w,
                                                    const void *gy, void *gx, void *gw, void *gbias, unsigned flags,
                                                    void *x_spectrum, void *w_spectrum, void *workspace,
                                                    size_t workspace_bytes, struct CUstream_st *stream);

/* ------------------------------------------------------------------------------------------- tuning */

/* A tuning record names the fastest measured strategies for one problem (batch included) on one device.
 *
 * Passes that share transforms are tuned together. A plan for both gradients looks for a record of CONV_FFT_BACKWARD. A
 * plan for one gradient looks for a record of its own, then for one of CONV_FFT_BACKWARD. A plan that keeps spectra
 * looks for a record of all its passes.
 *
 * A plan searches for records in this order: those that this context has tuned or loaded; the cache directory; the
 * folders in the environment variable CONV_FFT_TUNE_PATH (joined by colons; every *.jsonl in them is read, none is
 * written). Compiled kernels are looked for in the cache directory and in these folders. Records are hints: a plan
 * skips a record whose strategy does not suit or needs more workspace than allowed. Files are text with one record per
 * line; docs/tuning.md has the rules. CONV_FFT_RECORD names a file that collects the problem lines for which a plan
 * found no record.
 *
 * On a CPU, records belong to a processor, a number of threads, and OpenBLAS being there or not. A plan that measures
 * nothing and finds no record takes the strategies of the nearest number of threads, if there is a record of it. This
 * counts as a miss. If other work on the host disturbs a measurement, and repeats do not help, a warning says so, and
 * no record is written. */

/** Which of two records for one problem stays. */
typedef enum conv_fft_tune_policy {
    CONV_FFT_KEEP_FASTEST = 0,
    CONV_FFT_KEEP_NEWEST = 1,
    CONV_FFT_KEEP_MINE = 2,
    CONV_FFT_KEEP_THEIRS = 3
} conv_fft_tune_policy;

/** One record as conv_fft_tune_foreach() shows it; the texts live during the callback. */
typedef struct conv_fft_tune_record {
    const char *problem;  /**< problem line; element strides, if the problem has them, follow as comments */
    const char *strategy; /**< strategy line; of several passes: joined by "; ", in the order of conv_fft_pass */
    conv_fft_pass pass;   /**< the set of passes that was tuned together */
    double ms;            /**< measured, of the set, without bias and gbias */
    double predicted_ms;  /**< by the cost model */
    double direct_ms;     /**< measured, of the best algorithms of another library; negative: none */
    uint64_t workspace_bytes;
    uint64_t workspace_class; /**< the power of two at or below the workspace limit of the tuning; 0: no limit */
    int keep;                 /**< set of conv_fft_operand that the caller keeps */
    int64_t candidates;       /**< the number of timed candidates */
    conv_fft_tuning tuning;   /**< _MEASURE or _EXHAUSTIVE */
    double model_ms;          /**< measured, of the cost model's choice; negative: it was not timed */
    double fastest_ms;        /**< the shortest of the runs whose median is `ms`; negative: not known */
    double processors;        /**< on a CPU, the processors that the process had in these runs; 0: not known */
} conv_fft_tune_record;

/** Counters since the context was created. */
typedef struct conv_fft_tune_statistics {
    int64_t records;  /**< records of the context now */
    int64_t hits;     /**< look-ups of plans that found a usable record: one for each set of passes tuned together */
    int64_t misses;   /**< look-ups of plans that found no usable record */
    int64_t unusable; /**< misses with a record that does not run here or needs too much workspace */
    int64_t corrupt;  /**< lines and files that cannot be verified; they are skipped */
} conv_fft_tune_statistics;

/** Return non-zero to stop. */
typedef int (*conv_fft_tune_visit)(const conv_fft_tune_record *record, void *user);
/** `done` of `total` problems are tuned; one more may be under way. Return non-zero to cancel. */
typedef int (*conv_fft_tune_progress)(int64_t done, int64_t total, void *user);

/**
 * Read records from a file into the context. They replace its records of the same problems. The cache directory is not
 * changed. IO_ERROR: the file cannot be read, or holds no record of this device. OUT_OF_MEMORY.
 */
CONV_FFT_API conv_fft_status conv_fft_tune_load(conv_fft_context *context, const char *path);
/**
 * Write all records of the context to a file, completely or not at all. IO_ERROR: the file cannot be written, or `path`
 * exists and is not a file of tuning records of this version. OUT_OF_MEMORY.
 */
CONV_FFT_API conv_fft_status conv_fft_tune_save(conv_fft_context *context, const char *path);
/**
 * Read records from a file into the context and its cache directory. `policy` decides if both have a record of one
 * problem. Errors as conv_fft_tune_load(). IO_ERROR also if the directory cannot be written: then only this context has
 * the records.
 */
CONV_FFT_API conv_fft_status conv_fft_tune_merge(conv_fft_context *context, const char *path,
                                                 conv_fft_tune_policy policy);
/** Write the records of `count` problems to a file. Problems without a record cause a warning. INVALID_ARGUMENT: a
 * problem is invalid. Errors as conv_fft_tune_save(). */
CONV_FFT_API conv_fft_status conv_fft_tune_export(conv_fft_context *context, const char *path,
                                                  const conv_fft_problem *problems, int64_t count);
/** Call `visit` for every record that a plan can find, in the order of the problem lines. CANCELLED: `visit` returned
 * non-zero. OUT_OF_MEMORY. */
CONV_FFT_API conv_fft_status conv_fft_tune_foreach(conv_fft_context *context, conv_fft_tune_visit visit, void *user);
/** Read the counters. OUT_OF_MEMORY. */
CONV_FFT_API conv_fft_status conv_fft_tune_stats(const conv_fft_context *context, conv_fft_tune_statistics *statistics);
/**
 * A report about a cache directory (NULL: the default one): its files of records, each with its devices, their number
 * of different records, the versions of the interface, of CUDA and of the libraries that strategies need; every line
 * and kernel that cannot be verified, and the number of kernels. At most `bytes` (0 or more) bytes of text are written,
 * terminated. *needed (may be NULL) receives the bytes of the whole text, *damaged (may be NULL) the number of lines
 * and kernels that cannot be verified. A directory that does not exist counts as empty. IO_ERROR: there is no usable
 * directory. INVALID_ARGUMENT: text is NULL, and bytes is not 0. OUT_OF_MEMORY.
 */
CONV_FFT_API conv_fft_status conv_fft_cache_report(const char *directory, char *text, size_t bytes, size_t *needed,
                                                   int64_t *damaged);
/**
 * Repair the context's cache directory: files of records are written again without the lines that cannot be verified,
 * a missing line that names the device comes back, and damaged kernels are removed. *removed (may be NULL) counts lines
 * and kernels. Files of another version, of another device without the line that names it, or that cannot be read stay;
 * a warning names each. No other program may tune meanwhile. IO_ERROR, OUT_OF_MEMORY.
 */
CONV_FFT_API conv_fft_status conv_fft_cache_repair(conv_fft_context *context, int64_t *removed);
/** Remove the records and kernels of a cache directory (NULL: the default one); *removed (may be NULL) counts the
 * files. A directory that does not exist counts as empty. Files of records stay that have another version, no line
 * that names their device, or that cannot be read; a warning names each. IO_ERROR. */
CONV_FFT_API conv_fft_status conv_fft_cache_clear(const char *directory, int64_t *removed);

/** One candidate as conv_fft_tune_candidates() shows it; the texts live during the callback. */
typedef struct conv_fft_tune_candidate {
    conv_fft_pass pass;       /**< the set of passes that is tuned together */
    const char *strategy;     /**< strategy line; of several passes: joined by "; " */
    double predicted_ms;      /**< by the cost model; negative: it has no prediction for the family */
    double measured_ms;       /**< negative: not timed */
    uint64_t workspace_bytes; /**< 0: not known, because no plan was made */
    const char *verdict;      /**< why it was chosen, or was not */
} conv_fft_tune_candidate;

/** Return non-zero to stop. */
typedef int (*conv_fft_candidate_visit)(const conv_fft_tune_candidate *candidate, void *user);

/**
 * Show the candidates for a problem, one set of passes after another, the best candidate first. With tuning MEASURE or
 * EXHAUSTIVE they are timed. No record is read or written. options may be NULL: predictions of the cost model.
 * CANCELLED: visit returned non-zero, or options.cancel ended the measuring. INVALID_ARGUMENT, OUT_OF_MEMORY,
 * DEVICE_ERROR.
 */
CONV_FFT_API conv_fft_status conv_fft_tune_candidates(conv_fft_context *context, const conv_fft_problem *problem,
                                                      const conv_fft_plan_options *options,
                                                      conv_fft_candidate_visit visit, void *user);

/**
 * Tune a list of problems (a network) and keep the records. options may be NULL; a mode of CACHED or OFF means
 * MEASURE. Problems with a record are skipped, so an interrupted list can be continued. All problems are checked
 * before the first is tuned. If tuning one problem fails, the others are still tuned. count: 0 to 2^20. progress (may
 * be NULL) is called by this thread before the first problem, after each problem, and between the steps of a search,
 * that is, after a candidate is compiled or timed once. CANCELLED: progress returned non-zero, or options.cancel ended
 * the measuring; finished searches have their records. Otherwise the status of the first failure; its sentence names
 * the problem.
 */
CONV_FFT_API conv_fft_status conv_fft_tune_problems(conv_fft_context *context, const conv_fft_problem *problems,
                                                    int64_t count, const conv_fft_plan_options *options,
                                                    conv_fft_tune_progress progress, void *user);

#ifdef __cplusplus
}
#endif

#endif /* CONV_FFT_H */
