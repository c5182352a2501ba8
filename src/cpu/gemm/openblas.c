/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/gemm/openblas.h"

#include "core/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
static void *open_library(const char *path) {
    (void)path;
    return NULL;
}
static void *find_symbol(void *library, const char *name) {
    (void)library;
    (void)name;
    return NULL;
}
static bool is_file(const char *path) {
    (void)path;
    return false;
}
#else
#include <dlfcn.h>
#include <unistd.h>
static void *open_library(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static void *find_symbol(void *library, const char *name) { return dlsym(library, name); }
/* A name without a folder is looked up by the loader. */
static bool is_file(const char *path) { return strchr(path, '/') && access(path, F_OK) == 0; }
#endif

/* Debian has one folder per threading variant. The OpenMP variant comes first: it starts no threads if its caller says
 * so. */
static const char *const candidates[] = {
    "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0",
    "/usr/lib/aarch64-linux-gnu/openblas-openmp/libopenblas.so.0",
    "libopenblas.so.0",
    "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
    "/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.so.0",
    "libopenblas.so",
    "libopenblas.dylib",
};

/* dlsym returns an object pointer; POSIX promises that its bytes are those of the function pointer. */
#define CF_LOOK_UP(function, library, name)                  \
    do {                                                     \
        void *const cf_address = find_symbol(library, name); \
        memcpy(&(function), &cf_address, sizeof(function));  \
    } while (0)

static void describe(void *library, const char *path, char *text, size_t bytes) {
    char *(*get_config)(void);
    CF_LOOK_UP(get_config, library, "openblas_get_config");
    char version[32] = "";
    /* "OpenBLAS 0.3.21 NO_LAPACKE ..." */
    if (!get_config || sscanf(get_config(), "OpenBLAS %31s", version) != 1)
        version[0] = '\0';
    snprintf(text, bytes, "OpenBLAS%s%s from %s", version[0] ? " " : "", version, path);
}

/* dlsym also looks in the libraries that OpenBLAS itself is linked with. */
static bool find_openmp(void *library, cf_blas *blas) {
    CF_LOOK_UP(blas->set_openmp_threads, library, "omp_set_num_threads");
    CF_LOOK_UP(blas->get_openmp_threads, library, "omp_get_max_threads");
    return blas->set_openmp_threads && blas->get_openmp_threads;
}

/* Why the first library that is there was not used. Users name theirs first. */
typedef struct refusal {
    char text[256]; /* empty: none was refused */
} refusal;

static bool refuse(const char *path, const char *reason, refusal *refused) {
    if (!refused->text[0])
        snprintf(refused->text, sizeof refused->text, "%s: %s", reason, path);
    return false;
}

/* A library that was opened is never closed: OpenBLAS may have started threads, which must not lose their code. The
 * loader gives further devices the same copy. `text` says what was found. */
static bool try_library(cf_blas *blas, const char *path, char *text, size_t bytes, refusal *refused) {
    void *const library = open_library(path);
    if (!library)
        return is_file(path) && refuse(path, "cannot be loaded", refused);
    cf_blas found = {0};
    int (*get_parallel)(void), (*get_threads)(void);
    CF_LOOK_UP(found.cgemm, library, "cblas_cgemm");
    CF_LOOK_UP(found.zgemm, library, "cblas_zgemm");
    CF_LOOK_UP(get_parallel, library, "openblas_get_parallel");
    CF_LOOK_UP(get_threads, library, "openblas_get_num_threads");
    if (!found.cgemm || !found.zgemm || !get_parallel || !get_threads)
        return refuse(path, "lacks functions", refused);
    /* 0: serial. Its packing buffers have no lock, so two calls at once, ours or the caller's, give wrong products
     * (seen with Debian's 0.3.21). 1: threads of its own. 2: OpenMP, which starts no threads if the calling
     * thread says so. */
    if (get_parallel() == 0)
        return refuse(path, "is serial", refused);
    if (get_parallel() == 2 && !find_openmp(library, &found))
        return refuse(path, "has no OpenMP library", refused);
    found.own_threads = get_parallel() == 1 && get_threads() > 1;
    *blas = found;
    describe(library, path, text, bytes);
    return true;
}

/* The colon-separated folders of CONV_FFT_LIBRARY_PATH. */
static bool try_folders(cf_blas *blas, const char *folders, char *text, size_t bytes, refusal *refused) {
    while (*folders) {
        const size_t length = strcspn(folders, ":");
        char path[4096];
        const int written = snprintf(path, sizeof path, "%.*s/libopenblas.so.0", (int)length, folders);
        if (length > 0 && length < sizeof path && written > 0 && (size_t)written < sizeof path &&
            try_library(blas, path, text, bytes, refused))
            return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}

void cf_blas_open(cf_blas *blas, char *text, size_t bytes) {
    const char *const folders = cf_environment("CONV_FFT_LIBRARY_PATH");
    refusal refused = {""};
    *blas = (cf_blas){0};
    bool found = folders && try_folders(blas, folders, text, bytes, &refused);
    const bool tell = refused.text[0] != '\0';
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0] && !found; ++i)
        found = try_library(blas, candidates[i], text, bytes, &refused);
    if (!found)
        snprintf(text, bytes, "no OpenBLAS%s%s", refused.text[0] ? ": " : "", refused.text);
    else if (tell)
        snprintf(text + strlen(text), bytes - strlen(text), " (%s)", refused.text);
}
