// SPDX-License-Identifier: Apache-2.0
// The operands of layers' transforms by the definition: random inputs, exact results, and scales of 16-bit spectra.
#ifndef SIMT_TILE_OPERANDS_H
#define SIMT_TILE_OPERANDS_H

#include "kernels/fft_run.h"
#include "kernels/fft_windows.h"

#include <algorithm>
#include <cmath>

namespace {

// Numbers of one type. Some have a value.
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

// The factor of eight columns of a row of an FP16 spectrum when they are read.
double scale_of(const cf_transform_desc &t, int64_t row, int64_t eight) {
    return t.inverse && cf_spectrum_is_scaled(t.spectrum.dtype) ? std::ldexp(1.0, int((row + 3 * eight) % 5) - 2) : 1;
}

// Random inputs and their exact results. Norms are as in fft_compare_plane().
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
    std::vector<float> scales, absmax;
    Scales(const cf_transform_desc &t, int64_t rows, const Windows &w, const Numbers &signal)
        : eights((t.spectrum.columns + 7) / 8), scales(size_t(rows * eights)),
          absmax(size_t(2 * (rows / t.spectrum.rows_per_sample))) {
        for (int64_t row = 0; row < rows; ++row) {
            float &most = absmax[size_t(row / t.spectrum.rows_per_sample * 2 + row % 2)];
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
    // All groups are equal.
    cf_row_scales of(const cf_transform_desc &t, int64_t groups) {
        const int64_t apart = int64_t(scales.size());
        for (int64_t group = 1; group < groups; ++group)
            scales.insert(scales.end(), size_t(apart), NAN);
        if (cf_gpu_transform_finds_scales(&run.transform)) // from what it loads
            return {scales.data(), nullptr, t.spectrum.scale_rows, apart, 0, 0};
        return {scales.data(), absmax.data(), t.spectrum.scale_rows, apart, 0, 2};
    }
    bool alike(int64_t groups) const {
        return groups == 1 || std::equal(scales.begin(), scales.begin() + long(scales.size() / 2),
                                         scales.begin() + long(scales.size() / 2));
    }
};

// The rounding error of an inverse is relative to the results: the energy of the spectrum is concentrated in their few
// points.
double gathered(const cf_transform_desc &t) {
    double ratio = 1;
    for (int a = 0; a < 3 && t.inverse; ++a)
        ratio *= double(t.spectrum.basis[a]) / double(t.window.axis[a].count);
    return std::sqrt(ratio);
}

// Append a second group with the opposite sign.
void append_negated(const Numbers &signal, int64_t apart, Bytes &in) {
    Numbers other = signal;
    for (double &v : other.value)
        v = -v;
    const Bytes bytes = other.stored();
    in.resize(size_t(apart) * ref_dtype_size(signal.type), FFT_POISON);
    in.insert(in.end(), bytes.begin(), bytes.end());
}

// Whether the second group of spectra is the first one with the opposite sign. The second group is then poisoned.
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

} // namespace

#endif
