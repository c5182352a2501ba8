// SPDX-License-Identifier: Apache-2.0
// shared_memory/kernel.cuh, and plans that divide a transform into kernels: cf_gpu_transform_run() itself, with
// launches in the emulator.
#include "check.h"
#include "kernels/emitted.h"
#include "kernels/fft_operands.h"
#include "kernels/fft_run.h"
#include "kernels/fft_windows.h"

extern "C" {
#include "reference/dtype.h"
#include "support/fft_check.h"
}

#include <cstdlib>
#include <memory>

namespace {

// Visit (plane, output, its offset) of one group.
template <class F> void each_output(const fft_shape &s, int64_t batch, F f) {
    for (int64_t p = 0; p < batch * s.channels; ++p)
        for (int64_t i = 0; i < fft_out_count(&s); ++i)
            if (const int64_t offset = fft_out_at(&s, batch, p, i); offset >= 0)
                f(p, offset);
}

void check_results(const tile_case &c, const fft_shape &s, const Bytes &in, unsigned char *out, int64_t in_stride,
                   int64_t out_stride, const std::string &name) {
    fft_errors errors = {0, 0};
    for (int64_t g = 0; g < c.groups; ++g) {
        unsigned char *const own = out + g * out_stride;
        if (c.added)
            each_output(s, c.batch, [&](int64_t p, int64_t offset) {
                const double added = held(offset) + bias_of(g, p % s.channels);
                ref_store(fft_out_type(&s), own + offset, ref_load(fft_out_type(&s), own + offset) - added);
            });
        for (int64_t p = 0; p < c.batch * s.channels; ++p)
            fft_compare_plane(&s, c.batch, p, in.data() + g * in_stride, own, &errors);
    }
    const double error = fft_relative_error(&errors), most = (c.added ? 4 : 1) * fft_tolerance(&s);
    CHECK_TEXT(error <= most, name + ": error " + std::to_string(error * 1e9) + "e-9");
}

void check_case(const tile_case &c) {
    const fft_shape s = fft_shape_of(&c.desc);
    const int64_t group = run.transform.problem.transform.tensor.group_stride * int64_t(ref_dtype_size(s.signal_type));
    const int64_t spectrum = fft_spectrum_bytes(&s, c.batch);
    const int64_t in_stride = s.inverse ? spectrum : group, out_stride = s.inverse ? group : spectrum;
    const int64_t in_bytes = fft_in_bytes(&s, c.batch), out_bytes = fft_out_bytes(&s, c.batch);
    Bytes in(size_t(in_bytes + (c.groups - 1) * in_stride), FFT_POISON);
    for (int64_t g = 0; g < c.groups; ++g)
        fft_random_input(&s, uint64_t(run.number * 8 + g), c.batch, in.data() + g * in_stride);
    const size_t in_element = size_t(fft_in_numbers(&s)) * ref_dtype_size(fft_in_type(&s)),
                 out_element = size_t(fft_out_numbers(&s)) * ref_dtype_size(fft_out_type(&s));
    Memory source(in.size(), c.shifted ? in_element : 0, &in),
        target(size_t(out_bytes + (c.groups - 1) * out_stride), c.shifted ? out_element : 0, nullptr),
        scratch(cf_gpu_transform_scratch(&run.transform, c.batch), 0, nullptr);
    Bytes bias(size_t(c.groups * s.channels) * ref_dtype_size(s.signal_type));
    for (int64_t i = 0; i < c.groups * s.channels; ++i)
        ref_store(s.signal_type, bias.data() + size_t(i) * ref_dtype_size(s.signal_type),
                  bias_of(i / s.channels, i % s.channels));
    for (int64_t g = 0; g < c.groups && c.added; ++g)
        each_output(s, c.batch, [&](int64_t, int64_t offset) {
            ref_store(fft_out_type(&s), target.data() + g * out_stride + offset, held(offset));
        });

    cf_gpu_transform_call call = {};
    call.signal = s.inverse ? target.data() : source.data();
    call.spectrum = s.inverse ? source.data() : target.data();
    call.unit = c.batch * s.channels;
    call.groups = c.groups;
    call.group_stride = spectrum / int64_t(2 * ref_dtype_size(s.spectrum_type));
    call.bias = c.added ? bias.data() : nullptr;
    call.accumulate = c.added;
    call.scratch = scratch.data();
    const std::string name = name_of(c);
    CHECK_TEXT(execute(call, c.batch, 1) == CONV_FFT_SUCCESS, name + ": " + conv_fft_last_error());
    CHECK_TEXT(run.fault.empty(), name + ": " + run.fault);
    check_results(c, s, in, target.data(), in_stride, out_stride, name);
    bool finite = true;
    for (int64_t g = 0; g < c.groups; ++g)
        finite = fft_take_outputs(&s, c.batch, target.data() + g * out_stride) && finite;
    CHECK_TEXT(finite, name + ": not all outputs are numbers");
    CHECK_TEXT(target.all_poisoned(), name + ": more than the outputs has been written");
    CHECK_TEXT(std::memcmp(source.data(), in.data(), in.size()) == 0, name + ": the input has been written");
    CHECK_TEXT(source.guards_intact() && scratch.guards_intact(), name + ": guards have been written");
}

void check_layer(const tile_case &c) {
    const cf_fft_problem &p = run.transform.problem;
    const cf_transform_desc &t = p.transform;
    const int64_t rows = tile_case_rows(&c), channels = t.spectrum.channels;
    const std::string name = name_of(c);
    const Windows windows(p, rows);
    int64_t elements;
    CHECK_TEXT(cf_fft_signal_elements(&p, c.batch, &elements) == CONV_FFT_SUCCESS, name);
    Numbers signal(t.tensor.dtype, elements),
        spectrum(t.spectrum.dtype, 2 * t.spectrum.bins * rows * t.spectrum.columns);
    fft_errors errors = {0, 0};
    fill_layer(windows, t, rows, signal, spectrum, errors);

    Numbers &to = t.inverse ? signal : spectrum;
    Bytes in = (t.inverse ? spectrum : signal).stored();
    const int64_t groups = c.dense ? c.groups : 1;
    if (groups > 1)
        append_negated(signal, t.tensor.group_stride, in);
    Numbers before(to.type, int64_t(to.value.size()));
    const bool bias = c.added && !c.overlapping;
    Bytes biases(size_t(channels) * ref_dtype_size(t.tensor.dtype));
    for (int64_t i = 0; i < channels; ++i)
        ref_store(t.tensor.dtype, biases.data() + size_t(i) * ref_dtype_size(t.tensor.dtype), bias_of(0, i));
    for (int64_t row = 0; row < rows && t.inverse && c.added; ++row)
        for (int64_t column = 0; column < t.spectrum.columns; ++column)
            windows.each_point(row, column, [&](int64_t, int64_t at) {
                if (!before.count[size_t(at)])
                    before.add(at, held(at));
                to.value[size_t(at)] += bias ? bias_of(0, column % channels) : 0;
            });
    const Bytes old = before.stored();
    const size_t unit = ref_dtype_size(to.type), in_unit = ref_dtype_size(t.inverse ? spectrum.type : signal.type);
    Memory source(in.size(), c.shifted ? (t.inverse ? 2 : 1) * in_unit : 0, &in),
        target(size_t(groups) * old.size(), c.shifted ? (t.inverse ? 1 : 2) * unit : 0, groups > 1 ? nullptr : &old),
        scratch(cf_gpu_transform_scratch(&run.transform, rows), 0, nullptr);
    cf_gpu_transform_call call = {};
    call.signal = t.inverse ? target.data() : source.data();
    call.spectrum = t.inverse ? source.data() : target.data();
    call.unit = rows * t.spectrum.columns;
    call.groups = groups;
    call.group_stride = int64_t(spectrum.value.size()) / 2;
    call.bias = t.inverse && bias ? biases.data() : nullptr;
    call.accumulate = t.inverse && c.added;
    call.scratch = scratch.data();
    const bool scaled = cf_spectrum_is_scaled(t.spectrum.dtype);
    Scales scales(t, rows, windows, signal);
    if (scaled)
        call.scales = scales.of(t, groups);
    const int64_t ordered = c.overlapping ? t.spectrum.rows_per_sample : overlapping_rows(rows);
    CHECK_TEXT(execute(call, rows, ordered) == CONV_FFT_SUCCESS, name + ": " + conv_fft_last_error());
    CHECK_TEXT(run.fault.empty(), name + ": " + run.fault);

    CHECK_TEXT(groups == 1 || take_negated(spectrum, target.data()), name + ": the second group differs");
    CHECK_TEXT(!scaled || scales.alike(groups), name + ": scales of the second group differ");
    for (size_t i = 0; i < to.value.size(); ++i) {
        unsigned char *const at = target.data() + i * unit;
        if (!to.count[i])
            continue;
        const double exact = to.value[i] + before.value[i];
        const double factor =
            scaled && !t.inverse ? scales.of_bin(int64_t(i / 2) % (rows * t.spectrum.columns), t.spectrum.columns) : 1;
        CHECK_TEXT(!scaled || t.inverse || std::fabs(ref_load(to.type, at)) <= 32768, name + ": beyond the scale");
        double difference = std::fabs(factor * ref_load(to.type, at) - exact);
        if (unit == 2 && t.inverse)
            difference = std::max(
                difference - ref_dtype_roundoff(to.type) * std::fabs(exact) - ref_dtype_floor(to.type), 0 * difference);
        errors.error += difference * difference;
        std::memset(at, FFT_POISON, unit);
    }
    const double error = fft_relative_error(&errors),
                 computed = (c.added ? 4 : 1) * (t.spectrum.dtype == CONV_FFT_FP64 ? 8e-15 : 4e-7),
                 rounded = (c.matrix || (c.halves && !t.inverse)) + (c.halves && run.transform.passes.count > 1),
                 most =
                     rounded > 0 ? std::sqrt(rounded) * ref_dtype_roundoff(t.spectrum.dtype) * gathered(t) : computed;
    CHECK_TEXT(error <= most, name + ": error " + std::to_string(error * 1e9) + "e-9");
    CHECK_TEXT(target.all_poisoned(), name + ": more than the outputs has been written");
    CHECK_TEXT(std::memcmp(source.data(), in.data(), in.size()) == 0, name + ": the input has been written");
    CHECK_TEXT(source.guards_intact() && scratch.guards_intact(), name + ": guards have been written");
}

// One operand of a pair, and the result of its own kernel.
struct Side {
    Side(const tile_case &which, int number) : c(which), rows(tile_case_rows(&which)) {
        run = Run{&c, number, {}, {}, {}};
        CHECK_TEXT(tile_case_plan(&c, FACTS, &run.transform.problem, &run.transform.passes), conv_fft_last_error());
        for (int p = 0; p < CF_FFT_MAX_PASSES; ++p)
            for (int v = 0; v < 2; ++v)
                run.transform.kernel[p][v] = &run.kernel[p][v];
        const cf_transform_desc &t = run.transform.problem.transform;
        int64_t elements = 0;
        cf_fft_signal_elements(&run.transform.problem, c.batch, &elements);
        Numbers signal(t.tensor.dtype, elements),
            spectrum(t.spectrum.dtype, 2 * t.spectrum.bins * rows * t.spectrum.columns);
        fft_errors errors = {0, 0};
        fill_layer(Windows(run.transform.problem, rows), t, rows, signal, spectrum, errors);
        const Bytes in = signal.stored();
        const size_t unit = ref_dtype_size(spectrum.type), bytes = spectrum.value.size() * unit;
        source.reset(new Memory(in.size(), c.shifted ? ref_dtype_size(signal.type) : 0, &in));
        scratch.reset(new Memory(cf_gpu_transform_scratch(&run.transform, rows), 0, nullptr));
        for (auto &target : targets)
            target.reset(new Memory(bytes, c.shifted ? 2 * unit : 0, nullptr));
        for (auto &own : scales)
            own.assign(size_t(rows * ((t.spectrum.columns + 7) / 8)), NAN);
        size = bytes;
        CHECK_TEXT(execute(call(0), rows, 1) == CONV_FFT_SUCCESS && run.fault.empty(), name_of(c));
        transform = run.transform;
    }
    cf_gpu_transform_call call(int target) const {
        cf_gpu_transform_call own = {};
        own.signal = source->data();
        own.spectrum = targets[target]->data();
        own.rows = rows;
        own.unit = rows * run_columns();
        own.groups = 1;
        own.scratch = scratch->data();
        if (cf_spectrum_is_scaled(
                (transform.passes.count ? transform : run.transform).problem.transform.spectrum.dtype))
            own.scales = {const_cast<float *>(scales[target].data()), nullptr, 1, 0, 0, 0};
        return own;
    }
    int64_t run_columns() const {
        return (transform.passes.count ? transform : run.transform).problem.transform.spectrum.columns;
    }
    const tile_case &c;
    int64_t rows;
    cf_gpu_transform transform = {};
    std::unique_ptr<Memory> source, scratch, targets[2];
    std::vector<float> scales[2];
    size_t size = 0;
};

// A NaN or an infinity does not change the spectra of other planes. Only the scale that it shares with seven other
// planes may change.
void check_spoiled(const tile_case &c, int number) {
    const Side side(c, number);
    const cf_fft_problem &p = side.transform.problem;
    const cf_transform_desc &t = p.transform;
    const Windows windows(p, side.rows);
    const int64_t columns = t.spectrum.columns, planes = side.rows * columns, eights = (columns + 7) / 8;
    const std::string name = name_of(c) + ", spoiled";
    int64_t spoiled = -1, plane = planes / 2 + columns / 2; // one that has data
    for (; plane < 2 * planes; ++plane) {
        windows.each_point(plane % planes / columns, plane % columns, [&](int64_t, int64_t at) { spoiled = at; });
        if (spoiled >= 0)
            break;
    }
    if (!CHECK_TEXT(spoiled >= 0, name + ": no plane has data"))
        return;
    ref_store(t.tensor.dtype, side.source->data() + size_t(spoiled) * ref_dtype_size(t.tensor.dtype),
              number % 2 ? NAN : INFINITY);
    CHECK_TEXT(execute(side.call(1), side.rows, 1) == CONV_FFT_SUCCESS && run.fault.empty(), name);
    const size_t unit = ref_dtype_size(t.spectrum.dtype);
    const bool scaled = cf_spectrum_is_scaled(t.spectrum.dtype);
    bool apart = true, all = true;
    for (int64_t r = 0; r < side.rows; ++r)
        for (int64_t k = 0; k < columns; ++k) {
            const bool own = r * columns + k == plane % planes;
            float factor[2] = {1, 1};
            for (int i = 0; i < 2 && scaled; ++i)
                factor[i] = power_of_scale(side.scales[i][size_t(r * eights + k / 8)]);
            windows.each_bin(r, k, [&](int64_t at, int64_t, int64_t) {
                bool finite = true; // of a real bin, the imaginary part may still be zero
                for (size_t i = size_t(2 * at); i < size_t(2 * at + 2); ++i) {
                    const double before = factor[0] * ref_load(t.spectrum.dtype, side.targets[0]->data() + i * unit),
                                 after = factor[1] * ref_load(t.spectrum.dtype, side.targets[1]->data() + i * unit);
                    apart = apart && (own || std::fabs(before - after) <= 0x1p-9 * std::fabs(before));
                    finite = finite && std::isfinite(after);
                }
                all = all && !(own && finite);
            });
        }
    CHECK_TEXT(apart, name + ": other planes have changed");
    CHECK_TEXT(all, name + ": its own bins are numbers");
}

const tile_case *cases;
int case_count, pairs[TILE_PAIRS][2], pair_count;

// This test is first, because it selects the cases. Pairs are in FP32.
void lists() {
    case_count = tile_case_list(&cases);
    CHECK_TEXT(sizeof(real) == 8 || tile_pair_list(FACTS, pairs, &pair_count), conv_fft_last_error());
}

// One launch writes the same bits as two, and nothing else.
void all_pairs() {
    CHECK(pair_count > 0);
    for (int i = 0; i < pair_count; ++i) {
        if (tile_pair_part(i) == TEST_LEFT_OUT)
            continue;
        const Side first(cases[pairs[i][0]], pairs[i][0]), second(cases[pairs[i][1]], pairs[i][1]);
        char text[2][TILE_NAME_BYTES];
        for (int side = 0; side < 2; ++side)
            tile_case_name(&cases[pairs[i][side]], text[side], sizeof text[side]);
        const std::string both = std::string(text[0]) + " | " + text[1], name = "pair " + both;
        begin_case(both);
        const int64_t rows[2] = {first.rows, second.rows};
        cf_gpu gpu = {};
        cf_gpu_pair *pair = nullptr;
        CHECK_TEXT(cf_gpu_properties_load(FACTS, &gpu.properties) == CONV_FFT_SUCCESS, conv_fft_last_error());
        CHECK_TEXT(cf_gpu_pair_create(&gpu, &first.transform, &second.transform, rows, 1, &pair) == CONV_FFT_SUCCESS,
                   name);
        if (!CHECK_TEXT(pair != nullptr, name + ": so few blocks make a pair"))
            continue;
        pair->kernel[0] = &pair_kernel[0];
        pair->kernel[1] = &pair_kernel[1];
        run.number = TILE_PAIR_NUMBER + i;
        const cf_gpu_transform_call calls[2] = {first.call(1), second.call(1)};
        CHECK_TEXT(cf_gpu_pair_run(pair, calls, nullptr) == CONV_FFT_SUCCESS, name);
        CHECK_TEXT(run.fault.empty(), name + ": " + run.fault);
        for (const Side *side : {&first, &second}) {
            CHECK_TEXT(std::memcmp(side->targets[0]->data(), side->targets[1]->data(), side->size) == 0, name);
            CHECK_TEXT(!side->targets[0]->all_poisoned(), name + ": nothing has been written");
            CHECK_TEXT(!cf_spectrum_is_scaled(side->transform.problem.transform.spectrum.dtype) ||
                           side->scales[0] == side->scales[1],
                       name + ": other scales");
            CHECK_TEXT(side->targets[1]->guards_intact() && side->source->guards_intact(), name);
        }
        pair->kernel[0] = pair->kernel[1] = nullptr;
        cf_gpu_pair_destroy(pair);
    }
}

void all_cases() {
    for (int i = 0; i < case_count; ++i) {
        const tile_case &c = cases[i];
        if (tile_case_is_double(&c) != (sizeof(real) == 8) || tile_case_part(i) == TEST_LEFT_OUT)
            continue;
        begin_case(name_of(c));
        run = Run{&c, i, {}, {}, {}};
        if (!CHECK_TEXT(tile_case_plan(&c, FACTS, &run.transform.problem, &run.transform.passes),
                        conv_fft_last_error()))
            continue;
        CHECK_TEXT(c.passes == 0 || c.passes == run.transform.passes.count, name_of(c));
        CHECK_TEXT(!c.matrix || run.transform.passes.pass[0].tensor_core, name_of(c) + ": not by matrix products");
        CHECK_TEXT(!c.dense || run.transform.passes.pass[0].tile[0].bin_tiles > 0, name_of(c) + ": not by one product");
        CHECK_TEXT(!c.one_multiprocessor || c.desc.channels % 2 || run.transform.passes.pass[0].tile[0].prefetched > 0,
                   name_of(c) + ": copies no bins ahead");
        for (int p = 0; p < CF_FFT_MAX_PASSES; ++p)
            for (int v = 0; v < 2; ++v)
                run.transform.kernel[p][v] = &run.kernel[p][v];
        if (c.window)
            check_layer(c);
        if (c.window && !run.transform.problem.transform.inverse && cf_window_tiles(c.window) == 1 &&
            run.transform.passes.pass[0].tile[0].finds_scales ==
                cf_spectrum_is_scaled(run.transform.problem.transform.spectrum.dtype))
            check_spoiled(c, i);
        if (!c.window)
            check_case(c);
    }
}

} // namespace

