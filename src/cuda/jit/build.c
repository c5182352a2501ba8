/* SPDX-License-Identifier: Apache-2.0 */
/* Several kernels are compiled and loaded together, with the cache. */
#include "cuda/jit/kernel.h"

#include <stdlib.h>
#include <string.h>

/* The state of a build. missing[]: the sources that the cache does not have. twin[]: for each source, the first
 * source that is equal to it, which may be itself. */
typedef struct build {
    const cf_jit *jit;
    cf_cubin_cache *cache;
    const char *architecture;
    const cf_source *sources;
    int count, missing_count;
    cf_cubin *cubins;
    cf_cubin_key *keys;
    int *missing, *twin;
    const cf_source **missing_sources;
    cf_cubin **missing_cubins;
} build;

static void end(build *b) {
    free(b->keys);
    free(b->missing);
    free(b->twin);
    free(b->missing_sources);
    free(b->missing_cubins);
}

static conv_fft_status begin(build *b) {
    const size_t count = b->count > 0 ? (size_t)b->count : 1;
    b->keys = calloc(count, sizeof *b->keys);
    b->missing = calloc(count, sizeof *b->missing);
    b->twin = calloc(count, sizeof *b->twin);
    b->missing_sources = calloc(count, sizeof *b->missing_sources);
    b->missing_cubins = calloc(count, sizeof *b->missing_cubins);
    if (!b->keys || !b->missing || !b->twin || !b->missing_sources || !b->missing_cubins)
        return cf_fail_memory(count, "the list of kernels");
    for (int i = 0; i < b->count; ++i)
        b->keys[i] = cf_cubin_key_of(b->architecture, &b->sources[i]);
    for (int i = 0; i < b->count; ++i)
        while (b->twin[i] < i && !cf_cubin_key_equal(&b->keys[i], &b->keys[b->twin[i]]))
            ++b->twin[i];
    return CONV_FFT_SUCCESS;
}

/* The longest are first, so that no thread begins a long one when the others have ended. */
static void want(build *b, int i) {
    int at = b->missing_count++;
    for (; at > 0 && b->sources[b->missing[at - 1]].work < b->sources[i].work; --at)
        b->missing[at] = b->missing[at - 1];
    b->missing[at] = i;
    for (int n = 0; n < b->missing_count; ++n) {
        b->missing_sources[n] = &b->sources[b->missing[n]];
        b->missing_cubins[n] = &b->cubins[b->missing[n]];
    }
}

static conv_fft_status compile_missing(build *b) {
    if (b->missing_count == 0)
        return CONV_FFT_SUCCESS;
    if (!b->jit->library.usable)
        return cf_fail(
            CONV_FFT_LIBRARY_MISSING,
            "kernel %s for %s is not in the kernel cache %s, and it cannot be compiled, because NVRTC is missing: %s",
            b->missing_sources[0]->name, b->architecture, cf_cubin_cache_folder(b->cache)->path,
            b->jit->library.problem);
    const conv_fft_status status =
        cf_jit_compile(b->jit, b->architecture, b->missing_sources, b->missing_count, b->missing_cubins);
    for (int i = 0; i < b->missing_count; ++i)
        if (b->missing_cubins[i]->data)
            cf_cubin_cache_store(b->cache, &b->keys[b->missing[i]], b->missing_cubins[i], b->jit->library.version);
    b->missing_count = 0;
    return status;
}

/* Copy the machine code of an equal, earlier source, unless this source has its own. */
static conv_fft_status share(build *b, int i) {
    cf_cubin *to = &b->cubins[i];
    const cf_cubin *from = &b->cubins[b->twin[i]];
    if (to->data)
        return CONV_FFT_SUCCESS;
    to->data = malloc(from->bytes);
    if (!to->data)
        return cf_fail_memory(from->bytes, "a compiled kernel");
    memcpy(to->data, from->data, from->bytes);
    to->bytes = from->bytes;
    return CONV_FFT_SUCCESS;
}

static bool find(build *b, int i) { return cf_cubin_cache_find(b->cache, &b->keys[i], &b->cubins[i]); }

/* Look in the cache for all kernels that no other thread is compiling, and compile those that are missing. When a
 * claim ends, the kernel is in the cache. */
static conv_fft_status compile_claimed(build *b) {
    for (int i = 0; i < b->count; ++i) {
        if (b->twin[i] != i || !cf_cubin_cache_claim(b->cache, &b->keys[i]))
            continue;
        if (find(b, i))
            cf_cubin_cache_release(b->cache, &b->keys[i]);
        else
            want(b, i);
    }
    const int claimed = b->missing_count;
    const conv_fft_status status = compile_missing(b);
    for (int i = 0; i < claimed; ++i)
        cf_cubin_cache_release(b->cache, &b->keys[b->missing[i]]);
    return status;
}

static conv_fft_status make_cubins(build *b) {
    CF_FORWARD(compile_claimed(b));
    for (int i = 0; i < b->count; ++i) {
        if (b->twin[i] != i || b->cubins[i].data)
            continue;
        cf_cubin_cache_wait(b->cache, &b->keys[i]);
        if (!find(b, i)) /* the other thread failed, or the cache did not keep it */
            want(b, i);
    }
    CF_FORWARD(compile_missing(b));
    for (int i = 0; i < b->count; ++i)
        CF_FORWARD(share(b, i));
    return CONV_FFT_SUCCESS;
}

/* Load kernels that are not loaded yet. A kernel from the cache may be for another GPU, or damaged although its
 * checksum is right. Kernels that the driver refuses are compiled again. */
static conv_fft_status load(build *b, cf_gpu *gpu, cf_kernel **kernels) {
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int i = 0; i < b->count; ++i) {
        if (kernels[i])
            continue;
        bool refused;
        const conv_fft_status loaded = cf_kernel_load(gpu, &b->cubins[i], &b->sources[i], &kernels[i], &refused);
        if (loaded == CONV_FFT_SUCCESS)
            continue;
        if (!refused)
            return loaded;
        status = loaded;
        cf_cubin_clear(&b->cubins[i]);
        want(b, i);
    }
    return status;
}

static conv_fft_status make_kernels(build *b, cf_gpu *gpu, cf_kernel **kernels) {
    CF_FORWARD(make_cubins(b));
    const conv_fft_status status = load(b, gpu, kernels);
    if (status == CONV_FFT_SUCCESS || b->missing_count == 0 || !b->jit->library.usable)
        return status;
    CF_FORWARD(compile_missing(b));
    return load(b, gpu, kernels);
}

conv_fft_status cf_kernels_build(cf_gpu *gpu, const cf_source *sources, int count, cf_kernel **kernels) {
    cf_cubin *const cubins = calloc(count > 0 ? (size_t)count : 1, sizeof *cubins);
    if (!cubins)
        return cf_fail_memory((size_t)count * sizeof *cubins, "kernels");
    for (int i = 0; i < count; ++i)
        kernels[i] = NULL;
    build b = {.jit = &gpu->jit,
               .cache = gpu->cache,
               .architecture = gpu->architecture,
               .sources = sources,
               .count = count,
               .cubins = cubins};
    conv_fft_status status = begin(&b);
    if (status == CONV_FFT_SUCCESS)
        status = make_kernels(&b, gpu, kernels);
    end(&b);
    for (int i = 0; i < count; ++i) {
        cf_cubin_clear(&cubins[i]);
        if (status != CONV_FFT_SUCCESS) {
            cf_kernel_destroy(kernels[i]);
            kernels[i] = NULL;
        }
    }
    free(cubins);
    return status;
}
