/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory, streams and events. Copies and fills are enqueued on the stream, and the functions return at once.
 * Host memory must not change until the stream has copied it. */
#ifndef CF_DEVICE_MEMORY_H
#define CF_DEVICE_MEMORY_H

#include "cuda/driver/gpu.h"

/* 0 bytes give NULL. OUT_OF_MEMORY: the message names the size and the GPU. */
conv_fft_status cf_gpu_allocate(const cf_gpu *gpu, size_t bytes, void **memory);
void cf_gpu_free(const cf_gpu *gpu, void *memory); /* NULL is allowed */

conv_fft_status cf_gpu_upload(const cf_gpu *gpu, void *device, const void *host, size_t bytes, cf_cu_stream stream);
conv_fft_status cf_gpu_download(const cf_gpu *gpu, void *host, const void *device, size_t bytes, cf_cu_stream stream);
conv_fft_status cf_gpu_copy(const cf_gpu *gpu, void *to, const void *from, size_t bytes, cf_cu_stream stream);

/* Set every byte to the value. */
conv_fft_status cf_gpu_fill(const cf_gpu *gpu, void *memory, unsigned char value, size_t bytes, cf_cu_stream stream);

/* Create a stream that does not synchronise with the default stream. */
conv_fft_status cf_gpu_stream_create(const cf_gpu *gpu, cf_cu_stream *stream);
conv_fft_status cf_gpu_synchronize(const cf_gpu *gpu, cf_cu_stream stream);
void cf_gpu_stream_destroy(const cf_gpu *gpu, cf_cu_stream stream);

conv_fft_status cf_gpu_event_create(const cf_gpu *gpu, cf_cu_event *event);
conv_fft_status cf_gpu_event_record(const cf_gpu *gpu, cf_cu_event event, cf_cu_stream stream);

/* Whether the stream is being captured into a graph, or the driver does not say. */
bool cf_gpu_is_capturing(const cf_gpu *gpu, cf_cu_stream stream);

/* Wait for `end`, then return the time from start to end. */
conv_fft_status cf_gpu_event_elapsed(const cf_gpu *gpu, cf_cu_event start, cf_cu_event end, float *ms);
void cf_gpu_event_destroy(const cf_gpu *gpu, cf_cu_event event);

#endif
