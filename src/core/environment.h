/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CORE_ENVIRONMENT_H
#define CF_CORE_ENVIRONMENT_H

#include <stddef.h>
#include <stdlib.h>

/* A variable that names files. NULL: it is unset or empty, or the program has more rights than its caller. */
static inline const char *cf_environment(const char *name) {
#if defined(__GLIBC__)
    const char *const value = secure_getenv(name);
#else
    const char *const value = getenv(name);
#endif
    return value && *value ? value : NULL;
}

#endif
