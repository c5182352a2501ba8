/* SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const float weight_decay = 0.5f; /* decoupled: times the learning rate, in every step */

static bool check(conv_fft_status status, const char *what) {
    if (status != CONV_FFT_SUCCESS) {
        fprintf(stderr, "train_digits: %s: %s: %s\n", what, conv_fft_status_string(status), conv_fft_last_error());
    }
    return status == CONV_FFT_SUCCESS;
}

/** All memory that the library reads or writes comes from here: zeros, freed by network_destroy(). */
static bool tensor_alloc(network *net, int64_t count, float **tensor) {
    *tensor = calloc((size_t)count, sizeof **tensor);
    if (!*tensor) {
        fprintf(stderr, "train_digits: out of memory for %lld numbers\n", (long long)count);
        return false;
    }
    net->tensors[net->tensor_count++] = *tensor;
    return true;
}

static bool parameter_alloc(network *net, int64_t count, float decay, parameter *p) {
    p->count = count;
    p->decay = decay;
    return tensor_alloc(net, count, &p->value) && tensor_alloc(net, count, &p->gradient) &&
           tensor_alloc(net, count, &p->mean) && tensor_alloc(net, count, &p->square);
}

static int64_t volume(const int64_t *extent, int rank) {
    int64_t product = 1;
    for (int a = 0; a < rank; a++) {
        product *= extent[a];
    }
    return product;
}

/** The first layer needs no gradient of its input, so its plan is made without that pass. */
static bool plan_create(network *net, int index) {
    layer *l = &net->layers[index];
    const conv_fft_pass passes[2] = {CONV_FFT_FORWARD, index > 0 ? CONV_FFT_BACKWARD : CONV_FFT_BACKWARD_WEIGHTS};
    conv_fft_plan_options options;
    if (!check(conv_fft_plan_options_init(&options), l->name)) {
        return false;
    }
    options.passes = passes[0] | passes[1];
    if (!check(conv_fft_plan_create(net->context, &l->problem, &options, &l->plan), l->name)) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        size_t bytes = 0;
        if (!check(conv_fft_plan_workspace(l->plan, passes[i], &bytes), l->name)) {
            return false;
        }
        net->workspace_bytes = bytes > net->workspace_bytes ? bytes : net->workspace_bytes;
    }
    return true;
}

static int64_t input_count(const conv_fft_problem *p) { return p->batch * p->in_channels * volume(p->input, p->rank); }

/** Read the problem line and check that the layer fits behind the one before. */
static bool layer_parse(network *net, int index, const char *line) {
    layer *l = &net->layers[index];
    conv_fft_problem *p = &l->problem;
    if (!check(conv_fft_problem_parse(line, p, l->name, sizeof l->name), line)) {
        return false;
    }
    p->batch = net->batch;
    int64_t output[CONV_FFT_MAX_RANK];
    if (!check(conv_fft_problem_output(p, output), line)) {
        return false;
    }
    l->y_count = p->batch * p->out_channels * volume(output, p->rank);
    if (index > 0 && input_count(p) != net->layers[index - 1].y_count) {
        fprintf(stderr, "train_digits: layer %s does not read what the layer before it writes\n", l->name);
        return false;
    }
    return true;
}

static bool layer_create(network *net, int index, const char *line, rng *random) {
    if (!layer_parse(net, index, line)) {
        return false;
    }
    layer *l = &net->layers[index];
    const conv_fft_problem *p = &l->problem;
    const int64_t fan_in = p->in_channels / p->groups * volume(p->kernel, p->rank);
    if (!plan_create(net, index) || !tensor_alloc(net, l->y_count, &l->y) || !tensor_alloc(net, l->y_count, &l->gy) ||
        !parameter_alloc(net, p->out_channels * fan_in, weight_decay, &l->weights) ||
        !parameter_alloc(net, p->out_channels, 0.0f, &l->bias)) {
        return false;
    }
    /* A quarter of the usual start (He et al., 2015), so that training, not the start, shapes the filters. */
    const double deviation = 0.25 * sqrt(2.0 / (double)fan_in);
    for (int64_t i = 0; i < l->weights.count; i++) {
        l->weights.value[i] = (float)(deviation * rng_normal(random));
    }
    return true;
}

bool network_create(network *net, const conv_fft_context_options *device, int64_t batch, const char *const *lines,
                    int line_count, rng *random) {
    *net = (network){.batch = batch};
    if (!check(conv_fft_context_create(device, &net->context), "context")) {
        return false;
    }
    for (int i = 0; i < line_count; i++) {
        net->layer_count = i + 1;
        if (!layer_create(net, i, lines[i], random)) {
            return false;
        }
    }
    const int64_t y_count = net->layers[line_count - 1].y_count;
    const int64_t workspace_count = (int64_t)(net->workspace_bytes / sizeof(float)) + 1;
    net->classes = y_count / batch;
    return tensor_alloc(net, input_count(&net->layers[0].problem), &net->x) &&
           tensor_alloc(net, y_count, &net->probabilities) && tensor_alloc(net, workspace_count, &net->workspace);
}

void network_destroy(network *net) {
    for (int i = 0; i < net->layer_count; i++) {
        conv_fft_plan_destroy(net->layers[i].plan);
    }
    for (int i = 0; i < net->tensor_count; i++) {
        free(net->tensors[i]);
    }
    conv_fft_context_destroy(net->context);
    *net = (network){0};
}

static const float *layer_input(const network *net, int index) { return index > 0 ? net->layers[index - 1].y : net->x; }

