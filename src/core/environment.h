/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CORE_ENVIRONMENT_H
#define CF_CORE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A variable that names files. NULL: it is unset or empty, or the program has more rights than its caller. */
static inline const char *cf_environment(const char *name) {
#if defined(__GLIBC__)
    const char *const value = secure_getenv(name);
#else
    const char *const value = getenv(name);
#endif
    return value && *value ? value : NULL;
}

/* The next folder of a list joined by colons. Its name is "" if it does not fit. False: there is none. */
static inline bool cf_next_folder(const char **list, char *name, size_t bytes) {
    *list += *list ? strspn(*list, ":") : 0;
    if (!*list || !**list)
        return false;
    const size_t length = strcspn(*list, ":"), fits = length < bytes ? length : 0;
    memcpy(name, *list, fits);
    name[fits] = '\0';
    *list += length;
    return true;
}

#endif
