/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causal operations of cuDNN 9.26 or newer, for depthwise signals that are padded with taps - 1 zeros before. They
 * need neither a handle nor the graph API. Their library is opened at run time. tests/checks/cudnn_declarations.c
 * compares the declarations with cuDNN's header, where it is installed.
 *
 * x, y and their gradients are [samples][channels][length], of `type`. Functions named Nwh take
 * [samples][length][channels].
 */
#ifndef BENCH_CUDNN_CAUSAL_LIBRARY_H
#define BENCH_CUDNN_CAUSAL_LIBRARY_H

#include "cuda/driver/dynlib.h"
#include "cuda/libs/cudnn.h"

typedef unsigned cudnn_causal_activation; /* 0: none */

/* Parameters of operations by the definition. Tap `taps - 1` reads the newest sample. w is [channels][taps], for Nwh
 * [taps][channels]. bias is never NULL. Gradients of w and of the bias have `sum_type`, which is FP32 for types of 16
 * bits, and are added to. */
#define CUDNN_CAUSAL_FORWARD                                                                                  \
    (cf_cu_stream stream, const void *x, const void *w, const void *bias, void *y, int samples, int channels, \
     int length, int taps, cf_cudnn_type type, cudnn_causal_activation activation)
#define CUDNN_CAUSAL_BACKWARD                                                                                  \
    (cf_cu_stream stream, const void *x, const void *w, const void *bias, const void *gy, void *gx, void *gw,  \
     void *gbias, int samples, int channels, int length, int taps, cf_cudnn_type type, cf_cudnn_type sum_type, \
     cudnn_causal_activation activation)

/* Parameters of operations by FFT. Tap 0 reads the newest sample. w and gw are [channels][taps], of `type`. */
#define CUDNN_CAUSAL_FFT_FORWARD                                                                                  \
    (cf_cu_stream stream, const void *x, const void *w, void *y, int samples, int channels, int length, int taps, \
     cf_cudnn_type type)
#define CUDNN_CAUSAL_FFT_BACKWARD                                                                                      \
    (cf_cu_stream stream, const void *x, const void *w, const void *gy, void *gx, void *gw, int samples, int channels, \
     int length, int taps, cf_cudnn_type type)

/* X(member, parameters). The members have the names of the exported symbols and return a status. */
#define CUDNN_CAUSAL_FUNCTIONS(X)                            \
    X(cudnnCausalConv1dForward, CUDNN_CAUSAL_FORWARD)        \
    X(cudnnCausalConv1dBackward, CUDNN_CAUSAL_BACKWARD)      \
    X(cudnnCausalConv1dNwhForward, CUDNN_CAUSAL_FORWARD)     \
    X(cudnnCausalConv1dNwhBackward, CUDNN_CAUSAL_BACKWARD)   \
    X(cudnnFFTCausalConv1dForward, CUDNN_CAUSAL_FFT_FORWARD) \
    X(cudnnFFTCausalConv1dBackward, CUDNN_CAUSAL_FFT_BACKWARD)

typedef struct cudnn_causal_functions {
#define CUDNN_CAUSAL_MEMBER(member, parameters) cf_cudnn_status(*member) parameters;
    CUDNN_CAUSAL_FUNCTIONS(CUDNN_CAUSAL_MEMBER)
#undef CUDNN_CAUSAL_MEMBER
} cudnn_causal_functions;

/* Opened at the first call. */
const cf_library *cudnn_causal_library(void);
const cudnn_causal_functions *cudnn_causal_calls(void); /* of a usable library */

#endif
