/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CORE_CLOCK_H
#define CF_CORE_CLOCK_H

/* Seconds of a steady clock. */
double cf_clock_seconds(void);

/* Seconds that the threads of this process have computed, together. */
double cf_clock_process_seconds(void);

#endif
