/* SPDX-License-Identifier: Apache-2.0 */
/* Plain loops of a direct convolution on the CPU. */
#ifndef BENCH_DIRECT_LOOPS_H
#define BENCH_DIRECT_LOOPS_H

#include "common/impl.h"

bool bench_direct_open(bench_impl *impl, const bench_job *job);

#endif
