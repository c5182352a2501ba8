/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver/dynlib.h"

#include "core/environment.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Folders below those that these variables name, then the usual ones. */
static const char *const roots[] = {"CUDA_PATH", "CUDA_HOME"};
static const char *const usual_folders[] = {
    "/usr/local/cuda/lib64",
    "/usr/local/cuda/targets/x86_64-linux/lib",
    "/usr/local/cuda/targets/sbsa-linux/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
};

cf_search cf_search_default(void) { return (cf_search){.folders = cf_environment("CONV_FFT_LIBRARY_PATH")}; }

/* One search for one library. */
typedef struct opening {
    const cf_library_spec *spec;
    int driver_version;
    void *table;
    cf_library *library;
    char reason[512]; /* why the first copy that exists cannot be used */
} opening;

/* dlsym returns an object pointer; POSIX promises that its bytes are those of the function pointer. Returns the name
 * of the first missing function, or NULL. */
static const char *fill_table(const opening *o, void *handle) {
    const char *missing = NULL;
    for (size_t i = 0; i < o->spec->symbol_count; ++i) {
        const cf_symbol *const symbol = &o->spec->symbols[i];
        void *const address = dlsym(handle, symbol->name);
        if (!address && !missing)
            missing = symbol->name;
        memcpy((char *)o->table + symbol->offset, &address, sizeof address);
    }
    return missing;
}

static void name_file(const opening *o, void *handle, const char *path, char *file, size_t bytes) {
    Dl_info info;
    void *address = NULL;
    for (size_t i = 0; i < o->spec->symbol_count && !address; ++i)
        address = dlsym(handle, o->spec->symbols[i].name);
    const bool found = address && dladdr(address, &info) && info.dli_fname;
    snprintf(file, bytes, "%s", found ? info.dli_fname : path);
}

static void note_first_reason(opening *o, const char *reason) {
    if (!o->reason[0])
        snprintf(o->reason, sizeof o->reason, "%s", reason);
}

static bool take(opening *o, void *handle, const char *path) {
    cf_library *const library = o->library;
    char reason[sizeof o->reason];
    name_file(o, handle, path, library->file, sizeof library->file);
    const char *const missing = fill_table(o, handle);
    /* The version is checked first, because it explains more than a missing function does. */
    if (!o->spec->accept(o->table, o->driver_version, library)) {
        snprintf(reason, sizeof reason, "%.200s (%.250s)", library->problem, library->file);
    } else if (missing) {
        snprintf(reason, sizeof reason, "%.300s has no function %s: it is damaged, or of a version that does not fit",
                 library->file, missing);
    } else {
        return true;
    }
    note_first_reason(o, reason);
    dlclose(handle);
    return false;
}

static bool try_file(opening *o, const char *path, int flags) {
    void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    if (handle)
        return take(o, handle, path);
    const char *const message = dlerror();
    /* A file that exists but cannot be loaded is reported. A folder without the file is not. */
    if (message && path[0] == '/' && access(path, F_OK) == 0)
        note_first_reason(o, message);
    return false;
}

static bool try_folder(opening *o, const char *folder, size_t length, const char *below) {
    for (const char *const *soname = o->spec->sonames; *soname; ++soname) {
        char path[1024];
        const int written = snprintf(path, sizeof path, "%.*s%s/%s", (int)length, folder, below, *soname);
        if (length > 0 && written > 0 && (size_t)written < sizeof path && try_file(o, path, 0))
            return true;
    }
    return false;
}

static bool try_folders(opening *o, const char *folders) {
    while (*folders) {
        const size_t length = strcspn(folders, ":");
        if (length < 1024 && try_folder(o, folders, length, ""))
            return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}

static bool try_sonames(opening *o, int flags) {
    for (const char *const *soname = o->spec->sonames; *soname; ++soname)
        if (try_file(o, *soname, flags))
            return true;
    return false;
}

static bool try_usual(opening *o) {
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; ++i) {
        const char *const root = cf_environment(roots[i]);
        if (root && strlen(root) < 1024 && try_folder(o, root, strlen(root), "/lib64"))
            return true;
    }
    for (size_t i = 0; i < sizeof usual_folders / sizeof usual_folders[0]; ++i)
        if (try_folder(o, usual_folders[i], strlen(usual_folders[i]), ""))
            return true;
    return false;
}

static bool try_all(opening *o, const cf_search *search) {
    if (!search->only_folders && try_sonames(o, RTLD_NOLOAD))
        return true;
    if (search->folders && try_folders(o, search->folders))
        return true;
    return !search->only_folders && (try_sonames(o, 0) || try_usual(o));
}

conv_fft_status cf_library_open(cf_library *library, const cf_library_spec *spec, const cf_search *search,
                                int driver_version, void *table) {
    opening o = {.spec = spec, .driver_version = driver_version, .table = table, .library = library};
    *library = (cf_library){0};
    library->usable = try_all(&o, search);
    if (library->usable) {
        library->problem[0] = '\0';
        return CONV_FFT_SUCCESS;
    }
    if (!o.reason[0])
        snprintf(o.reason, sizeof o.reason, "%s was not found", spec->sonames[0]);
    library->file[0] = library->version[0] = '\0';
    snprintf(library->problem, sizeof library->problem, "%s; %s", o.reason, spec->how_to_get);
    return cf_fail(CONV_FFT_LIBRARY_MISSING, "%s is missing: %s", spec->name, library->problem);
}

bool cf_library_fits(cf_library *library, const char *name, int cuda_major, int driver_version) {
    if (driver_version == 0 || cuda_major <= driver_version / 1000)
        return true;
    snprintf(library->problem, sizeof library->problem,
             "%s %s is of CUDA %d, newer than the driver, which has CUDA %d.%d", name, library->version, cuda_major,
             driver_version / 1000, driver_version % 1000 / 10);
    return false;
}
