/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries opened at run time: where they are looked for, and a table of functions from each. */
#ifndef CF_DEVICE_DYNLIB_H
#define CF_DEVICE_DYNLIB_H

#include "core/status.h"

#include <stdbool.h>

/* Where to look, in this order: copies that the process has loaded already, `folders`, the loader's own places, folders
 * where CUDA is usually installed. */
typedef struct cf_search {
    const char *folders; /* joined by colons; NULL: none */
    bool only_folders;   /* nowhere else */
} cf_search;

/* CONV_FFT_LIBRARY_PATH, then everywhere. */
cf_search cf_search_default(void);

/* What became of a library. */
typedef struct cf_library {
    bool usable;
    char file[512], version[32]; /* where and what it is, if usable */
    char problem[768];           /* else why not, and how to get it */
} cf_library;

/* A function and its place in the table. */
typedef struct cf_symbol {
    const char *name;
    size_t offset;
} cf_symbol;

typedef struct cf_library_spec {
    const char *name;           /* for people */
    const char *const *sonames; /* best first; NULL ends them */
    const char *how_to_get;
    const cf_symbol *symbols;
    size_t symbol_count;
    /* Writes the version. False, with the reason as `problem`: this copy does not fit. Functions that it lacks are NULL.
     * driver_version is as the driver gives it, 1000 * major + 10 * minor, or 0 if there is no driver to fit. */
    bool (*accept)(const void *table, int driver_version, cf_library *library);
} cf_library_spec;

/* Fill the table from the first copy that has every function and is accepted. LIBRARY_MISSING: there is none, as
 * library->problem says. A library in use is never closed: those of CUDA may have threads and exit handlers. */
conv_fft_status cf_library_open(cf_library *library, const cf_library_spec *spec, const cf_search *search,
                                int driver_version, void *table);

/* For `accept`: refuse a library of a newer CUDA than the driver's. Older ones and newer minor versions work. */
bool cf_library_fits(cf_library *library, const char *name, int cuda_major, int driver_version);

#endif
