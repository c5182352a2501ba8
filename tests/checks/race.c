/* SPDX-License-Identifier: Apache-2.0 */
/* A data race on purpose: the thread sanitizer must report it, or its silence about the library would mean nothing. */
#include <stdio.h>

int main(void) {
    int sum = 0;
#pragma omp parallel for
    for (int i = 0; i < 100000; i++) {
        sum += i;
    }
    printf("%d\n", sum);
    return 0;
}
