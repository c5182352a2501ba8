/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the address of each function that a forward call on the substitute GPU enters, in the order of first entry.
 * The library of this program is compiled with -finstrument-functions. call_trace.py finds the files. */
#include "support/fake_layers.h"
#include "support/layer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MAX_FUNCTIONS = 1000
};

static bool tracing;
static void *functions[MAX_FUNCTIONS];
static int count;

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

void __cyg_profile_func_enter(void *function, void *site) {
    (void)site;
    if (!tracing)
        return;
    for (int i = 0; i < count; ++i)
        if (functions[i] == function)
            return;
    if (count < MAX_FUNCTIONS)
        functions[count++] = function;
}

void __cyg_profile_func_exit(void *function, void *site) { (void)function, (void)site; }

/* argv[1]: a folder for the cache. argv[2]: a problem line. */
int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    conv_fft_context *context = fake_context_create(WITH_BLAS, argv[1], false);
    const conv_fft_problem p = test_problem(argv[2]);
    conv_fft_plan *plan = test_plan(context, &p, NULL);
    size_t bytes;
    if (!plan || conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &bytes) != CONV_FFT_SUCCESS)
        return 1;
    /* Addresses far apart: the substitute does not look at the memory. */
    const uintptr_t far = (uintptr_t)1 << 32;
    const int before = fake_launches();
    tracing = true;
    const conv_fft_status status =
        conv_fft_forward(plan, (void *)far, (void *)(2 * far), NULL, (void *)(3 * far), (void *)(4 * far), bytes, NULL);
    tracing = false;
    for (int i = 0; i < count; ++i)
        printf("%p\n", functions[i]);
    const bool launched = fake_launches() > before;
    conv_fft_plan_destroy(plan);
    fake_context_destroy(context);
    return status == CONV_FFT_SUCCESS && launched ? 0 : 1;
}
