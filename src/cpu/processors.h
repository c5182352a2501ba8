/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CPU_PROCESSORS_H
#define CF_CPU_PROCESSORS_H

#include <stdbool.h>

typedef struct cf_processors {
    int count;     /* that this process may use, >= 1: those of its affinity mask, but no more than the quota */
    double quota;  /* processors' time that its control groups allow; 0: any */
    bool by_quota; /* the quota, rounded up, is what limits the count */
} cf_processors;

/* root: "", or a folder that stands for / in a test. What cannot be read limits nothing. */
cf_processors cf_processors_find(const char *root);

#endif
