/* SPDX-License-Identifier: Apache-2.0 */
/* Pointers and streams that a GPU cannot use, with a substitute driver: which are refused, and with which message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cuda/driver/pointer_check.h"
#include "fakes/fake.h"
#include "fbfft.h"
#include "support/error_text.h"
#include "support/fake_context.h"
#include "support/fake_gpu.h"
#include "support/layer.h"
#include "support/temp_dirs.h"

#include <stdlib.h>
#include <string.h>

static fake_cuda *driver(void) { return inside_fake(FAKES "/good/libcuda.so.1", "fake_cuda_state"); }

/* Set the substitute driver's answers about one address. */
static void describe(const void *pointer, unsigned type, int ordinal, const void *device_pointer) {
    memset(driver()->attribute, 0, sizeof driver()->attribute);
    driver()->special = pointer;
    driver()->attribute[CF_CU_POINTER_MEMORY_TYPE] = type;
    driver()->attribute[CF_CU_POINTER_DEVICE_ORDINAL] = (unsigned)ordinal;
    driver()->attribute[CF_CU_POINTER_DEVICE_POINTER] = (uintptr_t)device_pointer;
}

static void set(unsigned attribute, unsigned long long value) { driver()->attribute[attribute] = value; }

static void addresses(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    char memory[64];
    const cf_gpu_argument one = {"x", memory, 64}, none[2] = {{"x", NULL, 64}, {"y", memory, 0}};
    assert_int_equal(cf_gpu_check_arguments(gpu, &one, 1, NULL), CONV_FFT_SUCCESS);

    describe(memory, 0, 0, NULL);
    EXPECT_INVALID(cf_gpu_check_arguments(gpu, &one, 1, NULL), "x is 0x", "an address that CUDA does not know", "GPU 0",
                   "not to ordinary memory of the host, nor to memory that has been freed");
    assert_int_equal(cf_gpu_check_arguments(gpu, none, 2, NULL), CONV_FFT_SUCCESS);

    /* Managed memory; page-locked memory at its own device address and at another one; page-locked memory that is not
     * mapped. */
    describe(memory, CF_CU_MEMORY_OF_HOST, 0, NULL);
    set(CF_CU_POINTER_IS_MANAGED, 1);
    assert_int_equal(cf_gpu_check_arguments(gpu, &one, 1, NULL), CONV_FFT_SUCCESS);
    describe(memory, CF_CU_MEMORY_OF_HOST, 0, memory);
    assert_int_equal(cf_gpu_check_arguments(gpu, &one, 1, NULL), CONV_FFT_SUCCESS);
    describe(memory, CF_CU_MEMORY_OF_HOST, 0, (void *)0x1234);
    EXPECT_INVALID(cf_gpu_check_arguments(gpu, &one, 1, NULL), "page-locked", "it must be 0x1234, the one that GPU 0");
    describe(memory, CF_CU_MEMORY_OF_HOST, 0, NULL);
    EXPECT_INVALID(cf_gpu_check_arguments(gpu, &one, 1, NULL), "memory of the host that GPU 0 cannot access");

    /* Memory of another GPU: without and with peer access, and with access rights of its own. */
    describe(memory, CF_CU_MEMORY_OF_DEVICE, 1, NULL);
    EXPECT_INVALID(cf_gpu_check_arguments(gpu, &one, 1, NULL), "x is 0x", "memory of GPU 1; it must be of GPU 0",
                   "peer access");
    describe(memory, CF_CU_MEMORY_OF_DEVICE, 1, memory);
    assert_int_equal(cf_gpu_check_arguments(gpu, &one, 1, NULL), CONV_FFT_SUCCESS);
    describe(memory, CF_CU_MEMORY_OF_DEVICE, 1, NULL);
    set(CF_CU_POINTER_ACCESS_FLAGS, CF_CU_ACCESS_READWRITE);
    assert_int_equal(cf_gpu_check_arguments(gpu, &one, 1, NULL), CONV_FFT_SUCCESS);
    driver()->special = NULL;
    close_gpu(gpu);
}

static void bounds(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    char memory[64];
    const cf_gpu_argument exact = {"gw", memory + 24, 40}, beyond = {"gw", memory + 24, 41};
    describe(memory + 24, CF_CU_MEMORY_OF_DEVICE, 0, memory + 24);
    set(CF_CU_POINTER_IS_LEGACY_IPC_CAPABLE, 1);
    set(CF_CU_POINTER_RANGE_START, (uintptr_t)memory);
    set(CF_CU_POINTER_RANGE_SIZE, sizeof memory);
    assert_int_equal(cf_gpu_check_arguments(gpu, &exact, 1, NULL), CONV_FFT_SUCCESS);
    EXPECT_INVALID(cf_gpu_check_arguments(gpu, &beyond, 1, NULL), "gw is 0x",
                   "40 bytes are left in its allocation from there, and the call needs 41");
    /* For memory that is mapped in parts or comes from a pool, bounds do not count. Neither do impossible bounds. */
    set(CF_CU_POINTER_IS_LEGACY_IPC_CAPABLE, 0);
    assert_int_equal(cf_gpu_check_arguments(gpu, &beyond, 1, NULL), CONV_FFT_SUCCESS);
    set(CF_CU_POINTER_IS_LEGACY_IPC_CAPABLE, 1);
    set(CF_CU_POINTER_RANGE_SIZE, 0);
    assert_int_equal(cf_gpu_check_arguments(gpu, &beyond, 1, NULL), CONV_FFT_SUCCESS);
    set(CF_CU_POINTER_RANGE_SIZE, 24);
    assert_int_equal(cf_gpu_check_arguments(gpu, &beyond, 1, NULL), CONV_FFT_SUCCESS);
    driver()->special = NULL;
    close_gpu(gpu);
}

