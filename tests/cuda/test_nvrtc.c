/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling: errors, sources kept on request, several kernels at the same time; and the real NVRTC if it is
 * installed. */
#include "cuda/jit/hash.h"
#include "cuda/jit/nvrtc.h"
#include "support/temp_dirs.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char saxpy[] = "extern \"C\" __global__ void saxpy(int n, float a, const float *x, float *y) {\n"
                            "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                            "    if (i < n) y[i] += a * x[i];\n"
                            "}\n";
static const char wrong[] = "extern \"C\" __global__ void wrong(float *y) {\n    y[0] = undeclared;\n}\n";

static cf_jit fake(void) {
    const cf_search search = {.folders = FAKES "/good", .only_folders = true};
    cf_jit jit;
    assert_int_equal(cf_jit_open(&jit, &search, 0, CONV_FFT_LOG_WARNING), CONV_FFT_SUCCESS);
    return jit;
}

static conv_fft_status compile(const cf_jit *jit, const char *architecture, const char *name, const char *text,
                               cf_cubin *cubin) {
    const cf_source source = {.name = name, .text = text};
    const cf_source *const sources[] = {&source};
    *cubin = (cf_cubin){0};
    return cf_jit_compile(jit, architecture, sources, 1, &cubin);
}

#define assert_says(part)                                                        \
    do {                                                                         \
        if (!strstr(conv_fft_last_error(), part))                                \
            fail_msg("\"%s\" does not say \"%s\"", conv_fft_last_error(), part); \
    } while (0)

static void error_and_kept_source(void **state) {
    const cf_jit jit = fake();
    static const char text[] = "// a text\n#error here\n";
    cf_cubin cubin;
    assert_int_equal(compile(&jit, "sm_90a", "broken", text, &cubin), CONV_FFT_COMPILE_ERROR);
    assert_null(cubin.data);
    assert_says(
        "kernel broken did not compile for sm_90a with NVRTC 13.0 (CONV_FFT_KEEP_SOURCE=directory keeps its source): ");
    assert_says("broken.cu(2): error: #error directive: here");
    assert_null(strchr(conv_fft_last_error(), '\n'));
    assert_int_equal(scratch_count(*state, "", NULL), 0);

    setenv("CONV_FFT_KEEP_SOURCE", *state, 1);
    assert_int_equal(compile(&jit, "sm_90a", "broken", text, &cubin), CONV_FFT_COMPILE_ERROR);
    assert_null(strstr(conv_fft_last_error(), "CONV_FFT_KEEP_SOURCE"));
    assert_int_equal(compile(&jit, "sm_90a", "fine", saxpy, &cubin), CONV_FFT_SUCCESS);
    cf_cubin_clear(&cubin);
    capture_begin();
    setenv("CONV_FFT_KEEP_SOURCE", "/nonexistent", 1);
    const conv_fft_status status = compile(&jit, "sm_90a", "fine", saxpy, &cubin);
    cf_cubin_clear(&cubin);
    assert_int_equal(occurrences(capture_end(), "could not be written"), 2);
    assert_int_equal(status, CONV_FFT_SUCCESS);
    unsetenv("CONV_FFT_KEEP_SOURCE");

    char name[64];
    size_t bytes;
    assert_int_equal(scratch_count(*state, "", NULL), 4); /* text and log of each */
    snprintf(name, sizeof name, "broken-%016" PRIx64 ".cu", cf_hash(text, strlen(text)));
    char *const kept = scratch_read(scratch_path(*state, name), &bytes);
    assert_string_equal(kept, text);
    snprintf(name, sizeof name, "broken-%016" PRIx64 ".log", cf_hash(text, strlen(text)));
    char *const log = scratch_read(scratch_path(*state, name), &bytes);
    assert_non_null(strstr(log, "1 error detected in the compilation"));
    free(kept);
    free(log);
}

