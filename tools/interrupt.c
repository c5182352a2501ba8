/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"

#include <signal.h>
#include <unistd.h>

volatile int interrupted;

static void interrupt(int number) {
    static const char text[] = "\nconv-fft: stopping; once more stops at once\n";
    interrupted = number;
    const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
}

void interrupt_begin(void) {
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int interrupt_status(int status) { return interrupted ? 128 + interrupted : status; }
