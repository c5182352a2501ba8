/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program compile-kernel (cuda/compiler/main.c), which compiles one kernel in a process of its own.
 *
 * The front end of NVRTC holds a lock of its process, so threads that compile wait for one another there. Processes do
 * not.
 */
#ifndef CF_CUDA_COMPILE_PROCESS_H
#define CF_CUDA_COMPILE_PROCESS_H

#include "cuda/jit/nvrtc.h"

#include <stdint.h>

/*
 * compile-kernel NVRTC NAME OPTION...
 *
 * NVRTC is the path of the library, NAME the name of the text for messages. Standard input is a socket: the program
 * reads the text up to its end, and writes this and then the bytes.
 */
typedef struct cf_compile_reply {
    uint64_t result;      /* of NVRTC */
    uint64_t cubin_bytes; /* of the machine code, which comes first */
    uint64_t log_bytes;   /* of the log and its terminating zero; 0: none */
} cf_compile_reply;

/* The file of the program: conv_fft/compile-kernel in the folder of the library, or of the executable that the library
 * is a part of. Empty: there is none. */
void cf_compile_program_find(char *file, size_t bytes);

/* Compile by jit->program. Returns false, and leaves *cubin as {0}, if the program gives no answer: there is none, it
 * cannot be started, or it ends early. The caller then compiles in this process. */
bool cf_compile_in_process(const cf_jit *jit, const cf_compile_request *request, cf_nvrtc_result *result,
                           cf_cubin *cubin);

#endif
