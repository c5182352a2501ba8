/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/jit/launch.h"

#include "cuda/driver/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_WORDS = 64,     /* of the parameters of a kernel, 8 bytes each */
    MAX_LAUNCHES = 1024 /* a longer call spends its time on the GPU's side; recordings stay small */
};

/* A word of the parameters that is an address. */
typedef struct patch {
    int word, argument;
    int64_t offset;
} patch;

typedef struct recorded_launch {
    const cf_kernel *kernel; /* NULL: memory is cleared; its address is the only parameter */
    const cf_gpu *gpu;
    size_t clear_bytes;
    cf_launch launch;
    int first_word, words, first_patch, patches;
} recorded_launch;

static const cf_parameter clear_parameters[] = {{sizeof(void *), 1}, {0, 0}};

struct cf_recording {
    recorded_launch *launches;
    uint64_t *words; /* the parameters of all launches; each parameter begins a word */
    patch *patches;
    int launch_count, word_count, patch_count;
    int launch_capacity, word_capacity, patch_capacity;
};

/* What this thread records, or NULL. */
static _Thread_local cf_recording *current;
static _Thread_local bool recording, refused;

void cf_recording_begin(void) {
    current = calloc(1, sizeof *current);
    recording = true;
    refused = current == NULL;
}

void cf_recording_destroy(cf_recording *r) {
    if (!r)
        return;
    free(r->launches);
    free(r->words);
    free(r->patches);
    free(r);
}

cf_recording *cf_recording_end(void) {
    cf_recording *r = current;
    if (refused) {
        cf_recording_destroy(r);
        r = NULL;
    }
    current = NULL;
    recording = false;
    return r;
}

bool cf_recording_refused(void) {
    refused = refused || recording;
    return recording;
}

/* Make room for `count` more elements. */
static bool has_room(void **array, size_t element, int used, int count, int *capacity) {
    if (used + count <= *capacity)
        return true;
    const int wanted = 2 * (used + count);
    void *larger = realloc(*array, (size_t)wanted * element);
    if (!larger)
        return false;
    *array = larger;
    *capacity = wanted;
    return true;
}

/* Copy one parameter, and note which of its words are addresses. */
static bool record_parameter(cf_recording *r, const void *value, const cf_parameter *type) {
    const int words = (int)(type->bytes + 7) / 8;
    if (r->launches[r->launch_count].words + words > MAX_WORDS)
        return false;
    if (!has_room((void **)&r->words, sizeof *r->words, r->word_count, words, &r->word_capacity) ||
        !has_room((void **)&r->patches, sizeof *r->patches, r->patch_count, words, &r->patch_capacity))
        return false;
    uint64_t *const to = r->words + r->word_count;
    to[words - 1] = 0;
    memcpy(to, value, type->bytes);
    recorded_launch *const l = &r->launches[r->launch_count];
    for (int i = 0; i < words; ++i) {
        patch p = {.word = l->words + i};
        if ((type->addresses >> i & 1) && (p.argument = cf_recorded_argument(to[i], &p.offset)) >= 0) {
            r->patches[r->patch_count++] = p;
            ++l->patches;
        }
    }
    r->word_count += words;
    l->words += words;
    return true;
}

static bool record(recorded_launch launch, void **parameters) {
    cf_recording *const r = current;
    const cf_parameter *const types = launch.launch.parameters;
    if (!r || !types || r->launch_count == MAX_LAUNCHES ||
        !has_room((void **)&r->launches, sizeof *r->launches, r->launch_count, 1, &r->launch_capacity))
        return false;
    launch.first_word = r->word_count;
    launch.first_patch = r->patch_count;
    r->launches[r->launch_count] = launch;
    for (int i = 0; types[i].bytes > 0; ++i)
        if (!record_parameter(r, parameters[i], &types[i]))
            return false;
    ++r->launch_count;
    return true;
}

conv_fft_status cf_kernel_launch(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                 cf_cu_stream stream) {
    if (recording) {
        refused = refused || !kernel || !record((recorded_launch){.kernel = kernel, .launch = *launch}, parameters);
        return CONV_FFT_SUCCESS;
    }
    if (!kernel)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "no kernel was compiled for addresses that are no multiples of 16 "
                                               "bytes; options.any_alignment of the plan does that");
    CF_FORWARD(cf_gpu_enter(kernel->gpu));
    return cf_gpu_left(kernel->gpu, cf_kernel_start(kernel, launch, parameters, stream));
}

conv_fft_status cf_clear_launch(const cf_gpu *gpu, void *memory, size_t bytes, cf_cu_stream stream) {
    if (recording) {
        const cf_launch launch = {.parameters = clear_parameters};
        refused = refused ||
                  !record((recorded_launch){.gpu = gpu, .clear_bytes = bytes, .launch = launch}, (void *[]){&memory});
        return CONV_FFT_SUCCESS;
    }
    return cf_gpu_fill(gpu, memory, 0, bytes, stream);
}

static conv_fft_status launch_again(const cf_recording *r, const recorded_launch *l,
                                    const void *const arguments[CF_ARGUMENT_COUNT], cf_cu_stream stream) {
    uint64_t words[MAX_WORDS];
    void *parameters[CF_MAX_PARAMETERS];
    memcpy(words, r->words + l->first_word, (size_t)l->words * sizeof *words);
    for (int i = 0; i < l->patches; ++i) {
        const patch *const p = &r->patches[l->first_patch + i];
        const void *const argument = arguments[p->argument];
        words[p->word] = argument ? (uint64_t)(uintptr_t)argument + (uint64_t)p->offset : 0;
    }
    if (!l->kernel)
        return cf_gpu_fill(l->gpu, (void *)(uintptr_t)words[0], 0, l->clear_bytes, stream);
    int word = 0;
    for (int i = 0; l->launch.parameters[i].bytes > 0; ++i) {
        parameters[i] = words + word;
        word += (int)(l->launch.parameters[i].bytes + 7) / 8;
    }
    return cf_kernel_start(l->kernel, &l->launch, parameters, stream);
}

conv_fft_status cf_recording_launch(const cf_recording *r, const void *const arguments[CF_ARGUMENT_COUNT],
                                    cf_cu_stream stream) {
    for (int i = 0; i < r->launch_count; ++i)
        CF_FORWARD(launch_again(r, &r->launches[i], arguments, stream));
    return CONV_FFT_SUCCESS;
}
