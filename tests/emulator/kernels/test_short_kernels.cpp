// SPDX-License-Identifier: Apache-2.0
// Families `toeplitz`, `dft`, `implicit_gemm` and `spatial`: their plans and their own calls, with launches in the
// emulator.
#include "check.h"
#include "kernels/emitted.h"
#include "kernels/short_kernel_both_notes.h"
#include "kernels/short_kernel_family_notes.h"

#include "conv/gpu/padding_fold.cuh"

extern "C" {
#include "cuda/driver/pointer_check.h"
#include "cuda/jit/launch.h"
#include "kernels/short_kernel_cases.h"
#include "reference/dtype.h"
}

#include <cstring>
#include <deque>
#include <functional>
#include <map>

namespace {

typedef std::function<void(const void *)> Body; // of the arguments of a call

std::map<std::string, Body> &bodies() { // by their texts
    static std::map<std::string, Body> all;
    return all;
}

// The kernels that the library has built for a case, and the first error of a launch.
struct Built {
    cf_kernel kernel;
    Body body;
};
struct Run {
    int number;
    std::deque<Built> built;
    std::string fault;
    bool conflict_free; // matrix instructions have no bank conflicts
} run;

void note_fault(const std::string &what) {
    if (run.fault.empty())
        run.fault = what;
}

// Operands of tensor cores and transposed units (mma.h) are an odd number of units apart, unless a stride is even.
void check_banks(const simt::result &r) {
    for (const simt::bank_row &row : r.bank_rows)
        if (row.after.file && std::strstr(row.after.file, "mma.h") && row.counts.ratio() != 1)
            note_fault("matrix instructions have bank conflicts: " + r.conflicts());
}

// ---- the tests

// What a case checks besides results, for layers of each kind.
void note_checks(const short_case &c, const conv_fft_problem &p) {
    const std::string kind = std::string(c.spatial ? "spatial"
                                         : c.igemm ? "implicit_gemm"
                                                   : "toeplitz") +
                             ", " + std::to_string(p.rank) + " axes" +
                             (p.tensor_layout == CONV_FFT_CHANNELS_LAST ? ", channels last" : "") +
                             (p.dtype == CONV_FFT_FP32 ? ", FP32" : "");
    const std::pair<const char *, bool> checks[] = {
        {"a NaN, ", c.spoiled}, {"any alignment, ", c.shifted}, {"bank conflicts, ", run.conflict_free}};
    for (const auto &[check, seen] : checks)
        if (seen)
            cover(check + kind, true);
}

void all_cases() {
    const short_case *cases;
    const int count = short_case_list(&cases);
    for (int i = 0; i < count; ++i) {
        if (short_case_part(i) == TEST_LEFT_OUT)
            continue;
        const std::string name = cases[i].problem;
        begin_case(name);
        run = Run{i, {}, {}, true};
        short_opened opened;
        if (!CHECK_TEXT(short_case_open(&cases[i], FACTS, &opened), name + ": " + conv_fft_last_error()))
            continue;
        for (const cf_pass_plan &pass : opened.plan->pass)
            if (pass.state && cases[i].spatial) {
                const auto *const state = static_cast<const cf_spatial_state *>(pass.state);
                note_spatial(state->config, pass.gx_store == CF_GX_FOLDED);
                if (state->both)
                    note_walk(*state->both, false);
                run.conflict_free = false;
            } else if (pass.state && cases[i].dft) {
                note_dft(static_cast<const cf_dft_state *>(pass.state)->config);
            } else if (pass.state && cases[i].igemm) {
                note_igemm(static_cast<const cf_igemm_state *>(pass.state)->config);
                run.conflict_free = false;
            } else if (pass.state) {
                const auto *const state = static_cast<const cf_toeplitz_state *>(pass.state);
                const cf_toeplitz_config &c = state->config;
                if (state->both)
                    note_both(*state->both);
                c.small && !c.in_place ? note_small(c) : note_config(c);
                run.conflict_free = run.conflict_free && !c.in_place && !c.folded && c.stride[0] % 2 &&
                                    !c.in_shared_memory && !c.small && !c.by_rows && c.depths < 8;
            }
        note_checks(cases[i], opened.problem);
        CHECK_TEXT(short_case_check(&cases[i], i, &opened), name);
        CHECK_TEXT(run.fault.empty(), name + ": " + run.fault);
        short_case_close(&opened);
    }
}

// The replay of one case cannot cover everything.
void cases_cover() {
    const bool demanded = !*emitted_selection[2][1];
    for (const auto &[what, seen] : covered)
        CHECK_TEXT(seen || !demanded, "no case has " + what);
}

} // namespace

