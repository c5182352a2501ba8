// SPDX-License-Identifier: Apache-2.0
// shared_memory/kernel.cuh, and the plans that cut a transform into passes: cf_gpu_transform_run() itself, whose launches go to the emulator.
#include "check.h"
#include "kernels/emitted.h"
#include "kernels/fft_registration.h"
#include "kernels/fft_windows.h"

extern "C" {
#include "fbfft/plan/gpu_transform.h"
#include "kernels/fft_cases.h"
#include "reference/dtype.h"
#include "support/fft_check.h"
#include "support/random_problems.h"
}

#include <cstdlib>
#include <memory>

namespace {

struct Kernel {
    int number, pass, variant;
    tile_body body;
};
std::vector<Kernel> &kernels() {
    static std::vector<Kernel> all;
    return all;
}

typedef std::vector<unsigned char> Bytes;

double rounded(double x, conv_fft_dtype type) {
    unsigned char memory[8];
    ref_store(type, memory, x);
    return ref_load(type, memory);
}
double random_rounded(generator &g, conv_fft_dtype type) { return rounded(random_value(&g), type); }

// What a launch needs to be found again, and what went wrong in it.
struct Run {
    const tile_case *c;
    int number;
    cf_gpu_transform transform;
    cf_kernel kernel[CF_FFT_MAX_PASSES][2];
    std::string fault;
} run;
cf_kernel pair_kernel[2];

constexpr double BIAS = 0.625;
double held(int64_t at) { return double(at % 61) / 32 - 1; } // what an accumulating transform adds to
double bias_of(int64_t group, int64_t channel) { return BIAS - double(group) - 0.25 * double(channel); }

// Memory between guards, off by some bytes. With sanitizers there is none behind it: they see more.
class Memory {
  public:
    Memory(size_t bytes, size_t shift, const Bytes *content)
        : size(bytes), before(GUARD + shift), after(AFTER), base(new unsigned char[before + bytes + after]) {
        std::memset(base, FFT_POISON, before + bytes + after);
        if (content)
            std::memcpy(data(), content->data(), bytes);
    }
    ~Memory() { delete[] base; }
    Memory(const Memory &) = delete;
    unsigned char *data() { return base + before; }
    bool guards_intact() const { return poisoned(base, before) && poisoned(base + before + size, after); }
    bool all_poisoned() const { return poisoned(base, before + size + after); }

  private:
    static bool poisoned(const unsigned char *p, size_t count) {
        for (size_t i = 0; i < count; ++i)
            if (p[i] != FFT_POISON)
                return false;
        return true;
    }
    static constexpr size_t GUARD = 64;
#ifdef __SANITIZE_ADDRESS__
    static constexpr size_t AFTER = 0;
#else
    static constexpr size_t AFTER = 64;
#endif
    size_t size, before, after;
    unsigned char *base;
};

// All rows, in one go or in the order of rows of which so many overlap.
conv_fft_status execute(cf_gpu_transform_call call, int64_t rows, int64_t ordered) {
    run.transform.problem.transform.ordered = ordered;
    call.first = 0;
    call.rows = rows;
    return cf_gpu_transform_run(&run.transform, &call, nullptr);
}

// Sometimes the even rows go before the odd ones; planes one after the other have no rows.
int64_t overlapping_rows(int64_t rows) {
    return run.number % 3 == 0 && rows % 2 == 0 && run.transform.problem.transform.inverse &&
                   !run.transform.passes.pass[0].plain
               ? 2
               : 1;
}

std::string name_of(const tile_case &c) {
    char text[TILE_NAME_BYTES];
    tile_case_name(&c, text, sizeof text);
    return text;
}

// Visits (plane, output, offset of it) of one group.
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

// Numbers of one type, of which some have a value.
struct Numbers {
    conv_fft_dtype type;
    std::vector<double> value;
    std::vector<int> count; // how many values have been added; 0: none
    Numbers(conv_fft_dtype type_, int64_t size) : type(type_), value(size_t(size)), count(size_t(size)) {}
    size_t bytes() const { return value.size() * ref_dtype_size(type); }
    void add(int64_t at, double x) {
        value[size_t(at)] += x;
        count[size_t(at)]++;
    }
    Bytes stored() const {
        Bytes b(bytes(), FFT_POISON);
        for (size_t i = 0; i < value.size(); ++i)
            if (count[i])
                ref_store(type, b.data() + i * ref_dtype_size(type), value[i]);
        return b;
    }
};

// What eight columns of a row of an FP16 spectrum are to be multiplied by, where they are read.
double scale_of(const cf_transform_desc &t, int64_t row, int64_t eight) {
    return t.inverse && cf_spectrum_is_scaled(t.spectrum.dtype) ? std::ldexp(1.0, int((row + 3 * eight) % 5) - 2) : 1;
}

// Inputs by chance, and what becomes of them. Norms are as in fft_compare_plane().
void fill_layer(const Windows &w, const cf_transform_desc &t, int64_t rows, Numbers &signal, Numbers &spectrum,
                fft_errors &errors) {
    const bool scaled = cf_spectrum_is_scaled(t.spectrum.dtype);
    generator g = generator_create(uint64_t(run.number));
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < t.spectrum.columns; ++column) {
            const double scale = t.scale * scale_of(t, row, column / 8);
            std::vector<double> x = w.zeros();
            double square = 0, outputs = 0;
            w.each_point(row, column, [&](int64_t point, int64_t at) {
                if (!t.inverse && !signal.count[size_t(at)]) {
                    const double outlier = scaled && random_once_in(&g, 40) ? 64 : 1; // parts of planes differ
                    signal.add(at, outlier * random_rounded(g, signal.type));
                }
                x[size_t(2 * point)] = t.inverse ? random_value(&g) : signal.value[size_t(at)];
            });
            if (t.inverse) { // a spectrum is that of numbers
                w.transform(x);
                w.each_bin(row, column, [&](int64_t at, int64_t point, int64_t mirror) {
                    const bool own = point == mirror;
                    for (int64_t part = 0; part < 2; ++part) {
                        double &v = x[size_t(2 * point + part)], &image = x[size_t(2 * mirror + part)];
                        v = part && own ? 0 : rounded(v, spectrum.type);
                        spectrum.add(2 * at + part, part && own ? 7 : v);
                        image = part ? -v : v;
                    }
                });
            }
            for (double v : x)
                square += v * v;
            w.transform(x);
            if (t.inverse)
                w.each_point(row, column, [&](int64_t point, int64_t at) {
                    signal.add(at, scale * x[size_t(2 * point)]);
                    ++outputs;
                });
            else
                w.each_bin(row, column, [&](int64_t at, int64_t point, int64_t) {
                    for (int64_t part = 0; part < 2; ++part)
                        spectrum.add(2 * at + part, t.scale * x[size_t(2 * point + part)]);
                    ++outputs;
                });
            errors.norm += scale * scale * square * outputs;
        }
}

