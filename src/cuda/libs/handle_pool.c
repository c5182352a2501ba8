/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/libs/handle_pool.h"

#include <stdlib.h>

void cf_service_begin(cf_service *service) { pthread_mutex_init(&service->mutex, NULL); }

void cf_service_end(cf_service *service) {
    const bool entered = service->spares && cf_gpu_enter(service->gpu) == CONV_FFT_SUCCESS;
    while (service->spares) {
        cf_handle *const next = service->spares->next;
        service->destroy(service->table, service->spares->handle);
        free(service->spares);
        service->spares = next;
    }
    if (entered)
        cf_gpu_leave(service->gpu);
    pthread_mutex_destroy(&service->mutex);
}

/* With the mutex. */
static conv_fft_status open_once(cf_service *s) {
    if (s->library.usable)
        return CONV_FFT_SUCCESS;
    if (s->tried)
        return cf_fail(CONV_FFT_LIBRARY_MISSING, "%s is missing: %s", s->spec->name, s->library.problem);
    s->tried = true;
    return cf_library_open(&s->library, s->spec, &s->gpu->search, s->gpu->driver.version, s->table);
}

conv_fft_status cf_service_open(cf_service *service) {
    pthread_mutex_lock(&service->mutex);
    const conv_fft_status status = open_once(service);
    pthread_mutex_unlock(&service->mutex);
    return status;
}

static conv_fft_status make(const cf_service *s, cf_handle **made) {
    cf_handle *const h = calloc(1, sizeof *h);
    if (!h)
        return cf_fail_memory(sizeof *h, "a handle of a library");
    const cf_cu_capture_mode before = cf_service_relax(s->gpu, CF_CU_CAPTURE_RELAXED);
    const conv_fft_status status = s->make(s->table, &h->handle);
    cf_service_relax(s->gpu, before);
    if (status == CONV_FFT_SUCCESS)
        *made = h;
    else
        free(h);
    return status;
}

conv_fft_status cf_service_take(cf_service *service, cf_handle **taken) {
    pthread_mutex_lock(&service->mutex);
    const conv_fft_status status = open_once(service);
    *taken = service->spares;
    if (*taken)
        service->spares = (*taken)->next;
    pthread_mutex_unlock(&service->mutex);
    return status == CONV_FFT_SUCCESS && !*taken ? make(service, taken) : status;
}

void cf_service_put(cf_service *service, cf_handle *handle) {
    pthread_mutex_lock(&service->mutex);
    handle->next = service->spares;
    service->spares = handle;
    pthread_mutex_unlock(&service->mutex);
}

cf_cu_capture_mode cf_service_relax(const cf_gpu *gpu, cf_cu_capture_mode mode) {
    gpu->driver.cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}
