/* SPDX-License-Identifier: Apache-2.0 */
/* All passes of one case. */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include "conv/session.h"

/* Measure the case and write the results file again. False: the results cannot be written. */
bool bench_run_case(bench_session *run, const bench_case *layer);

/* Add the time since *from to an account, and set *from to now. */
void bench_spend(double *account, double *from);

#endif
