/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver/pointer_check.h"

/* What the driver says of an address. It writes numbers of four or eight bytes, and zeros for an address that it does
 * not know. */
typedef struct attributes {
    uint64_t type, device_pointer, managed, ordinal, plain, start, size;
} attributes;

enum {
    ATTRIBUTES = sizeof(attributes) / sizeof(uint64_t)
};

static unsigned low(uint64_t value) { return (unsigned)(value & 0xffffffffu); }

static conv_fft_status read_attributes(const cf_gpu *gpu, const void *pointer, attributes *a) {
    cf_cu_pointer_attribute wanted[ATTRIBUTES] = {
        CF_CU_POINTER_MEMORY_TYPE,    CF_CU_POINTER_DEVICE_POINTER,        CF_CU_POINTER_IS_MANAGED,
        CF_CU_POINTER_DEVICE_ORDINAL, CF_CU_POINTER_IS_LEGACY_IPC_CAPABLE, CF_CU_POINTER_RANGE_START,
        CF_CU_POINTER_RANGE_SIZE};
    *a = (attributes){0};
    void *results[ATTRIBUTES] = {&a->type,  &a->device_pointer, &a->managed, &a->ordinal,
                                 &a->plain, &a->start,          &a->size};
    const cf_cu_result result =
        gpu->driver.cuPointerGetAttributes(ATTRIBUTES, wanted, results, (cf_cu_pointer)(uintptr_t)pointer);
    return result == CF_CU_INVALID_VALUE ? CONV_FFT_SUCCESS
                                         : cf_driver_status(&gpu->driver, result, "cuPointerGetAttributes");
}

/* The driver gives no device pointer for memory that no kernel of this context may access. Memory that was mapped or
 * shared with access rights of its own may have a device pointer without these rights. */
static bool has_rights(const cf_gpu *gpu, const void *pointer) {
    uint64_t flags = 0;
    return gpu->driver.cuPointerGetAttribute(&flags, CF_CU_POINTER_ACCESS_FLAGS, (cf_cu_pointer)(uintptr_t)pointer) ==
               0 &&
           low(flags) == CF_CU_ACCESS_READWRITE;
}

static conv_fft_status check_place(const cf_gpu *gpu, const cf_gpu_argument *argument, const attributes *a) {
    const void *const p = argument->pointer;
    const bool of_host = low(a->type) == CF_CU_MEMORY_OF_HOST;
    CF_REQUIRE(low(a->type) != 0,
               "%s is %p, an address that CUDA does not know; it must point to memory that GPU %d can access, not to "
               "ordinary memory of the host, nor to memory that has been freed",
               argument->name, p, gpu->ordinal);
    if (low(a->managed) || (!of_host && (int)low(a->ordinal) == gpu->ordinal))
        return CONV_FFT_SUCCESS;
    CF_REQUIRE(
        !of_host || a->device_pointer == 0 || a->device_pointer == (uintptr_t)p,
        "%s is %p, the address that the host has for its page-locked memory; it must be 0x%llx, the one that GPU "
        "%d has for it",
        argument->name, p, (unsigned long long)a->device_pointer, gpu->ordinal);
    if (a->device_pointer != 0 || has_rights(gpu, p))
        return CONV_FFT_SUCCESS;
    CF_REQUIRE(!of_host, "%s is %p, memory of the host that GPU %d cannot access; it must be mapped for it",
               argument->name, p, gpu->ordinal);
    return cf_fail(CONV_FFT_INVALID_ARGUMENT,
                   "%s is %p, memory of GPU %d; it must be of GPU %d, or of a GPU whose memory that one has been given "
                   "peer access to",
                   argument->name, p, (int)low(a->ordinal), gpu->ordinal);
}

static conv_fft_status check_argument(const cf_gpu *gpu, const cf_gpu_argument *argument) {
    attributes a;
    CF_FORWARD(read_attributes(gpu, argument->pointer, &a));
    CF_FORWARD(check_place(gpu, argument, &a));
    const uint64_t at = (uintptr_t)argument->pointer;
    if (!low(a.plain) || low(a.managed) || a.size == 0 || at < a.start || at - a.start >= a.size)
        return CONV_FFT_SUCCESS;
    const uint64_t left = a.size - (at - a.start);
    CF_REQUIRE(argument->bytes <= left,
               "%s is %p; %llu bytes are left in its allocation from there, and the call needs %zu", argument->name,
               argument->pointer, (unsigned long long)left, argument->bytes);
    return CONV_FFT_SUCCESS;
}

/* The handles of the default streams: NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD. */
static bool is_default(cf_cu_stream stream) { return (uintptr_t)stream <= 2; }

static conv_fft_status check_stream(const cf_gpu *gpu, cf_cu_stream stream) {
    cf_cu_context context = NULL;
    if (is_default(stream))
        return CONV_FFT_SUCCESS;
    CF_FORWARD(CF_CU(&gpu->driver, cuStreamGetCtx, stream, &context));
    CF_REQUIRE(
        context == gpu->context,
        "stream is %p, of another CUDA context; it must be of the primary context of GPU %d, the one of the CUDA "
        "runtime",
        (void *)stream, gpu->ordinal);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_gpu_check_in_context(const cf_gpu *gpu, const cf_gpu_argument *arguments, int count,
                                        cf_cu_stream stream) {
    CF_FORWARD(check_stream(gpu, stream));
    for (int i = 0; i < count; ++i)
        if (arguments[i].pointer && arguments[i].bytes > 0)
            CF_FORWARD(check_argument(gpu, &arguments[i]));
    return CONV_FFT_SUCCESS;
}
