/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C and SIGTERM end a command between two steps. A second signal ends the program at once. */
#ifndef CONV_FFT_PROGRAM_INTERRUPT_H
#define CONV_FFT_PROGRAM_INTERRUPT_H

/* The number of the signal that came; 0: none. */
extern volatile int interrupted;

/* From now on, signals set `interrupted` and write a message. */
void interrupt_begin(void);

/* The exit status of a command that was not interrupted is `status`. */
int interrupt_status(int status);

#endif
