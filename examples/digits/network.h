/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of convolution layers of conv_fft.h with ReLU between them, trained with Adam. */
#ifndef NETWORK_H
#define NETWORK_H

#include "conv_fft.h"
#include "rng.h"

#include <stdbool.h>

enum {
    NETWORK_MAX_LAYERS = 8,
    NETWORK_MAX_TENSORS = 3 + 10 * NETWORK_MAX_LAYERS
};

/** A trained tensor: its values and, for Adam, running means of the gradient and of its square. */
typedef struct parameter {
    float *value, *gradient, *mean, *square;
    int64_t count;
    float decay; /* weight decay */
} parameter;

typedef struct layer {
    char name[16];
    conv_fft_problem problem;
    conv_fft_plan *plan;
    parameter weights, bias;
    float *y, *gy; /* [batch][out_channels][..], after the ReLU */
    int64_t y_count;
} layer;

typedef struct network {
    conv_fft_context *context;
    int layer_count;
    layer layers[NETWORK_MAX_LAYERS];
    int64_t batch, classes;
    float *x;             /* input, [batch][in_channels][..] */
    float *probabilities; /* output, [batch][classes] */
    float *workspace;     /* shared by all layers */
    size_t workspace_bytes;
    int64_t updates;
    int tensor_count;
    float *tensors[NETWORK_MAX_TENSORS];
} network;

/*
 * The functions below that return bool write a message to stderr when they return false.
 */

/**
 * Make a network from problem lines (conv_fft_problem_parse()), one per layer, for `batch` samples whatever the lines
 * say. The output of each layer is the input of the next, and the last one must end in one element per class.
 * network_destroy() is due even after a failure.
 */
bool network_create(network *net, const conv_fft_context_options *device, int64_t batch, const char *const *lines,
                    int line_count, rng *random);

void network_destroy(network *net);

/** From net->x to net->probabilities. */
bool network_forward(network *net);

/** Mean cross-entropy of the first `count` samples of the batch. */
double network_loss(const network *net, const int *labels, int64_t count);

/** The most probable class of a sample. */
int network_prediction(const network *net, int64_t sample);

/** The gradients of the mean loss of the whole batch, after network_forward(). */
bool network_backward(network *net, const int *labels);

/** One step of Adam with decoupled weight decay. */
void network_update(network *net, double rate);

/** Print the strategy and the time of each layer and pass. */
bool network_report(const network *net);

#endif
