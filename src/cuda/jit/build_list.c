/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/jit/build_list.h"

#include <stdlib.h>

typedef struct place {
    cf_kernel **slot;
    pthread_mutex_t *mutex;
} place;

struct cf_build_list {
    cf_gpu *gpu;
    cf_source *sources;
    place *places;
    int count, capacity;
};

conv_fft_status cf_build_list_create(cf_gpu *gpu, cf_build_list **list) {
    cf_build_list *const made = calloc(1, sizeof *made);
    if (!made)
        return cf_fail_memory(sizeof *made, "a list of kernels");
    made->gpu = gpu;
    *list = made;
    return CONV_FFT_SUCCESS;
}

static bool has_room(cf_build_list *l) {
    if (l->count < l->capacity)
        return true;
    const int capacity = 2 * l->capacity + 16;
    cf_source *const sources = realloc(l->sources, (size_t)capacity * sizeof *sources);
    if (sources)
        l->sources = sources;
    place *const places = realloc(l->places, (size_t)capacity * sizeof *places);
    if (places)
        l->places = places;
    if (!sources || !places)
        return false;
    l->capacity = capacity;
    return true;
}

conv_fft_status cf_build_list_add(cf_build_list *list, const cf_source *source, cf_kernel **slot,
                                  pthread_mutex_t *mutex) {
    if (!has_room(list)) {
        free((char *)(uintptr_t)source->text);
        return cf_fail_memory((size_t)list->count * sizeof *source, "a list of kernels");
    }
    list->sources[list->count] = *source;
    list->places[list->count++] = (place){slot, mutex};
    return CONV_FFT_SUCCESS;
}

/* Give a kernel to its slot. Another plan may have filled a shared slot in the meantime. */
static void put(const place *p, cf_kernel *kernel) {
    if (p->mutex)
        pthread_mutex_lock(p->mutex);
    cf_kernel *const left = p->mutex && *p->slot ? kernel : NULL;
    if (!left)
        *p->slot = kernel;
    if (p->mutex)
        pthread_mutex_unlock(p->mutex);
    cf_kernel_destroy(left);
}

static conv_fft_status build(cf_build_list *l) {
    if (l->count == 0)
        return CONV_FFT_SUCCESS;
    cf_kernel **const kernels = calloc((size_t)l->count, sizeof *kernels);
    if (!kernels)
        return cf_fail_memory((size_t)l->count * sizeof *kernels, "a list of kernels");
    const conv_fft_status status = cf_kernels_build(l->gpu, l->sources, l->count, kernels);
    for (int i = 0; status == CONV_FFT_SUCCESS && i < l->count; ++i)
        put(&l->places[i], kernels[i]);
    free(kernels);
    return status;
}

conv_fft_status cf_build_list_end(cf_build_list *list, conv_fft_status status) {
    if (!list)
        return status;
    if (status == CONV_FFT_SUCCESS)
        status = build(list);
    for (int i = 0; i < list->count; ++i)
        free((char *)(uintptr_t)list->sources[i].text);
    free(list->sources);
    free(list->places);
    free(list);
    return status;
}
