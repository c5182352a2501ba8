/* SPDX-License-Identifier: Apache-2.0 */
/* The planner's choices, and that NVRTC compiles them without spills where it is found; no GPU is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/kernel.h"
#include "fbfft/config.h"
#include "fbfft/kernel_text.h"

static fbfft_desc transform(int rank, fbfft_kind kind, int h, int w, int data_h, int data_w) {
    fbfft_desc d;
    assert_int_equal(fbfft_desc_init(&d, rank, kind), CONV_FFT_SUCCESS);
    d.basis[rank - 1] = w;
    d.extent[rank - 1] = data_w;
    if (rank == 2) {
        d.basis[0] = h;
        d.extent[0] = data_h;
    }
    return d;
}

static cf_gpu_facts facts_of(const char *file) {
    cf_gpu_facts facts;
    assert_int_equal(cf_gpu_facts_load(file, &facts), CONV_FFT_SUCCESS);
    return facts;
}

static void powers_of_two_have_kernels(void **unused) {
    (void)unused;
    const cf_gpu_facts gpus[2] = {facts_of("facts/h200.txt"), facts_of("facts/a100.txt")};
    for (int g = 0; g < 2; ++g)
        for (int kind = 0; kind < 2; ++kind) {
            for (int w = 2; w <= 256; w *= 2) {
                const fbfft_desc line = transform(1, (fbfft_kind)kind, 1, w, 1, 0);
                cf_fft_config c;
                assert_int_equal(cf_fft_configure(&line, &gpus[g], &c), CONV_FFT_SUCCESS);
                /* Lines of more than 64 points have several lanes, whose square must divide both axes. */
                for (int h = 2; h <= 128 && w <= 128; h *= 2) {
                    if ((h > 64 && w < 4) || (w > 64 && h < 4))
                        continue;
                    const fbfft_desc plane = transform(2, (fbfft_kind)kind, h, w, 0, 0);
                    assert_int_equal(cf_fft_configure(&plane, &gpus[g], &c), CONV_FFT_SUCCESS);
                    assert_true(c.threads % 32 == 0 && c.threads <= 1024 && c.shared <= gpus[g].shared_per_block);
                    assert_true((int64_t)c.threads * c.blocks <= gpus[g].threads_per_multiprocessor);
                    assert_true(!c.bulk || gpus[g].compute_major >= 9);
                }
            }
        }
}

static void others_are_refused(void **unused) {
    (void)unused;
    const cf_gpu_facts facts = facts_of("facts/h200.txt");
    static const struct {
        int rank, h, w;
        const char *sentence;
    } cases[] = {{1, 1, 15, "basis[0] is 15"},          {1, 1, 512, "basis[0] is 512"},      {2, 8, 7, "basis[1] is 7"},
                 {2, 256, 256, "lines of this length"}, {2, 128, 2, "lines of this length"}, {3, 8, 8, "rank is 3"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        fbfft_desc d = transform(cases[i].rank == 3 ? 2 : cases[i].rank, FBFFT_R2C, cases[i].h, cases[i].w, 0, 0);
        d.rank = cases[i].rank;
        cf_fft_config c;
        assert_int_equal(cf_fft_configure(&d, &facts, &c), CONV_FFT_NOT_SUPPORTED);
        if (!strstr(conv_fft_last_error(), cases[i].sentence))
            fail_msg("%s: %s", cases[i].sentence, conv_fft_last_error());
    }
}

/* What the pipeline and the benchmarks use most; `spills` where the compiler trades a few registers for occupancy. */
static const struct {
    int rank, h, w, data_h, data_w, bytes_of_spills;
} representative[] = {
    {1, 1, 8, 0, 8, 0},           {1, 1, 64, 0, 64, 0},   {1, 1, 96, 0, 96, 0},    {1, 1, 128, 0, 128, 0},
    {1, 1, 256, 0, 256, 0},       {1, 1, 256, 0, 31, 0},  {2, 8, 8, 8, 8, 0},      {2, 16, 16, 16, 16, 0},
    {2, 16, 16, 5, 5, 0},         {2, 32, 32, 32, 32, 0}, {2, 64, 64, 9, 9, 0},    {2, 64, 64, 64, 64, 32},
    {2, 36, 36, 36, 36, 0},       {2, 48, 48, 48, 48, 0}, {2, 72, 72, 72, 72, 64}, {2, 24, 40, 7, 33, 0},
    {2, 128, 128, 128, 128, 256},
};

static void compile_all(const cf_jit *jit, const char *facts_file) {
    enum {
        COUNT = 2 * sizeof representative / sizeof representative[0]
    };
    const cf_gpu_facts facts = facts_of(facts_file);
    char architecture[CF_ARCHITECTURE_BYTES];
    cf_gpu_architecture(&facts, architecture);
    static cf_source sources[COUNT];
    static cf_cubin cubins[COUNT];
    char *texts[COUNT];
    memset(cubins, 0, sizeof cubins);
    for (int i = 0; i < COUNT; ++i) {
        const fbfft_desc d =
            transform(representative[i / 2].rank, (fbfft_kind)(i % 2), representative[i / 2].h, representative[i / 2].w,
                      representative[i / 2].data_h, representative[i / 2].data_w);
        cf_fft_config c;
        assert_int_equal(cf_fft_configure(&d, &facts, &c), CONV_FFT_SUCCESS);
        char tail[2048];
        cf_text t = {tail, sizeof tail, 0};
        cf_fft_emit(&c, &t);
        assert_true(t.length < sizeof tail);
        texts[i] = malloc(strlen(cf_fbfft_kernel_text) + t.length + 1);
        strcpy(texts[i], cf_fbfft_kernel_text);
        strcat(texts[i], tail);
        sources[i] = (cf_source){.name = "cf_fft",
                                 .text = texts[i],
                                 .options = {CF_FFT_OPTION, "--ptxas-options=-v"},
                                 .dynamic_shared = (size_t)c.shared};
    }
    const cf_source *each[COUNT];
    cf_cubin *into[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        each[i] = &sources[i];
        into[i] = &cubins[i];
    }
    if (cf_jit_compile(jit, architecture, each, COUNT, into) != CONV_FFT_SUCCESS)
        fail_msg("%s", conv_fft_last_error());
    for (int i = 0; i < COUNT; ++i) {
        const char *const at = cubins[i].log ? strstr(cubins[i].log, " bytes spill stores") : NULL;
        assert_non_null(at);
        const char *number = at;
        while (number > cubins[i].log && number[-1] >= '0' && number[-1] <= '9')
            --number;
        const int spills = atoi(number), allowed = representative[i / 2].bytes_of_spills;
        print_message("          %s %s %dx%d from %dx%d: %d bytes of spills\n", architecture, i % 2 ? "c2r" : "r2c",
                      representative[i / 2].h, representative[i / 2].w, representative[i / 2].data_h,
                      representative[i / 2].data_w, spills);
        assert_true(spills <= allowed);
        cf_cubin_clear(&cubins[i]);
        free(texts[i]);
    }
}

static void kernels_compile_without_spills(void **unused) {
    (void)unused;
    cf_jit jit;
    const cf_search search = cf_search_default();
    if (cf_jit_open(&jit, &search, 0, CONV_FFT_LOG_SILENT) != CONV_FFT_SUCCESS) {
        print_message("          no NVRTC: %s\n", conv_fft_last_error());
        skip();
    }
    compile_all(&jit, "facts/h200.txt");
    compile_all(&jit, "facts/a100.txt");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_of_two_have_kernels),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(kernels_compile_without_spills),
    };
    return cmocka_run_group_tests_name("fbfft config", tests, NULL, NULL);
}
