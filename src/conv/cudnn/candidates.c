/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms that cuDNN has for a pass, as strategies. */
#include "conv/cudnn/cudnn.h"
#include "conv/gpu/device.h"
#include "cuda/libs/cudnn_causal.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_ALGORITHMS = 256
};

/* Algorithms that have been visited. Heuristics repeat one another. */
typedef struct listing {
    bool (*visit)(const cf_strategy *strategy, void *user);
    void *user;
    const cf_layer *layer;
    int pass;
    bool more;
    int count;
    char text[MAX_ALGORITHMS][CF_ALGORITHM_BYTES];
} listing;

static bool offer(const char *text, void *user) {
    listing *l = user;
    cf_strategy s;
    for (int i = 0; i < l->count; ++i)
        if (strcmp(l->text[i], text) == 0)
            return true;
    if (l->count == MAX_ALGORITHMS)
        return false;
    strcpy(l->text[l->count++], text);
    memset(&s, 0, sizeof s);
    s.family = &cf_cudnn_family;
    for (int a = 0; a < 3; ++a)
        s.basis[a] = s.tiles[a] = 1;
    strcpy(s.algorithm, text);
    const char *why;
    if (!cf_cudnn_feasible(l->layer, l->pass, &s, &why))
        return true;
    l->more = l->visit(&s, l->user);
    return l->more;
}

/* List what the heuristics name, then the legacy API's algorithms, then every engine. If one of them fails, the
 * others are still listed. */
static void list(const cf_cudnn_guard *guard, const cf_cudnn_pass *pass, listing *l) {
    cf_cudnn_graph_each(guard, pass, false, offer, l);
    if (l->more)
        cf_cudnn_legacy_each(guard, pass, offer, l);
    if (l->more)
        cf_cudnn_graph_each(guard, pass, true, offer, l);
}

conv_fft_status cf_cudnn_candidates(const cf_layer *layer, cf_device *device, int pass,
                                    bool (*visit)(const cf_strategy *strategy, void *user), void *user) {
    cf_cudnn_pass p;
    cf_cudnn_guard guard;
    const char *why;
    cf_gpu *gpu = cf_gpu_of_layers(device);
    if (!gpu || layer->batch == 0 || !cf_cudnn_pass_make(layer, pass, &p, &why) ||
        !cf_cudnn_library(gpu->cudnn)->usable)
        return CONV_FFT_SUCCESS;
    const bool causal = cf_cudnn_causal_fits(&p, &why) && cf_cudnn_causal_library(gpu->cudnn)->usable;
    if (!causal && !cf_cudnn_is_trusted(&p, &why))
        return CONV_FFT_SUCCESS;
    listing *l = malloc(sizeof *l);
    if (!l)
        return cf_fail_memory(sizeof *l, "the list of cuDNN's algorithms");
    l->visit = visit;
    l->user = user;
    l->layer = layer;
    l->pass = pass;
    l->more = true;
    l->count = 0;
    const conv_fft_status status = cf_cudnn_guard_acquire(gpu->cudnn, NULL, &guard);
    if (status == CONV_FFT_SUCCESS) {
        if (causal)
            offer(CF_CUDNN_CAUSAL, l);
        else
            list(&guard, &p, l);
        cf_cudnn_guard_release(gpu->cudnn, &guard);
    }
    free(l);
    return status;
}