static void streams(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    char foreign, own;
    driver()->foreign_stream = &foreign;
    for (uintptr_t handle = 0; handle <= 2; handle++)
        assert_int_equal(cf_gpu_check_arguments(gpu, NULL, 0, (cf_cu_stream)handle), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_check_arguments(gpu, NULL, 0, (cf_cu_stream)(void *)&own), CONV_FFT_SUCCESS);
    EXPECT_INVALID(cf_gpu_check_arguments(gpu, NULL, 0, (cf_cu_stream)(void *)&foreign), "stream is 0x",
                   "of another CUDA context", "primary context of GPU 0");
    driver()->foreign_stream = NULL;
    close_gpu(gpu);
}

/* Every argument of every call is checked with its own name and size, but only if the call uses it. */
static void pointers_of_layer_calls(void **state) {
    static const char *const names[] = {"x", "w", "bias", "y", "gy", "gx", "gw", "gbias", "workspace"};
    conv_fft_context *context = fake_context_create(FAKES_PLAIN, *state, false);
    const conv_fft_problem p = test_problem("in=2x12x12x13 out=16 kernel=3x3 pad=1 dtype=fp16 gw=fp32");
    const size_t bytes[] = {
        2 * 2 * 12 * 12 * 13, 2 * 16 * 12 * 9, 2 * 16, 2 * 2 * 16 * 12 * 13, 2 * 2 * 16 * 12 * 13, 2 * 2 * 12 * 12 * 13,
        4 * 16 * 12 * 9,      4 * 16,          0};
    generator g = test_generator(1);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = test_plan(context, &p, NULL);
    assert_non_null(plan);
    guarded f = layer_workspace(&l, plan, CONV_FFT_FORWARD), b = layer_workspace(&l, plan, CONV_FFT_BACKWARD);
    void *x = l.x.tensor.memory.data, *w = l.w.tensor.memory.data, *bias = l.bias.tensor.memory.data,
         *y = l.y.tensor.memory.data, *gy = l.gy.tensor.memory.data, *gx = l.gx.tensor.memory.data,
         *gw = l.gw.tensor.memory.data, *gbias = l.gbias.tensor.memory.data;
    void *const pointers[] = {x, w, bias, y, gy, gx, gw, gbias};
    for (int i = 0; i < 9; i++)
        for (int turn = 0; turn < 2; turn++) {
            const bool forward = turn == 0;
            const bool touched = i < 2 || i == 8 || (forward ? i < 4 : i >= 4);
            const size_t needed = i < 8 ? bytes[i] : forward ? f.bytes : b.bytes;
            const void *const bad = i < 8 ? pointers[i] : forward ? f.data : b.data;
            describe(bad, CF_CU_MEMORY_OF_DEVICE, 0, bad);
            set(CF_CU_POINTER_IS_LEGACY_IPC_CAPABLE, 1);
            set(CF_CU_POINTER_RANGE_START, (uintptr_t)bad);
            for (int missing = 0; missing < 2; missing++) {
                set(CF_CU_POINTER_RANGE_SIZE, needed - (size_t)missing);
                const int launched = fake_launches();
                const conv_fft_status status =
                    forward ? conv_fft_forward(plan, x, w, bias, y, f.data, f.bytes, NULL)
                            : conv_fft_backward(plan, x, w, gy, gx, gw, gbias, 0, b.data, b.bytes, NULL);
                const bool refused = touched && missing;
                assert_int_equal(status, refused ? CONV_FFT_INVALID_ARGUMENT : CONV_FFT_SUCCESS);
                if (!refused)
                    continue;
                assert_int_equal(fake_launches(), launched);
                assert_memory_equal(conv_fft_last_error(), names[i], strlen(names[i]));
            }
        }
    describe(x, 0, 0, NULL);
    assert_int_equal(conv_fft_backward(plan, x, w, gy, gx, NULL, NULL, 0, b.data, b.bytes, NULL), CONV_FFT_SUCCESS);
    driver()->special = NULL;
    assert_true(release_workspace(&f, "forward") && release_workspace(&b, "backward"));
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    fake_context_destroy(context);
}

