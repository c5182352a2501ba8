/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver/memory.h"

/* On all systems with CUDA, a device pointer is an integer with the size of a pointer. */
static cf_cu_pointer number(const void *memory) { return (cf_cu_pointer)(uintptr_t)memory; }

conv_fft_status cf_gpu_allocate(const cf_gpu *gpu, size_t bytes, void **memory) {
    if (bytes == 0) {
        *memory = NULL;
        return CONV_FFT_SUCCESS;
    }
    CF_FORWARD(cf_gpu_enter(gpu));
    cf_cu_pointer made = 0;
    const cf_cu_result result = gpu->driver.cuMemAlloc(&made, bytes);
    cf_gpu_leave(gpu);
    if (result == CF_CU_OUT_OF_MEMORY)
        return cf_fail(CONV_FFT_OUT_OF_MEMORY, "GPU %d (%s) has no %zu bytes left of its %lld", gpu->ordinal,
                       gpu->properties.name, bytes, (long long)gpu->properties.memory_bytes);
    CF_FORWARD(cf_driver_status(&gpu->driver, result, "cuMemAlloc"));
    *memory = (void *)(uintptr_t)made;
    return CONV_FFT_SUCCESS;
}

void cf_gpu_free(const cf_gpu *gpu, void *memory) {
    if (!memory || cf_gpu_enter(gpu) != CONV_FFT_SUCCESS)
        return;
    gpu->driver.cuMemFree(number(memory));
    cf_gpu_leave(gpu);
}

conv_fft_status cf_gpu_upload(const cf_gpu *gpu, void *device, const void *host, size_t bytes, cf_cu_stream stream) {
    CF_GPU_RETURN(gpu, cuMemcpyHtoDAsync, number(device), host, bytes, stream);
}

conv_fft_status cf_gpu_download(const cf_gpu *gpu, void *host, const void *device, size_t bytes, cf_cu_stream stream) {
    CF_GPU_RETURN(gpu, cuMemcpyDtoHAsync, host, number(device), bytes, stream);
}

conv_fft_status cf_gpu_copy(const cf_gpu *gpu, void *to, const void *from, size_t bytes, cf_cu_stream stream) {
    CF_GPU_RETURN(gpu, cuMemcpyDtoDAsync, number(to), number(from), bytes, stream);
}

conv_fft_status cf_gpu_fill(const cf_gpu *gpu, void *memory, unsigned char value, size_t bytes, cf_cu_stream stream) {
    CF_GPU_RETURN(gpu, cuMemsetD8Async, number(memory), value, bytes, stream);
}

conv_fft_status cf_gpu_stream_create(const cf_gpu *gpu, cf_cu_stream *stream) {
    CF_GPU_RETURN(gpu, cuStreamCreate, stream, CF_CU_STREAM_NON_BLOCKING);
}

conv_fft_status cf_gpu_synchronize(const cf_gpu *gpu, cf_cu_stream stream) {
    CF_GPU_RETURN(gpu, cuStreamSynchronize, stream);
}

void cf_gpu_stream_destroy(const cf_gpu *gpu, cf_cu_stream stream) {
    if (!stream || cf_gpu_enter(gpu) != CONV_FFT_SUCCESS)
        return;
    gpu->driver.cuStreamDestroy(stream);
    cf_gpu_leave(gpu);
}

conv_fft_status cf_gpu_event_create(const cf_gpu *gpu, cf_cu_event *event) {
    CF_GPU_RETURN(gpu, cuEventCreate, event, 0);
}

conv_fft_status cf_gpu_event_record(const cf_gpu *gpu, cf_cu_event event, cf_cu_stream stream) {
    CF_GPU_RETURN(gpu, cuEventRecord, event, stream);
}

bool cf_gpu_is_capturing(const cf_gpu *gpu, cf_cu_stream stream) {
    cf_cu_capture_status status = CF_CU_NOT_CAPTURING;
    if (cf_gpu_enter(gpu) != CONV_FFT_SUCCESS)
        return true;
    const bool failed = gpu->driver.cuStreamIsCapturing(stream, &status) != 0;
    cf_gpu_leave(gpu);
    return failed || status != CF_CU_NOT_CAPTURING;
}

conv_fft_status cf_gpu_event_elapsed(const cf_gpu *gpu, cf_cu_event start, cf_cu_event end, float *ms) {
    CF_FORWARD(cf_gpu_enter(gpu));
    cf_cu_capture_mode mode = CF_CU_CAPTURE_RELAXED; /* another thread may be capturing a stream */
    gpu->driver.cuThreadExchangeStreamCaptureMode(&mode);
    conv_fft_status status = CF_CU(&gpu->driver, cuEventSynchronize, end);
    gpu->driver.cuThreadExchangeStreamCaptureMode(&mode);
    if (status == CONV_FFT_SUCCESS)
        status = CF_CU(&gpu->driver, cuEventElapsedTime, ms, start, end);
    return cf_gpu_left(gpu, status);
}

void cf_gpu_event_destroy(const cf_gpu *gpu, cf_cu_event event) {
    if (!event || cf_gpu_enter(gpu) != CONV_FFT_SUCCESS)
        return;
    gpu->driver.cuEventDestroy(event);
    cf_gpu_leave(gpu);
}