// Scales of the rows, and the largest magnitude of each sample, in two parts.
struct Scales {
    int64_t eights;
    std::vector<float> scales, largest;
    Scales(const cf_transform_desc &t, int64_t rows, const Windows &w, const Numbers &signal)
        : eights((t.spectrum.columns + 7) / 8), scales(size_t(rows * eights)),
          largest(size_t(2 * (rows / t.spectrum.rows_per_sample))) {
        for (int64_t row = 0; row < rows; ++row) {
            float &most = largest[size_t(row / t.spectrum.rows_per_sample * 2 + row % 2)];
            for (int64_t eight = 0; eight < eights; ++eight)
                scales[size_t(row * eights + eight)] = t.inverse ? float(scale_of(t, row, eight)) : NAN;
            for (int64_t column = 0; column < t.spectrum.columns && !t.inverse; ++column)
                w.each_point(row, column, [&](int64_t, int64_t at) {
                    most = std::max(most, float(std::fabs(signal.value[size_t(at)])));
                });
        }
    }
    double of_bin(int64_t plane, int64_t columns) const {
        return power_of_scale(scales[size_t(plane / columns * eights + plane % columns / 8)]);
    }
    // Groups are alike.
    cf_row_scales of(const cf_transform_desc &t, int64_t groups) {
        const int64_t apart = int64_t(scales.size());
        for (int64_t group = 1; group < groups; ++group)
            scales.insert(scales.end(), size_t(apart), NAN);
        if (cf_gpu_transform_finds_scales(&run.transform)) // from what it loads
            return {scales.data(), nullptr, t.spectrum.scale_rows, apart, 0, 0};
        return {scales.data(), largest.data(), t.spectrum.scale_rows, apart, 0, 2};
    }
    bool alike(int64_t groups) const {
        return groups == 1 || std::equal(scales.begin(), scales.begin() + long(scales.size() / 2),
                                         scales.begin() + long(scales.size() / 2));
    }
};

// What is rounded on the way back from a spectrum is as large as the results, in whose few points the spectrum's energy comes together.
double gathered(const cf_transform_desc &t) {
    double ratio = 1;
    for (int a = 0; a < 3 && t.inverse; ++a)
        ratio *= double(t.spectrum.basis[a]) / double(t.window.axis[a].count);
    return std::sqrt(ratio);
}

// A second group of the signal, with the other sign.
void append_negated(const Numbers &signal, int64_t apart, Bytes &in) {
    Numbers other = signal;
    for (double &v : other.value)
        v = -v;
    const Bytes bytes = other.stored();
    in.resize(size_t(apart) * ref_dtype_size(signal.type), FFT_POISON);
    in.insert(in.end(), bytes.begin(), bytes.end());
}

// Whether the second group of spectra is the first one with the other sign; then it is poisoned.
bool take_negated(const Numbers &spectrum, unsigned char *first) {
    const size_t unit = ref_dtype_size(spectrum.type), count = spectrum.value.size();
    bool good = true;
    for (size_t i = 0; i < count; ++i)
        if (spectrum.count[i]) {
            unsigned char *const at = first + (count + i) * unit;
            good = good && ref_load(spectrum.type, at) == -ref_load(spectrum.type, first + i * unit);
            std::memset(at, FFT_POISON, unit);
        }
    return good;
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

// One operand of a pair, and what its own kernel makes of it.
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

// A NaN or an infinity leaves the spectra of all other planes as they are, but that the scale of its eight may be another one.
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

// Before all else, since it chooses the cases; pairs are in float.
void lists() {
    case_count = tile_case_list(&cases);
    CHECK_TEXT(sizeof(real) == 8 || tile_pair_list(FACTS, pairs, &pair_count), conv_fft_last_error());
}

// One launch leaves the same bits as two, and nothing else.
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
        CHECK_TEXT(cf_gpu_facts_load(FACTS, &gpu.facts) == CONV_FFT_SUCCESS, conv_fft_last_error());
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
        CHECK_TEXT(!c.matrix || run.transform.passes.pass[0].matrix, name_of(c) + ": not by matrix products");
        CHECK_TEXT(!c.dense || run.transform.passes.pass[0].tile[0].slabs > 0, name_of(c) + ": not by one product");
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

static_assert(sizeof(TileCall) == sizeof(cf_tile_call), "what is launched is what the kernels take");

int main() {
    choose_as_emitted();
    if (sizeof(real) == 8)
        return run_tests({{"lists", lists}, {"tiles", all_cases}});
    return run_tests({{"lists", lists}, {"tiles", all_cases}, {"pairs", all_pairs}});
}