Registration::Registration(int number, int pass, int variant, tile_body body) {
    kernels().push_back({number, pass, variant, body});
}

extern "C" conv_fft_status __wrap_cf_kernel_launch(const cf_kernel *kernel, const cf_launch *shape, void **parameters,
                                                   cf_cu_stream) {
    const bool paired = kernel == &pair_kernel[0] || kernel == &pair_kernel[1];
    const int index = int(kernel - (paired ? pair_kernel : &run.kernel[0][0]));
    for (const Kernel &k : kernels()) {
        if (k.number != run.number || k.pass != index / 2 || k.variant != index % 2)
            continue;
        simt::options options;
        options.order = simt::order::random;
        options.seed = unsigned(run.number);
        const simt::result r = simt::launch(
            dim3(shape->grid[0], shape->grid[1], shape->grid[2]),
            dim3(shape->block[0], shape->block[1], shape->block[2]), shape->dynamic_shared, [&] { k.body(parameters); },
            options);
        if (!r.ok() && run.fault.empty())
            run.fault = "pass " + std::to_string(k.pass) + ": " + r.first();
        return CONV_FFT_SUCCESS;
    }
    run.fault = "variant " + std::to_string(index % 2) + " of pass " + std::to_string(index / 2) + " is not expected";
    return CONV_FFT_SUCCESS;
}

int main() {
    choose_as_emitted();
    if (sizeof(real) == 8)
        return run_tests({{"lists", lists}, {"tiles", all_cases}});
    return run_tests({{"lists", lists}, {"tiles", all_cases}, {"pairs", all_pairs}});
}
