/* SPDX-License-Identifier: Apache-2.0 */
/* One compilation by NVRTC, in the library and in the program compile-kernel. */
#include "cuda/jit/nvrtc.h"

#include <stdlib.h>

void cf_cubin_clear(cf_cubin *cubin) {
    free(cubin->data);
    free(cubin->log);
    *cubin = (cf_cubin){0};
}

static char *read_log(const cf_jit *jit, cf_nvrtc_program program) {
    size_t bytes = 0;
    if (jit->nvrtcGetProgramLogSize(program, &bytes) != 0 || bytes <= 1)
        return NULL;
    char *const log = calloc(bytes + 1, 1);
    if (log)
        jit->nvrtcGetProgramLog(program, log);
    return log;
}

static cf_nvrtc_result read_cubin(const cf_jit *jit, cf_nvrtc_program program, cf_cubin *cubin) {
    const cf_nvrtc_result result = jit->nvrtcGetCUBINSize(program, &cubin->bytes);
    if (result != 0)
        return result;
    cubin->data = malloc(cubin->bytes);
    return cubin->data ? jit->nvrtcGetCUBIN(program, cubin->data) : CF_NVRTC_OUT_OF_MEMORY;
}

cf_nvrtc_result cf_nvrtc_run(const cf_jit *jit, const cf_compile_request *request, cf_cubin *cubin) {
    cf_nvrtc_program program;
    cf_nvrtc_result result = jit->nvrtcCreateProgram(&program, request->text, request->name, 0, NULL, NULL);
    if (result != 0)
        return result;
    result = jit->nvrtcCompileProgram(program, request->option_count, request->options);
    cubin->log = read_log(jit, program);
    if (result == 0)
        result = read_cubin(jit, program, cubin);
    jit->nvrtcDestroyProgram(&program);
    if (result != 0) {
        free(cubin->data);
        cubin->data = NULL;
        cubin->bytes = 0;
    }
    return result;
}
