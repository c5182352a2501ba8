/* SPDX-License-Identifier: Apache-2.0 */
/* The program compile-kernel: compiles one kernel for the library (cuda/jit/compile_process.h). It ends without an
 * answer if it cannot. */
#include "cuda/jit/compile_process.h"
#include "cuda/jit/files.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Opens NVRTC. The library has checked that this file has all functions. */
static bool open_nvrtc(cf_jit *jit, const char *file) {
    void *const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
#define FIND(member, parameters)                              \
    *(void **)(void *)&jit->member = dlsym(library, #member); \
    if (!jit->member)                                         \
        return false;
    CF_NVRTC_FUNCTIONS(FIND)
#undef FIND
    return true;
}

/* The text on standard input. NULL: it cannot be read, or there is not enough memory. */
static char *read_text(void) {
    size_t room = 1 << 20, used = 0;
    char *text = malloc(room);
    for (ssize_t got = 1; text && got != 0;) {
        if (used + 1 == room) {
            char *const larger = realloc(text, room *= 2);
            if (!larger)
                free(text);
            text = larger;
            continue;
        }
        got = read(STDIN_FILENO, text + used, room - used - 1);
        if (got < 0 && errno != EINTR) {
            free(text);
            return NULL;
        }
        used += got > 0 ? (size_t)got : 0;
    }
    if (text)
        text[used] = '\0';
    return text;
}

static bool answer(cf_nvrtc_result result, const cf_cubin *cubin) {
    const cf_compile_reply reply = {result, cubin->bytes, cubin->log ? strlen(cubin->log) + 1 : 0};
    return cf_write_all(STDIN_FILENO, &reply, sizeof reply) &&
           cf_write_all(STDIN_FILENO, cubin->data, reply.cubin_bytes) &&
           cf_write_all(STDIN_FILENO, cubin->log, reply.log_bytes);
}

int main(int count, char **arguments) {
    cf_jit jit = {0};
    cf_cubin cubin = {0};
    static const char about[] = "compile-kernel compiles a kernel for libconv_fft, which starts it.\n";
    if (count < 3) {
        cf_write_all(STDERR_FILENO, about, sizeof about - 1);
        return EXIT_FAILURE;
    }
#ifdef SYS_close_range
    syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0); /* Linux 5.9: the caller's files do not stay open for us */
#endif
    setenv("CUDA_CACHE_DISABLE", "1", 1); /* the library has a cache; NVRTC would open the GPU for its own */
    char *const text = read_text();
    if (!text || !open_nvrtc(&jit, arguments[1]))
        return EXIT_FAILURE;
    const cf_compile_request request = {arguments[2], text, (const char *const *)arguments + 3, count - 3};
    const cf_nvrtc_result result = cf_nvrtc_run(&jit, &request, &cubin);
    const bool answered = answer(result, &cubin);
    cf_cubin_clear(&cubin);
    free(text);
    return answered ? EXIT_SUCCESS : EXIT_FAILURE;
}