Registration::Registration(const char *text, void (*kernel)(cf_toeplitz_call)) {
    bodies()[text] = [kernel](const void *call) { kernel(*static_cast<const cf_toeplitz_call *>(call)); };
}
Registration::Registration(const char *text, void (*kernel)(cf_toeplitz_both_call)) {
    bodies()[text] = [kernel](const void *call) { kernel(*static_cast<const cf_toeplitz_both_call *>(call)); };
}
Registration::Registration(const char *text, void (*kernel)(cf_toeplitz_volume_call)) {
    bodies()[text] = [kernel](const void *call) { kernel(*static_cast<const cf_toeplitz_volume_call *>(call)); };
}
Registration::Registration(const char *text, void (*kernel)(cf_dft_call)) {
    bodies()[text] = [kernel](const void *call) { kernel(*static_cast<const cf_dft_call *>(call)); };
}
Registration::Registration(const char *text, void (*kernel)(cf_igemm_call)) {
    bodies()[text] = [kernel](const void *call) { kernel(*static_cast<const cf_igemm_call *>(call)); };
}
Registration::Registration(const char *text, void (*kernel)(cf_spatial_call)) {
    bodies()[text] = [kernel](const void *call) { kernel(*static_cast<const cf_spatial_call *>(call)); };
}
Registration::Registration(const char *text, void (*kernel)(cf_spatial_both_call)) {
    bodies()[text] = [kernel](const void *call) { kernel(*static_cast<const cf_spatial_both_call *>(call)); };
}

// ---- in the place of the library's own

extern "C" conv_fft_status __wrap_cf_kernels_build(cf_gpu *gpu, const cf_source *sources, int count,
                                                   cf_kernel **built) {
    for (int i = 0; i < count; ++i) {
        const auto found = bodies().find(sources[i].text);
        run.built.push_back({});
        run.built.back().kernel.gpu = gpu;
        run.built.back().body = found == bodies().end() ? nullptr : found->second;
        if (std::strstr(sources[i].text, "CF_FOLD_KERNEL"))
            run.built.back().body = [](const void *call) { fold_padding(*static_cast<const cf_fold_call *>(call)); };
        built[i] = &run.built.back().kernel;
    }
    return CONV_FFT_SUCCESS;
}

extern "C" void __wrap_cf_kernel_destroy(cf_kernel *) {}

extern "C" conv_fft_status __wrap_cf_kernel_start(const cf_kernel *kernel, const cf_launch *shape, void **parameters,
                                                  cf_cu_stream) {
    for (const Built &b : run.built) {
        if (&b.kernel != kernel || !b.body)
            continue;
        simt::options options;
        options.order = simt::order::random;
        options.seed = unsigned(run.number);
        options.banks = run.conflict_free;
        options.shared_limit = std::size_t(kernel->gpu->properties.shared_per_block);
        const simt::result r = simt::launch(
            dim3(shape->grid[0], shape->grid[1], shape->grid[2]),
            dim3(shape->block[0], shape->block[1], shape->block[2]), shape->dynamic_shared,
            [&] { b.body(parameters[0]); }, options);
        if (!r.ok())
            note_fault(r.first());
        check_banks(r);
        return CONV_FFT_SUCCESS;
    }
    note_fault("a kernel is launched that is not expected");
    return CONV_FFT_SUCCESS;
}

// The weights of all cases are dense.
extern "C" conv_fft_status __wrap_cf_gpu_zero(cf_device *, const cf_tensor *gw, const std::int64_t extents[5],
                                              void *data, struct CUstream_st *) {
    if (cf_recording_refused())
        return CONV_FFT_SUCCESS;
    std::size_t bytes = ref_dtype_size(gw->dtype);
    for (int d = 0; d < 5; ++d)
        bytes *= std::size_t(extents[d]);
    std::memset(data, 0, bytes);
    return CONV_FFT_SUCCESS;
}

extern "C" conv_fft_status __wrap_cf_gpu_check_in_context(const cf_gpu *, const cf_gpu_argument *, int, cf_cu_stream) {
    return CONV_FFT_SUCCESS;
}

int main() {
    choose_as_emitted();
    return run_tests({{"short kernels", all_cases}, {"what the cases cover", cases_cover}});
}
