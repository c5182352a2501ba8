/* SPDX-License-Identifier: Apache-2.0 */
/* The layers that test_staged.cpp runs. */
#ifndef SIMT_STAGED_CASES_H
#define SIMT_STAGED_CASES_H

/* Returns the number of failures. facts: the file of the GPU's properties. */
int staged_cases_run(const char *properties);

/* Called after a layer, when its kernels are gone. Returns the first error of its kernels, or "". */
const char *staged_end_kernels(void);

#endif
