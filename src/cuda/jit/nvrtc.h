/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC, CUDA's run-time compiler. It compiles kernel text to machine code of one architecture (a cubin). It needs no
 * GPU. */
#ifndef CF_DEVICE_JIT_H
#define CF_DEVICE_JIT_H

#include "core/log.h"
#include "cuda/driver/dynlib.h"

typedef unsigned cf_nvrtc_result;
typedef struct _nvrtcProgram *cf_nvrtc_program;

/* X(member of cf_jit, parameters); the members have the names of the exported symbols. */
#define CF_NVRTC_FUNCTIONS(X)                                                                                  \
    X(nvrtcVersion, (int *major, int *minor))                                                                  \
    X(nvrtcCreateProgram, (cf_nvrtc_program * program, const char *source, const char *name, int header_count, \
                           const char *const *headers, const char *const *include_names))                      \
    X(nvrtcCompileProgram, (cf_nvrtc_program program, int option_count, const char *const *options))           \
    X(nvrtcGetCUBINSize, (cf_nvrtc_program program, size_t * bytes))                                           \
    X(nvrtcGetCUBIN, (cf_nvrtc_program program, char *cubin))                                                  \
    X(nvrtcGetProgramLogSize, (cf_nvrtc_program program, size_t * bytes))                                      \
    X(nvrtcGetProgramLog, (cf_nvrtc_program program, char *log))                                               \
    X(nvrtcDestroyProgram, (cf_nvrtc_program * program))

typedef struct cf_jit {
    cf_library library;
    conv_fft_log_level log_level;
    int major, minor;  /* of NVRTC */
    char program[512]; /* compile-kernel (compile_process.h); empty: all kernels are compiled in this process */
    const char *(*nvrtcGetErrorString)(cf_nvrtc_result result);
#define CF_NVRTC_MEMBER(member, parameters) cf_nvrtc_result(*member) parameters;
    CF_NVRTC_FUNCTIONS(CF_NVRTC_MEMBER)
#undef CF_NVRTC_MEMBER
} cf_jit;

enum {
    CF_SOURCE_MAX_OPTIONS = 8,
    CF_SOURCE_MAX_HEADERS = 3
};

/* The text of one kernel: its headers, one behind the other, and then `text`. It includes no file. */
typedef struct cf_source {
    const char *name;                           /* of the kernel in the text; it is extern "C" */
    const char *headers[CF_SOURCE_MAX_HEADERS]; /* they never change and are never freed; NULL ends them */
    const char *text;
    const char *options[CF_SOURCE_MAX_OPTIONS]; /* options of NVRTC besides architecture and language; NULL ends them */
    size_t dynamic_shared;                      /* bytes that launches may ask for; not part of the compilation */
    bool pdl_wait; /* the kernel has a PDL wait (fbfft/common/platform.cuh); not part of the compilation */
    int work;      /* 2: it transforms both ways, or two signals; those are compiled first, because they take longer */
} cf_source;

/* The whole text. The caller frees it. NULL: out of memory. */
char *cf_source_join(const cf_source *source);

/* Machine code, and the compiler's log. Begin with {0}. */
typedef struct cf_cubin {
    void *data;
    size_t bytes;
    char *log; /* NULL: empty, or not compiled by this process */
} cf_cubin;

void cf_cubin_clear(cf_cubin *cubin);

/* A text to compile. */
typedef struct cf_compile_request {
    const char *name, *text; /* name: of the text, for messages */
    const char *const *options;
    int option_count;
} cf_compile_request;

enum {
    CF_NVRTC_OUT_OF_MEMORY = 1
};

/* Compile a text in this process. *cubin begins as {0}, and has no machine code if the result is not 0. */
cf_nvrtc_result cf_nvrtc_run(const cf_jit *jit, const cf_compile_request *request, cf_cubin *cubin);

/* Open the newest NVRTC whose code the driver can load (0: there is no driver). LIBRARY_MISSING: jit->library.problem
 * says why. */
conv_fft_status cf_jit_open(cf_jit *jit, const cf_search *search, int driver_version, conv_fft_log_level log_level);

/* The options that every kernel is compiled with, besides the architecture. */
extern const char *const cf_jit_options[];

/* Compile sources in parallel: one at a time in this process, the others in processes of their own
 * (compile_process.h), as many as there are processors. Cubins begin as {0}. Those that compiled stay in
 * them even if others failed. COMPILE_ERROR: the sentence has the first lines of the compiler's log. If
 * CONV_FFT_KEEP_SOURCE names a directory, each text is written there with its log. LIBRARY_MISSING: there is no
 * NVRTC. OUT_OF_MEMORY. */
conv_fft_status cf_jit_compile(const cf_jit *jit, const char *architecture, const cf_source *const *sources, int count,
                               cf_cubin *const *cubins);

#endif
