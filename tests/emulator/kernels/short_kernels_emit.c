/* SPDX-License-Identifier: Apache-2.0 */
/* short_kernels_emit FACTS float CORE SHARE PREFIX: write the kernels of the cases of this run to CORE sources of the
 * core and SHARE sources of the share (emit.h). short_kernel_registration.h explains the sources. */
#include "kernels/emit.h"
#include "kernels/short_kernel_cases.h"

#include "cuda/jit/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number, kernels; /* of the case; of its kernels that are written */
static FILE *out;           /* where they go */
static cf_kernel built_one; /* none of them is launched */

static void need(bool condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "case %d: %s\n", number, what);
    exit(1);
}

/* In the place of the library's own. A plan builds its kernels when it is made. */
conv_fft_status __wrap_cf_kernels_build(cf_gpu *gpu, const cf_source *sources, int count, cf_kernel **built);
conv_fft_status __wrap_cf_kernels_build(cf_gpu *gpu, const cf_source *sources, int count, cf_kernel **built) {
    built_one.gpu = gpu;
    for (int i = 0; i < count; ++i) {
        const char *const text = sources[i].text, *const entry = sources[i].name;
        char name[64];
        built[i] = &built_one;
        if (strcmp(entry, "cf_toeplitz") != 0 && strcmp(entry, "cf_dft") != 0 && strcmp(entry, "cf_igemm") != 0 &&
            strcmp(entry, "cf_spatial") != 0)
            continue;
        snprintf(name, sizeof name, "kernel_%d_%d", number, kernels++);
        fprintf(out, "#define %s %s\nnamespace in_%s {\n%s}\n#undef %s\n", entry, name, name, text, entry);
        fprintf(out, "static const Registration add_%s(R\"(%s)\", in_%s::%s);\n\n", name, text, name, name);
    }
    return CONV_FFT_SUCCESS;
}

void __wrap_cf_kernel_destroy(cf_kernel *kernel);
void __wrap_cf_kernel_destroy(cf_kernel *kernel) { (void)kernel; }

conv_fft_status __wrap_cf_gpu_zero(cf_device *device, const cf_tensor *tensor, const int64_t extents[5], void *data,
                                   struct CUstream_st *stream);
conv_fft_status __wrap_cf_gpu_zero(cf_device *device, const cf_tensor *tensor, const int64_t extents[5], void *data,
                                   struct CUstream_st *stream) {
    (void)device, (void)tensor, (void)extents, (void)data, (void)stream;
    return CONV_FFT_SUCCESS;
}

static void emit_part(emission *e, test_part part, const char *properties, const short_case *cases, int count) {
    short_opened o;
    for (number = 0; number < count; ++number) {
        if (short_case_part(number) != part)
            continue;
        out = emission_next(e, part);
        kernels = 0;
        need(short_case_open(&cases[number], properties, &o), conv_fft_last_error());
        short_case_close(&o);
    }
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: short_kernels_emit FACTS float CORE SHARE PREFIX\n");
        return 1;
    }
    const short_case *cases;
    const int count = short_case_list(&cases);
    emission e;
    emission_open(&e, argv[5], "kernels/short_kernel_registration.h", atoi(argv[3]), atoi(argv[4]));
    emit_part(&e, TEST_CORE, argv[1], cases, count);
    emit_part(&e, TEST_SHARE, argv[1], cases, count);
    return emission_close(&e);
}