/** Each row of y to probabilities; the maximum is taken out first so that exp() cannot overflow. */
static void softmax(const float *y, int64_t rows, int64_t classes, float *probabilities) {
    for (int64_t r = 0; r < rows; r++, y += classes, probabilities += classes) {
        float maximum = y[0], sum = 0.0f;
        for (int64_t c = 1; c < classes; c++) {
            maximum = fmaxf(maximum, y[c]);
        }
        for (int64_t c = 0; c < classes; c++) {
            sum += probabilities[c] = expf(y[c] - maximum);
        }
        for (int64_t c = 0; c < classes; c++) {
            probabilities[c] /= sum;
        }
    }
}

bool network_forward(network *net) {
    const int last = net->layer_count - 1;
    for (int i = 0; i <= last; i++) {
        layer *l = &net->layers[i];
        if (!check(conv_fft_forward(l->plan, layer_input(net, i), l->weights.value, l->bias.value, l->y, net->workspace,
                                    net->workspace_bytes, NULL),
                   l->name)) {
            return false;
        }
        for (int64_t j = 0; i < last && j < l->y_count; j++) {
            l->y[j] = fmaxf(l->y[j], 0.0f);
        }
    }
    softmax(net->layers[last].y, net->batch, net->classes, net->probabilities);
    return true;
}

double network_loss(const network *net, const int *labels, int64_t count) {
    double sum = 0.0;
    for (int64_t s = 0; s < count; s++) {
        sum -= log(fmax(net->probabilities[s * net->classes + labels[s]], 1e-30));
    }
    return sum / (double)count;
}

int network_prediction(const network *net, int64_t sample) {
    const float *p = net->probabilities + sample * net->classes;
    int best = 0;
    for (int c = 1; c < net->classes; c++) {
        best = p[c] > p[best] ? c : best;
    }
    return best;
}

bool network_backward(network *net, const int *labels) {
    const int last = net->layer_count - 1;
    float *gy = net->layers[last].gy;
    for (int64_t i = 0; i < net->batch * net->classes; i++) {
        const float target = i % net->classes == labels[i / net->classes] ? 1.0f : 0.0f;
        gy[i] = (net->probabilities[i] - target) / (float)net->batch;
    }
    for (int i = last; i >= 0; i--) {
        layer *l = &net->layers[i];
        for (int64_t j = 0; i < last && j < l->y_count; j++) {
            l->gy[j] = l->y[j] > 0.0f ? l->gy[j] : 0.0f;
        }
        float *gx = i > 0 ? net->layers[i - 1].gy : NULL;
        if (!check(conv_fft_backward(l->plan, layer_input(net, i), l->weights.value, l->gy, gx, l->weights.gradient,
                                     l->bias.gradient, 0, net->workspace, net->workspace_bytes, NULL),
                   l->name)) {
            return false;
        }
    }
    return true;
}

static void parameter_update(parameter *p, double rate, double mean_scale, double square_scale) {
    for (int64_t i = 0; i < p->count; i++) {
        const float g = p->gradient[i];
        p->mean[i] += 0.1f * (g - p->mean[i]);
        p->square[i] += 0.01f * (g * g - p->square[i]);
        const double step = p->mean[i] * mean_scale / (sqrt(p->square[i] * square_scale) + 1e-8);
        p->value[i] -= (float)(rate * (step + p->decay * p->value[i]));
    }
}

void network_update(network *net, double rate) {
    const double updates = (double)++net->updates;
    const double mean_scale = 1.0 / (1.0 - pow(0.9, updates)), square_scale = 1.0 / (1.0 - pow(0.99, updates));
    for (int i = 0; i < net->layer_count; i++) {
        parameter_update(&net->layers[i].weights, rate, mean_scale, square_scale);
        parameter_update(&net->layers[i].bias, rate, mean_scale, square_scale);
    }
}

/** Print one value of a strategy line ("staged basis=12x12 tiles=1x1 ..."), "-" if it has no such key. */
static void print_value(const char *strategy, const char *key) {
    const char *value = strstr(strategy, key);
    value = value ? value + strlen(key) : "-";
    printf("  %-8.*s", (int)strcspn(value, " "), value);
}

/** One row: the strategy of a pass and the median time of it. */
static bool report_pass(const layer *l, conv_fft_pass pass, const char *pass_name, bool first) {
    conv_fft_description d;
    if (!check(conv_fft_profile(l->plan, pass, 5, &d), l->name)) {
        return false;
    }
    printf("%-10s  %-16s", first ? l->name : "", pass_name);
    print_value(d.strategy, "");
    print_value(d.strategy, " basis=");
    print_value(d.strategy, " tiles=");
    print_value(d.strategy, " product=");
    printf("  %7.2f\n", d.measured_ms);
    return true;
}

bool network_report(const network *net) {
    printf("%-10s  %-16s  %-8s  %-8s  %-8s  %-8s  %7s\n", "layer", "pass", "family", "basis", "tiles", "product", "ms");
    for (int i = 0; i < net->layer_count; i++) {
        const layer *l = &net->layers[i];
        if (!report_pass(l, CONV_FFT_FORWARD, "forward", true) ||
            (i > 0 && !report_pass(l, CONV_FFT_BACKWARD_DATA, "backward data", false)) ||
            !report_pass(l, CONV_FFT_BACKWARD_WEIGHTS, "backward weights", false)) {
            return false;
        }
    }
    return true;
}
