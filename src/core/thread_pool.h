/* SPDX-License-Identifier: Apache-2.0 */
/* Work shared by threads, for tasks that take seconds, such as compiling. */
#ifndef CF_CORE_WORKERS_H
#define CF_CORE_WORKERS_H

#include "core/status.h"

/*
 * Call do_one(user, i) for all i < count, in increasing order, on this thread and on further threads, one for each
 * processor. A failure does not stop the other calls. Returns the status of the first i that failed; its message
 * becomes this thread's last error. OUT_OF_MEMORY.
 */
conv_fft_status cf_workers_run(int count, conv_fft_status (*do_one)(void *user, int i), void *user);

#endif
