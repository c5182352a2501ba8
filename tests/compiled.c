/* SPDX-License-Identifier: Apache-2.0 */
#include "compiled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor.h"

bool compiler_open(cf_jit *jit) {
    const cf_search search = cf_search_default();
    if (cf_jit_open(jit, &search, 0, CONV_FFT_LOG_SILENT) == CONV_FFT_SUCCESS)
        return true;
    print_message("          no NVRTC: %s\n", conv_fft_last_error());
    return false;
}

static int number_before(const char *log, const char *words) {
    const char *at = log ? strstr(log, words) : NULL;
    assert_non_null(at);
    while (at > log && at[-1] >= '0' && at[-1] <= '9')
        --at;
    return atoi(at);
}

static void add_option(cf_source *source, const char *option) {
    int count = 0;
    while (source->options[count])
        ++count;
    source->options[count] = option;
}

int compile_kernels(const cf_jit *jit, const cf_gpu_facts *facts, compiled *kernels, int count) {
    char architecture[CF_ARCHITECTURE_BYTES];
    cf_gpu_architecture(facts, architecture);
    cf_cubin *const cubins = test_alloc((size_t)count * sizeof *cubins),
                    **into = test_alloc((size_t)count * sizeof *into);
    const cf_source **each = test_alloc((size_t)count * sizeof *each);
    int bad = 0;
    for (int i = 0; i < count; ++i) {
        add_option(&kernels[i].source, "--ptxas-options=-v");
        cubins[i] = (cf_cubin){0};
        each[i] = &kernels[i].source;
        into[i] = &cubins[i];
    }
    if (cf_jit_compile(jit, architecture, each, count, into) != CONV_FFT_SUCCESS)
        fail_msg("%s: %s", architecture, conv_fft_last_error());
    for (int i = 0; i < count; ++i) {
        const int stack = number_before(cubins[i].log, " bytes stack frame"),
                  spills = number_before(cubins[i].log, " bytes spill stores");
        if (stack > kernels[i].allowed || spills > kernels[i].allowed) {
            print_error("%s: %s: %d bytes of spills, %d of local memory; %d are allowed\n", architecture,
                        kernels[i].name, spills, stack, kernels[i].allowed);
            ++bad;
        }
        cf_cubin_clear(&cubins[i]);
        free((char *)kernels[i].source.text);
    }
    print_message("          %s: %d kernels\n", architecture, count);
    free(cubins);
    free(into);
    free(each);
    return bad;
}
