/* SPDX-License-Identifier: Apache-2.0 */
/* A substitute of NVRTC. Its machine code is the text itself, and a text with #error does not compile. Its log says
 * that the kernel has 40 registers, and spills the number of bytes behind the word `spills=` in the text. */
#include "cuda/jit/nvrtc.h"
#include "fake.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef FAKE_MAJOR
#define FAKE_MAJOR 13
#define FAKE_MINOR 0
#endif

enum {
    ERROR_COMPILATION = 6
};

atomic_int fake_nvrtc_compilations;

struct _nvrtcProgram {
    char *source, *cubin, log[512], name[128];
};

cf_nvrtc_result nvrtcVersion(int *major, int *minor) {
    *major = FAKE_MAJOR;
    *minor = FAKE_MINOR;
    return 0;
}
const char *nvrtcGetErrorString(cf_nvrtc_result result) {
    return result == ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}
cf_nvrtc_result nvrtcCreateProgram(cf_nvrtc_program *result, const char *source, const char *name, int header_count,
                                   const char *const *headers, const char *const *include_names) {
    if (header_count || headers || include_names)
        return 1;
    cf_nvrtc_program program = calloc(1, sizeof *program);
    program->source = strdup(source);
    snprintf(program->name, sizeof program->name, "%s", name);
    *result = program;
    return 0;
}
cf_nvrtc_result nvrtcCompileProgram(cf_nvrtc_program program, int option_count, const char *const *options) {
    static const char target[] = "--gpu-architecture=";
    static const struct timespec a_while = {.tv_nsec = 5000000}; /* so that threads meet */
    atomic_fetch_add(&fake_nvrtc_compilations, 1);
    nanosleep(&a_while, NULL);
    if (strstr(program->source, "#error")) {
        snprintf(program->log, sizeof program->log,
                 "%s(2): error: #error directive: %s\n1 error detected in the compilation of \"%s\".\n", program->name,
                 strstr(program->source, "#error") + 7, program->name);
        return ERROR_COMPILATION;
    }
    const char *const spills = strstr(program->source, "spills=");
    for (int i = 0; i < option_count; ++i)
        if (strcmp(options[i], "--ptxas-options=-v") == 0)
            snprintf(program->log, sizeof program->log,
                     "    8 bytes stack frame, %d bytes spill stores, 0 bytes spill loads\nptxas info    : Used 40 "
                     "registers\n",
                     spills ? atoi(spills + 7) : 0);
    const size_t bytes = strlen(program->source) + 128;
    program->cubin = calloc(1, bytes);
    for (int i = 0; i < option_count; ++i)
        if (strncmp(options[i], target, strlen(target)) == 0)
            snprintf(program->cubin, bytes, FAKE_CUBIN "%s %s", options[i] + strlen(target), program->source);
    return 0;
}
cf_nvrtc_result nvrtcGetCUBINSize(cf_nvrtc_program program, size_t *bytes) {
    *bytes = strlen(program->cubin) + 1;
    return 0;
}
#ifndef FAKE_LACKS_CUBIN
cf_nvrtc_result nvrtcGetCUBIN(cf_nvrtc_program program, char *cubin) {
    strcpy(cubin, program->cubin);
    return 0;
}
#endif
cf_nvrtc_result nvrtcGetProgramLogSize(cf_nvrtc_program program, size_t *bytes) {
    *bytes = strlen(program->log) + 1;
    return 0;
}
cf_nvrtc_result nvrtcGetProgramLog(cf_nvrtc_program program, char *log) {
    strcpy(log, program->log);
    return 0;
}
cf_nvrtc_result nvrtcDestroyProgram(cf_nvrtc_program *program) {
    free((*program)->source);
    free((*program)->cubin);
    free(*program);
    *program = NULL;
    return 0;
}
