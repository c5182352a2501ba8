/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that are opened at run time: where they are searched, and a table of functions from each. */
#ifndef CF_DEVICE_DYNLIB_H
#define CF_DEVICE_DYNLIB_H

#include "core/status.h"

#include <stdbool.h>

/* Where to search, in this order: copies that the process has loaded, `folders`, the loader's own folders, folders
 * where CUDA is usually installed. */
typedef struct cf_search {
    const char *folders; /* joined by colons; NULL: none */
    bool only_folders;   /* search nowhere else */
} cf_search;

/* CONV_FFT_LIBRARY_PATH, then everywhere else. */
cf_search cf_search_default(void);

/* The result of a search. */
typedef struct cf_library {
    bool usable;
    char file[512], version[32]; /* file and version of a usable library */
    char problem[768];           /* otherwise: why it is not usable, and how to get it */
} cf_library;

/* A function and its place in the table. */
typedef struct cf_symbol {
    const char *name;
    size_t offset;
} cf_symbol;

typedef struct cf_library_spec {
    const char *name;           /* for people */
    const char *const *sonames; /* preferred first; NULL ends them */
    const char *how_to_get;
    const cf_symbol *symbols;
    size_t symbol_count;
    /* Writes the version. False: this copy does not fit, and `problem` says why. Functions that the copy lacks are
     * NULL. driver_version is 1000 * major + 10 * minor, as the driver gives it, or 0 if there is no driver. */
    bool (*accept)(const void *table, int driver_version, cf_library *library);
} cf_library_spec;

/* Fill the table from the first copy that has every function and is accepted. LIBRARY_MISSING: there is none;
 * library->problem says why. A library in use is never closed, because CUDA's libraries may have threads and exit
 * handlers. */
conv_fft_status cf_library_open(cf_library *library, const cf_library_spec *spec, const cf_search *search,
                                int driver_version, void *table);

/* For `accept`: refuse a library of a newer major version of CUDA than the driver's. Older ones and newer minor
 * versions work. */
bool cf_library_fits(cf_library *library, const char *name, int cuda_major, int driver_version);

#endif
