/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN 3, if it is found at run time. */
#ifndef BENCH_ONEDNN_H
#define BENCH_ONEDNN_H

#include "common/impl.h"

bool bench_onednn_open(bench_impl *impl, const bench_job *job);

/* Without the reorders between oneDNN's layouts and the plain layout. */
bool bench_onednn_blocked_open(bench_impl *impl, const bench_job *job);

/* "oneDNN 3.7.2", or "no oneDNN". */
const char *bench_onednn_version(void);

#endif
