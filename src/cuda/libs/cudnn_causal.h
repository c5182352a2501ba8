/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causal operations of cuDNN 9.26 or newer, for depthwise signals that are padded with taps - 1 zeros before. They
 * are in a library of their own and need no handle. tests/checks/cudnn_declarations.c compares the declarations with
 * cuDNN's header, where it is installed.
 *
 * x, y and their gradients are [samples][channels][length], of `type`. Functions named Nwh take
 * [samples][length][channels].
 */
#ifndef CF_CUDA_CUDNN_CAUSAL_H
#define CF_CUDA_CUDNN_CAUSAL_H

#include "cuda/libs/cudnn.h"

typedef unsigned cf_cudnn_activation; /* 0: none */

/* Parameters of operations by the definition. Tap `taps - 1` reads the newest sample. w is [channels][taps], for Nwh
 * [taps][channels]. bias is never NULL. Gradients of w and of the bias have `sum_type`, which is FP32 for types of 16
 * bits. They are added to, in an order that changes from call to call. */
#define CF_CUDNN_CAUSAL_FORWARD                                                                               \
    (cf_cu_stream stream, const void *x, const void *w, const void *bias, void *y, int samples, int channels, \
     int length, int taps, cf_cudnn_type type, cf_cudnn_activation activation)
#define CF_CUDNN_CAUSAL_BACKWARD                                                                               \
    (cf_cu_stream stream, const void *x, const void *w, const void *bias, const void *gy, void *gx, void *gw,  \
     void *gbias, int samples, int channels, int length, int taps, cf_cudnn_type type, cf_cudnn_type sum_type, \
     cf_cudnn_activation activation)

/* Parameters of operations by FFT. Tap 0 reads the newest sample. w and gw are [channels][taps], of `type`. */
#define CF_CUDNN_CAUSAL_FFT_FORWARD                                                                               \
    (cf_cu_stream stream, const void *x, const void *w, void *y, int samples, int channels, int length, int taps, \
     cf_cudnn_type type)
#define CF_CUDNN_CAUSAL_FFT_BACKWARD                                                                                   \
    (cf_cu_stream stream, const void *x, const void *w, const void *gy, void *gx, void *gw, int samples, int channels, \
     int length, int taps, cf_cudnn_type type)

/* X(member, parameters). The members have the names of the exported symbols and return a status. */
#define CF_CUDNN_CAUSAL_FUNCTIONS(X)                            \
    X(cudnnCausalConv1dForward, CF_CUDNN_CAUSAL_FORWARD)        \
    X(cudnnCausalConv1dBackward, CF_CUDNN_CAUSAL_BACKWARD)      \
    X(cudnnCausalConv1dNwhForward, CF_CUDNN_CAUSAL_FORWARD)     \
    X(cudnnCausalConv1dNwhBackward, CF_CUDNN_CAUSAL_BACKWARD)   \
    X(cudnnFFTCausalConv1dForward, CF_CUDNN_CAUSAL_FFT_FORWARD) \
    X(cudnnFFTCausalConv1dBackward, CF_CUDNN_CAUSAL_FFT_BACKWARD)

typedef struct cf_cudnn_causal_functions {
#define CF_CUDNN_CAUSAL_MEMBER(member, parameters) cf_cudnn_status(*member) parameters;
    CF_CUDNN_CAUSAL_FUNCTIONS(CF_CUDNN_CAUSAL_MEMBER)
#undef CF_CUDNN_CAUSAL_MEMBER
} cf_cudnn_causal_functions;

extern const cf_library_spec cf_cudnn_causal_spec;

/* The library of a pool, which is opened if it was not tried before: which file it is, or why it is missing. It has no
 * version of its own. It lives as long as the pool. */
const cf_library *cf_cudnn_causal_library(cf_cudnn *cudnn);
const cf_cudnn_causal_functions *cf_cudnn_causal_calls(const cf_cudnn *cudnn); /* of a usable library */

#endif
