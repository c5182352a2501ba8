/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/jit/compile_process.h"

#include "cuda/jit/files.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    MAX_ARGUMENTS = CF_SOURCE_MAX_OPTIONS + 16,
    MAX_REPLY = 1 << 30 /* bytes; a larger size is no reply of the program */
};

void cf_compile_program_find(char *file, size_t bytes) {
    Dl_info info;
    char real[PATH_MAX];
    static const char program[] = "conv_fft/compile-kernel";
    static const char here; /* in this library */
    file[0] = '\0';
    if (!dladdr(&here, &info) || !info.dli_fname || !realpath(info.dli_fname, real))
        return;
    *(strrchr(real, '/') + 1) = '\0';
    const int length = snprintf(file, bytes, "%s%s", real, program);
    if (length < 0 || (size_t)length >= bytes || access(file, X_OK) != 0)
        file[0] = '\0';
}

/* The process has a group of its own, so that Ctrl-C in a terminal does not end it, and blocks no signals. */
static bool start(const cf_jit *jit, const cf_compile_request *request, int socket, pid_t *process) {
    char *arguments[MAX_ARGUMENTS + 4] = {(char *)jit->program, (char *)jit->library.file, (char *)request->name};
    if (request->option_count > MAX_ARGUMENTS)
        return false;
    for (int i = 0; i < request->option_count; ++i)
        arguments[3 + i] = (char *)request->options[i];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    bool started = false;
    if (posix_spawnattr_init(&attributes) == 0) {
        started = posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO) == 0 &&
                  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK) == 0 &&
                  posix_spawnattr_setpgroup(&attributes, 0) == 0 &&
                  posix_spawnattr_setsigmask(&attributes, &none) == 0 &&
                  posix_spawn(process, jit->program, &actions, &attributes, arguments, environ) == 0;
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return started;
}

/* If the process has ended, this sends no signal to ours, as write() would. */
static bool send_text(int socket, const char *text) {
    for (size_t left = strlen(text); left > 0;) {
        const ssize_t sent = send(socket, text, left, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        text += sent;
        left -= (size_t)sent;
    }
    return shutdown(socket, SHUT_WR) == 0;
}

static bool receive(int socket, uint64_t bytes, void *target) {
    void **const data = target;
    if (bytes == 0)
        return true;
    *data = bytes <= MAX_REPLY ? malloc(bytes) : NULL;
    return *data && cf_read_all(socket, *data, bytes);
}

static bool receive_reply(int socket, cf_nvrtc_result *result, cf_cubin *cubin) {
    cf_compile_reply reply;
    if (!cf_read_all(socket, &reply, sizeof reply) || !receive(socket, reply.cubin_bytes, &cubin->data) ||
        !receive(socket, reply.log_bytes, &cubin->log))
        return false;
    cubin->bytes = reply.cubin_bytes;
    *result = (cf_nvrtc_result)reply.result;
    if (cubin->log)
        cubin->log[reply.log_bytes - 1] = '\0';
    return (reply.result == 0) == (cubin->data != NULL);
}

bool cf_compile_in_process(const cf_jit *jit, const cf_compile_request *request, cf_nvrtc_result *result,
                           cf_cubin *cubin) {
    int sockets[2];
    pid_t process;
    if (!jit->program[0] || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return false;
    const bool started = start(jit, request, sockets[1], &process);
    close(sockets[1]);
    const bool answered = started && send_text(sockets[0], request->text) && receive_reply(sockets[0], result, cubin);
    close(sockets[0]); /* before the wait: it ends a program that still writes */
    while (started && waitpid(process, NULL, 0) < 0 && errno == EINTR)
        ;
    if (!answered)
        cf_cubin_clear(cubin);
    return answered;
}
