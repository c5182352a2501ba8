/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling: errors, sources kept on request, several kernels at the same time; and the real NVRTC if it is
 * installed. */
#include "cuda/jit/compile_process.h"
#include "cuda/jit/hash.h"
#include "cuda/jit/nvrtc.h"
#include "support/temp_dirs.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
static void check_several_kernels(const cf_jit *jit) {
    enum {
        COUNT = 40
    };
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
    assert_int_equal(cf_jit_compile(jit, "sm_80", sources, COUNT, targets), CONV_FFT_COMPILE_ERROR);
    assert_says("kernel kernel17 did not compile for sm_80");
    for (int i = 0; i < COUNT; ++i) {
        if (i == 17 || i == 30)
            assert_null(cubins[i].data);
        else
            assert_non_null(strstr(cubins[i].data, texts[i]));
        cf_cubin_clear(&cubins[i]);
    }
    assert_int_equal(cf_jit_compile(jit, "sm_80", sources, 0, targets), CONV_FFT_SUCCESS);
}

static void errors_of_several_kernels(void **state) {
    (void)state;
    const cf_jit jit = fake();
    assert_string_equal(jit.program, ""); /* this executable has no such folder beside it */
    check_several_kernels(&jit);
}

/* compile-kernel, with a file of NVRTC. */
static cf_jit with_program(const cf_jit *jit, const char *program, const char *nvrtc) {
    cf_jit with = *jit;
    snprintf(with.program, sizeof with.program, "%s", program);
    snprintf(with.library.file, sizeof with.library.file, "%s", nvrtc);
    return with;
}

static atomic_int *compilations_here(const cf_jit *jit) {
    return dlsym(dlopen(jit->library.file, RTLD_NOW | RTLD_NOLOAD), "fake_nvrtc_compilations");
}

/* Processes compile all kernels but one at a time, and give the same results and errors. */
static void several_kernels_by_processes(void **state) {
    (void)state;
    const cf_jit plain = fake(), jit = with_program(&plain, COMPILE_KERNEL, plain.library.file);
    const int before = atomic_load(compilations_here(&jit));
    check_several_kernels(&jit);
    const int here = atomic_load(compilations_here(&jit)) - before;
    assert_in_range(here, 1, sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 39 : 40);
}

/* A process and this one give the same bytes. */
static void check_process(const cf_jit *jit, const char *text, const char *option) {
    const char *const options[] = {"--gpu-architecture=sm_90a", option};
    const cf_compile_request request = {"kernel.cu", text, options, 2};
    cf_nvrtc_result result = 77;
    cf_cubin there = {0}, here = {0};
    assert_true(cf_compile_in_process(jit, &request, &result, &there));
    assert_int_equal(result, cf_nvrtc_run(jit, &request, &here));
    assert_int_equal(there.bytes, here.bytes);
    if (here.data)
        assert_memory_equal(there.data, here.data, here.bytes);
    assert_true((there.log != NULL) == (here.log != NULL));
    if (here.log)
        assert_string_equal(there.log, here.log);
    cf_cubin_clear(&there);
    cf_cubin_clear(&here);
}

static void one_kernel_by_a_process(void **state) {
    (void)state;
    const cf_jit plain = fake(), jit = with_program(&plain, COMPILE_KERNEL, plain.library.file);
    enum {
        LONG = 3 << 20 /* more than a socket buffers */
    };
    char *const text = malloc(LONG + 1);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    check_process(&jit, "a text", "--std=c++17");
    check_process(&jit, "a text with spills=8", "--ptxas-options=-v");
    check_process(&jit, "#error with a log", "--std=c++17");
    check_process(&jit, "", "--std=c++17");
    check_process(&jit, text, "--std=c++17");
    memcpy(text, "#error", 6);
    check_process(&jit, text, "--std=c++17");
    /* A program that ends before it has read a text that no socket buffers. */
    const cf_jit ends = with_program(&plain, "/bin/true", plain.library.file);
    const cf_compile_request request = {"kernel.cu", text, NULL, 0};
    cf_nvrtc_result result;
    cf_cubin cubin = {0};
    assert_false(cf_compile_in_process(&ends, &request, &result, &cubin));
    free(text);
}

/* Where the program gives no answer, nothing is left behind, and the kernels are compiled here. */
static void programs_that_give_no_answer(void **state) {
    (void)state;
    const cf_jit plain = fake();
    const char *const file = plain.library.file;
    const struct {
        const char *program, *nvrtc, *name;
    } wrong_ones[] = {{"", file, "kernel.cu"},
                      {"/nonexistent/compile-kernel", file, "kernel.cu"},
                      {"/bin/true", file, "kernel.cu"},
                      {"/bin/sh", "-c", "kill -9 $$"},
                      {"/bin/sh", "-c", "cat >/dev/null; echo short >&0"},
                      {"/bin/sh", "-c", "cat >/dev/null; exec 4>&0; head -c 24 /dev/zero | tr '\\0' '\\377' >&4"},
                      {"/bin/sh", "-c", "cat >/dev/null; head -c 24 /dev/zero >&0"}, /* success without code */
                      {COMPILE_KERNEL, "/nonexistent/libnvrtc.so", "kernel.cu"},
                      {COMPILE_KERNEL, FAKES "/lacking/libnvrtc.so.13", "kernel.cu"}};
    for (size_t i = 0; i < sizeof wrong_ones / sizeof wrong_ones[0]; ++i) {
        const cf_jit jit = with_program(&plain, wrong_ones[i].program, wrong_ones[i].nvrtc);
        const cf_compile_request request = {wrong_ones[i].name, saxpy, NULL, 0};
        cf_nvrtc_result result;
        cf_cubin cubin = {0};
        assert_false(cf_compile_in_process(&jit, &request, &result, &cubin));
        assert_null(cubin.data);
        assert_null(cubin.log);
    }
    const cf_jit jit = with_program(&plain, "/bin/true", file);
    check_several_kernels(&jit);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
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

/* NVRTC knows all options of the library (unknown ones are errors), and threads or processes that compile do not
 * disturb each other. */
static void check_real_compiler(const char *program) {
    cf_jit jit;
    if (!real(&jit))
        skip();
    snprintf(jit.program, sizeof jit.program, "%s", program);
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

static void real_compiler_in_threads(void **state) {
    (void)state;
    check_real_compiler("");
}
static void real_compiler_in_processes(void **state) {
    (void)state;
    check_real_compiler(COMPILE_KERNEL);
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(error_and_kept_source),
        cmocka_unit_test(errors_of_several_kernels),
        cmocka_unit_test(several_kernels_by_processes),
        cmocka_unit_test(one_kernel_by_a_process),
        cmocka_unit_test(programs_that_give_no_answer),
        WITH_SCRATCH(no_compiler),
        cmocka_unit_test(real_compiler),
        cmocka_unit_test(real_compiler_in_threads),
        cmocka_unit_test(real_compiler_in_processes),
    };
    return cmocka_run_group_tests_name("device JIT", tests, NULL, NULL);
}
