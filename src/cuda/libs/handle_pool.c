/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/libs/handle_pool.h"

#include <stdlib.h>

void cf_handle_pool_begin(cf_handle_pool *pool) { pthread_mutex_init(&pool->mutex, NULL); }

void cf_handle_pool_end(cf_handle_pool *pool) {
    const bool entered = pool->free_handles && cf_gpu_enter(pool->gpu) == CONV_FFT_SUCCESS;
    while (pool->free_handles) {
        cf_handle *const next = pool->free_handles->next;
        pool->destroy(pool->table, pool->free_handles->handle);
        free(pool->free_handles);
        pool->free_handles = next;
    }
    if (entered)
        cf_gpu_leave(pool->gpu);
    pthread_mutex_destroy(&pool->mutex);
}

/* The mutex is held. */
static conv_fft_status open_once(cf_handle_pool *s) {
    if (s->library.usable)
        return CONV_FFT_SUCCESS;
    if (s->tried)
        return cf_fail(CONV_FFT_LIBRARY_MISSING, "%s is missing: %s", s->spec->name, s->library.problem);
    s->tried = true;
    return cf_library_open(&s->library, s->spec, &s->gpu->search, s->gpu->driver.version, s->table);
}

conv_fft_status cf_handle_pool_open(cf_handle_pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    const conv_fft_status status = open_once(pool);
    pthread_mutex_unlock(&pool->mutex);
    return status;
}

static conv_fft_status make(const cf_handle_pool *s, cf_handle **made) {
    cf_handle *const h = calloc(1, sizeof *h);
    if (!h)
        return cf_fail_memory(sizeof *h, "a handle of a library");
    const cf_cu_capture_mode before = cf_handle_pool_relax(s->gpu, CF_CU_CAPTURE_RELAXED);
    const conv_fft_status status = s->make(s->table, &h->handle);
    cf_handle_pool_relax(s->gpu, before);
    if (status == CONV_FFT_SUCCESS)
        *made = h;
    else
        free(h);
    return status;
}

conv_fft_status cf_handle_pool_take(cf_handle_pool *pool, cf_handle **taken) {
    pthread_mutex_lock(&pool->mutex);
    const conv_fft_status status = open_once(pool);
    *taken = pool->free_handles;
    if (*taken)
        pool->free_handles = (*taken)->next;
    pthread_mutex_unlock(&pool->mutex);
    return status == CONV_FFT_SUCCESS && !*taken ? make(pool, taken) : status;
}

void cf_handle_pool_put(cf_handle_pool *pool, cf_handle *handle) {
    pthread_mutex_lock(&pool->mutex);
    handle->next = pool->free_handles;
    pool->free_handles = handle;
    pthread_mutex_unlock(&pool->mutex);
}

cf_cu_capture_mode cf_handle_pool_relax(const cf_gpu *gpu, cf_cu_capture_mode mode) {
    gpu->driver.cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}
