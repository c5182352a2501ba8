/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/jit/nvrtc.h"

#include "core/environment.h"
#include "core/thread_pool.h"
#include "cuda/jit/compile_process.h"
#include "cuda/jit/files.h"
#include "cuda/jit/hash.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the library */

static bool accept(const void *table, int driver_version, cf_library *library) {
    const cf_jit *const jit = table;
    int major = 0, minor = 0;
    if (jit->nvrtcVersion)
        jit->nvrtcVersion(&major, &minor);
    snprintf(library->version, sizeof library->version, "%d.%d", major, minor);
    if (major >= 12)
        return cf_library_fits(library, "NVRTC", major, driver_version);
    snprintf(library->problem, sizeof library->problem, "NVRTC %s is too old, at least 12.0 is needed",
             library->version);
    return false;
}

static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};

#define CF_SYMBOL(member, parameters) {#member, offsetof(cf_jit, member)},
static const cf_symbol symbols[] = {
    CF_NVRTC_FUNCTIONS(CF_SYMBOL){"nvrtcGetErrorString", offsetof(cf_jit, nvrtcGetErrorString)}};
#undef CF_SYMBOL

static const cf_library_spec spec = {
    .name = "NVRTC",
    .sonames = sonames,
    .how_to_get = "install the CUDA toolkit, or pip install nvidia-cuda-nvrtc (CUDA 12: nvidia-cuda-nvrtc-cu12) and "
                  "name the folder "
                  "of its library in CONV_FFT_LIBRARY_PATH",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof symbols[0],
    .accept = accept,
};

conv_fft_status cf_jit_open(cf_jit *jit, const cf_search *search, int driver_version, conv_fft_log_level log_level) {
    *jit = (cf_jit){.log_level = log_level};
    CF_FORWARD(cf_library_open(&jit->library, &spec, search, driver_version, jit));
    jit->nvrtcVersion(&jit->major, &jit->minor);
    cf_compile_program_find(jit->program, sizeof jit->program);
    return CONV_FFT_SUCCESS;
}

/* ---- one kernel */

const char *const cf_jit_options[] = {"--std=c++17", NULL};

char *cf_source_join(const cf_source *source) {
    const char *parts[CF_SOURCE_MAX_HEADERS + 1];
    int count = 0;
    size_t bytes = 1;
    while (count < CF_SOURCE_MAX_HEADERS && source->headers[count]) {
        parts[count] = source->headers[count];
        bytes += strlen(parts[count++]);
    }
    parts[count++] = source->text;
    char *const text = malloc(bytes + strlen(source->text));
    char *at = text;
    for (int i = 0; text && i < count; ++i)
        at = stpcpy(at, parts[i]);
    return text;
}

/* kernel: the whole text, which names the file. */
static void write_source(const cf_jit *jit, const char *directory, const char *name, const char *kernel,
                         const char *suffix, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%016" PRIx64 "%s", directory, name, cf_hash(kernel, strlen(kernel)), suffix);
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const bool written = file >= 0 && cf_write_all(file, text, strlen(text));
    if (file >= 0)
        close(file);
    if (!written)
        cf_log(jit->log_level, CONV_FFT_LOG_WARNING, "%s could not be written: the source of this kernel is not stored",
               path);
}

/* The sentence has the first lines of the log, or without a log what NVRTC says of its result. */
static conv_fft_status compile_error(const cf_jit *jit, const cf_source *source, const char *architecture,
                                     cf_nvrtc_result result, const char *log, bool has_source) {
    char lines[640];
    if (result == CF_NVRTC_OUT_OF_MEMORY)
        return cf_fail(CONV_FFT_OUT_OF_MEMORY, "kernel %s could not be compiled: there is not enough memory",
                       source->name);
    snprintf(lines, sizeof lines, "%s", log ? log : jit->nvrtcGetErrorString(result));
    for (char *end = lines + strlen(lines); end > lines && (end[-1] == '\n' || end[-1] == ' '); --end)
        end[-1] = '\0';
    for (char *at = lines; (at = strchr(at, '\n')) != NULL;)
        *at = ' ';
    return cf_fail(CONV_FFT_COMPILE_ERROR, "kernel %s did not compile for %s with NVRTC %s%s: %s", source->name,
                   architecture, jit->library.version,
                   has_source ? "" : " (CONV_FFT_KEEP_SOURCE=directory keeps its source)", lines);
}

/* Compiles one text at a time in this process, and others in processes of their own where that works. */
static cf_nvrtc_result run_nvrtc(const cf_jit *jit, const cf_compile_request *request, cf_cubin *cubin) {
    static atomic_bool busy;
    cf_nvrtc_result result;
    const bool here = !atomic_exchange(&busy, true);
    if (!here && cf_compile_in_process(jit, request, &result, cubin))
        return result;
    result = cf_nvrtc_run(jit, request, cubin);
    if (here)
        atomic_store(&busy, false);
    return result;
}

static conv_fft_status compile_text(const cf_jit *jit, const char *architecture, const cf_source *source,
                                    const char *text, cf_cubin *cubin) {
    char name[128], target[64];
    snprintf(name, sizeof name, "%s.cu", source->name);
    snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
    const char *options[CF_SOURCE_MAX_OPTIONS + 4] = {target};
    int count = 1;
    for (const char *const *option = cf_jit_options; *option; ++option)
        options[count++] = *option;
    for (int i = 0; i < CF_SOURCE_MAX_OPTIONS && source->options[i]; ++i)
        options[count++] = source->options[i];
    const cf_compile_request request = {name, text, options, count};
    const cf_nvrtc_result result = run_nvrtc(jit, &request, cubin);
    const char *const directory = cf_environment("CONV_FFT_KEEP_SOURCE");
    if (directory) {
        write_source(jit, directory, source->name, text, ".cu", text);
        write_source(jit, directory, source->name, text, ".log", cubin->log ? cubin->log : "");
    }
    if (result == 0)
        return CONV_FFT_SUCCESS;
    return compile_error(jit, source, architecture, result, cubin->log, directory != NULL);
}

static conv_fft_status compile_one(const cf_jit *jit, const char *architecture, const cf_source *source,
                                   cf_cubin *cubin) {
    char *const text = cf_source_join(source);
    if (!text)
        return cf_fail_memory(strlen(source->text), "the text of a kernel");
    const conv_fft_status status = compile_text(jit, architecture, source, text, cubin);
    free(text);
    if (status != CONV_FFT_SUCCESS)
        cf_cubin_clear(cubin);
    return status;
}

/* ---- several kernels */

typedef struct batch {
    const cf_jit *jit;
    const char *architecture;
    const cf_source *const *sources;
    cf_cubin *const *cubins;
} batch;

static conv_fft_status compile_of(void *user, int i) {
    const batch *const b = user;
    return compile_one(b->jit, b->architecture, b->sources[i], b->cubins[i]);
}

conv_fft_status cf_jit_compile(const cf_jit *jit, const char *architecture, const cf_source *const *sources, int count,
                               cf_cubin *const *cubins) {
    if (!jit->library.usable)
        return cf_fail(CONV_FFT_LIBRARY_MISSING, "NVRTC is missing: %s", jit->library.problem);
    batch b = {jit, architecture, sources, cubins};
    return cf_workers_run(count, compile_of, &b);
}