/* The first of several errors is reported. The kernels that compiled are returned. */
static void errors_of_several_kernels(void **state) {
    (void)state;
    enum {
        COUNT = 40
    };
    const cf_jit jit = fake();
    char texts[COUNT][64], names[COUNT][32];
    cf_source list[COUNT];
    const cf_source *sources[COUNT];
    cf_cubin cubins[COUNT], *targets[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        snprintf(texts[i], sizeof texts[i], "%s text %d", i == 17 || i == 30 ? "#error" : "good", i);
        snprintf(names[i], sizeof names[i], "kernel%d", i);
        list[i] = (cf_source){.name = names[i], .text = texts[i]};
        sources[i] = &list[i];
        cubins[i] = (cf_cubin){0};
        targets[i] = &cubins[i];
    }
    assert_int_equal(cf_jit_compile(&jit, "sm_80", sources, COUNT, targets), CONV_FFT_COMPILE_ERROR);
    assert_says("kernel kernel17 did not compile for sm_80");
    for (int i = 0; i < COUNT; ++i) {
        if (i == 17 || i == 30)
            assert_null(cubins[i].data);
        else
            assert_non_null(strstr(cubins[i].data, texts[i]));
        cf_cubin_clear(&cubins[i]);
    }
    assert_int_equal(cf_jit_compile(&jit, "sm_80", sources, 0, targets), CONV_FFT_SUCCESS);
}

static void no_compiler(void **state) {
    const cf_search search = {.folders = *state, .only_folders = true};
    cf_jit jit;
    cf_cubin cubin;
    assert_int_equal(cf_jit_open(&jit, &search, 0, CONV_FFT_LOG_WARNING), CONV_FFT_LIBRARY_MISSING);
    assert_int_equal(compile(&jit, "sm_90a", "saxpy", saxpy, &cubin), CONV_FFT_LIBRARY_MISSING);
    assert_says("NVRTC is missing");
}

/* ---- the real NVRTC */

static bool real(cf_jit *jit) {
    const cf_search search = cf_search_default();
    return cf_jit_open(jit, &search, 0, CONV_FFT_LOG_WARNING) == CONV_FFT_SUCCESS;
}

static void real_compiler(void **state) {
    (void)state;
    cf_jit jit;
    if (!real(&jit))
        skip();
    static const char *const architectures[] = {"sm_80", "sm_90a"};
    for (int i = 0; i < 2; ++i) {
        const cf_source source = {.name = "saxpy", .text = saxpy, .options = {"--ptxas-options=-v"}};
        const cf_source *const sources[] = {&source};
        cf_cubin cubin = {0}, *const targets[] = {&cubin};
        assert_int_equal(cf_jit_compile(&jit, architectures[i], sources, 1, targets), CONV_FFT_SUCCESS);
        assert_true(cubin.bytes > 1000);
        assert_memory_equal(cubin.data, "\177ELF", 4);
        char target[32];
        snprintf(target, sizeof target, "for '%s'", architectures[i]);
        assert_non_null(cubin.log); /* how tests see registers and spills */
        assert_non_null(strstr(cubin.log, target));
        assert_non_null(strstr(cubin.log, "0 bytes spill stores"));
        cf_cubin_clear(&cubin);
        assert_int_equal(compile(&jit, architectures[i], "wrong", wrong, &cubin), CONV_FFT_COMPILE_ERROR);
        assert_says("wrong.cu(2): error: identifier \"undeclared\" is undefined");
    }
    cf_cubin cubin;
    assert_int_equal(compile(&jit, "sm_12", "saxpy", saxpy, &cubin), CONV_FFT_COMPILE_ERROR);
    assert_says("kernel saxpy did not compile for sm_12 with NVRTC ");
    assert_says("gpu-architecture");
}

/* NVRTC knows all options of the library (unknown ones are errors), and threads that compile do not disturb each
 * other. */
static void real_compiler_in_threads(void **state) {
    (void)state;
    cf_jit jit;
    if (!real(&jit))
        skip();
    enum {
        COUNT = 4
    };
    cf_source list[COUNT];
    char defines[COUNT][32];
    const cf_source *sources[COUNT];
    cf_cubin cubins[COUNT], *targets[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        snprintf(defines[i], sizeof defines[i], "-DN=%d", i);
        list[i] = (cf_source){.name = "saxpy", .text = i == 2 ? wrong : saxpy, .options = {defines[i]}};
        sources[i] = &list[i];
        cubins[i] = (cf_cubin){0};
        targets[i] = &cubins[i];
    }
    assert_int_equal(cf_jit_compile(&jit, "sm_80", sources, COUNT, targets), CONV_FFT_COMPILE_ERROR);
    for (int i = 0; i < COUNT; ++i) {
        assert_true((cubins[i].data != NULL) == (i != 2));
        cf_cubin_clear(&cubins[i]);
    }
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(error_and_kept_source), cmocka_unit_test(errors_of_several_kernels), WITH_SCRATCH(no_compiler),
        cmocka_unit_test(real_compiler),     cmocka_unit_test(real_compiler_in_threads),
    };
    return cmocka_run_group_tests_name("device JIT", tests, NULL, NULL);
}
