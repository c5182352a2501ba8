/* SPDX-License-Identifier: Apache-2.0 */
/* One layer on GPU 0: tensors in its memory, and calls on a stream. No call waits for the GPU.
 *
 *     cc cuda_stream.c $(pkg-config --cflags --libs conv_fft) -I/usr/local/cuda/include -L/usr/local/cuda/lib64 \
 *         -lcudart -o cuda_stream
 *
 * Memory and streams of CUDA's driver (CUdeviceptr, CUstream) serve as well: they are the same. */
#include <conv_fft.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#define TRY(call)                                           \
    do {                                                    \
        if (call) {                                         \
            fprintf(stderr, "%s\n", conv_fft_last_error()); \
            exit(EXIT_FAILURE);                             \
        }                                                   \
    } while (0)
#define TRY_CUDA(call)                                                     \
    do {                                                                   \
        cudaError_t error = call;                                          \
        if (error) {                                                       \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
            exit(EXIT_FAILURE);                                            \
        }                                                                  \
    } while (0)

enum {
    X = 8 * 16 * 64 * 64,
    W = 16 * 15 * 15, /* depthwise: each filter has one channel */
    Y = X
};

static float x[X], w[W], y[Y], gw[W];

static void *new_memory(size_t bytes) {
    void *memory;
    TRY_CUDA(cudaMalloc(&memory, bytes));
    return memory;
}

int main(void) {
    conv_fft_context_options options;
    conv_fft_context *context;
    conv_fft_problem problem;
    conv_fft_plan *plan;
    size_t bytes, more;
    cudaStream_t stream;

    TRY(conv_fft_context_options_init(&options));
    options.device = 0; /* without a usable GPU 0 the next call fails, and its message says why */
    TRY(conv_fft_context_create(&options, &context));
    TRY(conv_fft_problem_parse("in=8x16x64x64 kernel=15x15 pad=same groups=16", &problem, NULL, 0));
    TRY(conv_fft_plan_create(context, &problem, NULL, &plan)); /* compiles kernels; the next program finds them */
    TRY(conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &bytes));
    TRY(conv_fft_plan_workspace(plan, CONV_FFT_BACKWARD_WEIGHTS, &more));
    bytes = bytes > more ? bytes : more; /* calls on one stream run one after the other, and share a workspace */

    for (int i = 0; i < X; ++i)
        x[i] = 1;
    for (int i = 0; i < W; ++i)
        w[i] = 0.5F;
    TRY_CUDA(cudaSetDevice(0));
    TRY_CUDA(cudaStreamCreate(&stream));
    float *x_gpu = new_memory(sizeof x), *w_gpu = new_memory(sizeof w);
    float *y_gpu = new_memory(sizeof y), *gw_gpu = new_memory(sizeof gw);
    void *workspace = bytes ? new_memory(bytes) : NULL;

    TRY_CUDA(cudaMemcpyAsync(x_gpu, x, sizeof x, cudaMemcpyHostToDevice, stream));
    TRY_CUDA(cudaMemcpyAsync(w_gpu, w, sizeof w, cudaMemcpyHostToDevice, stream));
    TRY(conv_fft_forward(plan, x_gpu, w_gpu, NULL, y_gpu, workspace, bytes, stream));
    /* The gradient of the weights of sum(y * y) / 2, whose gradient for y is y. */
    TRY(conv_fft_backward_weights(plan, x_gpu, y_gpu, gw_gpu, NULL, 0, workspace, bytes, stream));
    TRY_CUDA(cudaMemcpyAsync(y, y_gpu, sizeof y, cudaMemcpyDeviceToHost, stream));
    TRY_CUDA(cudaMemcpyAsync(gw, gw_gpu, sizeof gw, cudaMemcpyDeviceToHost, stream));
    TRY_CUDA(cudaStreamSynchronize(stream)); /* only now y and gw are there */

    double sum = 0; /* the middle of the filter meets every element of y */
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 64 * 64; ++j)
            sum += y[i * 16 * 64 * 64 + j];
    const double middle = y[32 * 64 + 32], gradient = gw[7 * 15 + 7];
    printf("y[0][0][32][32] = %.3f, expected 15 * 15 * 0.5 = 112.5\n", middle);
    printf("gw[0][0][7][7] = %.1f, expected the sum over y, %.1f\n", gradient, sum);

    TRY_CUDA(cudaFree(x_gpu));
    TRY_CUDA(cudaFree(w_gpu));
    TRY_CUDA(cudaFree(y_gpu));
    TRY_CUDA(cudaFree(gw_gpu));
    TRY_CUDA(cudaFree(workspace));
    TRY_CUDA(cudaStreamDestroy(stream));
    conv_fft_plan_destroy(plan);
    conv_fft_context_destroy(context);
    return middle > 112.49 && middle < 112.51 && gradient > 0.9999 * sum && gradient < 1.0001 * sum ? 0 : 1;
}