/* The calls of a layer refuse a stream of another context before they launch anything. */
static void streams_of_layer_calls(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_PLAIN, *state, false);
    const conv_fft_problem p = test_problem("in=2x8x12x13 out=16 kernel=3x3 pad=1");
    generator g = test_generator(1);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = test_plan(context, &p, NULL);
    assert_non_null(plan);
    guarded f = layer_workspace(&l, plan, CONV_FFT_FORWARD), b = layer_workspace(&l, plan, CONV_FFT_BACKWARD);
    const void *x = l.x.tensor.memory.data, *w = l.w.tensor.memory.data, *gy = l.gy.tensor.memory.data;
    void *y = l.y.tensor.memory.data, *gx = l.gx.tensor.memory.data, *gw = l.gw.tensor.memory.data;
    char foreign, own;
    driver()->foreign_stream = &foreign;
    for (int turn = 0; turn < 2; turn++) {
        const cf_cu_stream stream = (cf_cu_stream)(void *)(turn == 0 ? &foreign : &own);
        for (int call = 0; call < 4; call++) {
            const int launched = fake_launches();
            const conv_fft_status status =
                call == 0   ? conv_fft_forward(plan, x, w, NULL, y, f.data, f.bytes, stream)
                : call == 1 ? conv_fft_backward(plan, x, w, gy, gx, gw, NULL, 0, b.data, b.bytes, stream)
                : call == 2 ? conv_fft_backward_data(plan, w, gy, gx, 0, b.data, b.bytes, stream)
                            : conv_fft_backward_weights(plan, x, gy, gw, NULL, 0, b.data, b.bytes, stream);
            assert_int_equal(status, turn == 0 ? CONV_FFT_INVALID_ARGUMENT : CONV_FFT_SUCCESS);
            if (turn == 0) {
                assert_int_equal(fake_launches(), launched);
                assert_non_null(strstr(conv_fft_last_error(), "stream is 0x"));
                assert_non_null(strstr(conv_fft_last_error(), "of another CUDA context"));
            } else {
                assert_true(fake_launches() > launched);
            }
        }
    }
    driver()->foreign_stream = NULL;
    assert_true(release_workspace(&f, "forward") && release_workspace(&b, "backward"));
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    fake_context_destroy(context);
}

static void kept_spectra(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_PLAIN, *state, false);
    const conv_fft_problem p = test_problem("in=2x8x12x13 out=16 kernel=3x3 pad=1");
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.keep = CONV_FFT_OPERAND_W;
    conv_fft_plan *plan = test_plan(context, &p, &options);
    size_t bytes, workspace;
    assert_int_equal(conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_W, &bytes), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &workspace), CONV_FFT_SUCCESS);
    char *memory = test_alloc(bytes + workspace + 100000), *const spectrum = memory + 50048;
    describe(spectrum, CF_CU_MEMORY_OF_DEVICE, 0, spectrum);
    set(CF_CU_POINTER_IS_LEGACY_IPC_CAPABLE, 1);
    set(CF_CU_POINTER_RANGE_START, (uintptr_t)spectrum);
    set(CF_CU_POINTER_RANGE_SIZE, bytes - 1);
    EXPECT_INVALID(conv_fft_transform_weights(plan, memory, spectrum, spectrum + bytes, workspace, NULL),
                   "w_spectrum is 0x", "bytes are left");
    set(CF_CU_POINTER_RANGE_SIZE, bytes);
    assert_int_equal(conv_fft_transform_weights(plan, memory, spectrum, spectrum + bytes, workspace, NULL),
                     CONV_FFT_SUCCESS);
    driver()->special = NULL;
    free(memory);
    conv_fft_plan_destroy(plan);
    fake_context_destroy(context);
}

static void transforms(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_PLAIN, *state, false);
    fbfft_desc desc;
    fbfft_plan *plan = NULL;
    float in[64], out[128];
    assert_int_equal(fbfft_desc_init(&desc, 1, FBFFT_R2C), CONV_FFT_SUCCESS);
    desc.basis[0] = desc.extent[0] = 16;
    assert_int_equal(fbfft_plan_create(context, &desc, &plan), CONV_FFT_SUCCESS);
    describe(out, 0, 0, NULL);
    EXPECT_INVALID(fbfft_execute(plan, in, out, 2, NULL, 0, NULL), "out is 0x", "CUDA does not know");
    driver()->special = NULL;
    assert_int_equal(fbfft_execute(plan, in, out, 2, NULL, 0, NULL), CONV_FFT_SUCCESS);
    fbfft_plan_destroy(plan);
    fake_context_destroy(context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(addresses),
        IN_SCRATCH(bounds),
        IN_SCRATCH(streams),
        IN_SCRATCH(pointers_of_layer_calls),
        IN_SCRATCH(streams_of_layer_calls),
        IN_SCRATCH(kept_spectra),
        IN_SCRATCH(transforms),
    };
    return cmocka_run_group_tests_name("pointers", tests, NULL, NULL);
}
