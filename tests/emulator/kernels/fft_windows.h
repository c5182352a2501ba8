// SPDX-License-Identifier: Apache-2.0
// Layers' transforms by the definition: for every row and column the points of its window (core/window.h), on the whole
// basis.
#ifndef SIMT_TILE_WINDOWS_H
#define SIMT_TILE_WINDOWS_H

#include <cstdint>
#include <vector>

extern "C" {
#include "fbfft/common/desc.h"
#include "reference/dft.h"
}

class Windows {
  public:
    Windows(const cf_fft_problem &problem, int64_t rows_) : t(problem.transform), rows(rows_) {
        for (int a = 0; a < 3; ++a)
            points *= t.spectrum.basis[a];
    }

    // Visit (basis point, element of the signal) of a row and a column.
    template <class F> void each_point(int64_t row, int64_t column, F f) const {
        int64_t start[3], rest = row, phase = column / t.spectrum.channels;
        for (int a = 2; a >= 0; --a)
            start[a] = axis(a).origin + take(rest, axis(a).tiles) * axis(a).tile_step;
        for (int a = 2; a >= 0; --a)
            start[a] += take(rest, axis(a).shifts) * axis(a).shift_step;
        for (int a = 2; a >= 0; --a)
            start[a] += take(phase, axis(a).phases) * axis(a).phase_step;
        const int64_t first = rest * t.tensor.sample_stride + column % t.spectrum.channels * t.tensor.channel_stride;
        for (int64_t i = 0; i < axis(0).count * axis(1).count * axis(2).count; ++i) {
            int64_t n = i, point = 0, step = 1, at = first;
            bool inside = true;
            for (int a = 2; a >= 0; --a) {
                const int64_t e = take(n, axis(a).count);
                const int64_t index = cf_window_index(&axis(a), start[a] + e * axis(a).step);
                inside = inside && index >= 0;
                at += index * t.tensor.axis_stride[a];
                point += (axis(a).first + e * axis(a).spread) * step;
                step *= t.spectrum.basis[a];
            }
            if (inside)
                f(point, at);
        }
    }

    // Visit (place in the spectrum, basis point, the point of its mirror image).
    template <class F> void each_bin(int64_t row, int64_t column, F f) const {
        const int64_t *const n = t.spectrum.basis, last = n[2] / 2 + 1;
        for (int64_t k0 = 0; k0 < n[0]; ++k0)
            for (int64_t k1 = 0; k1 < n[1]; ++k1)
                for (int64_t k2 = 0; k2 < last; ++k2) {
                    const int64_t bin = (k0 * n[1] + k1) * last + k2;
                    const int64_t mirror = ((n[0] - k0) % n[0] * n[1] + (n[1] - k1) % n[1]) * n[2] + (n[2] - k2) % n[2];
                    f((bin * rows + row) * t.spectrum.columns + column, (k0 * n[1] + k1) * n[2] + k2, mirror);
                }
    }

    // Complex zeros for the whole basis.
    std::vector<double> zeros() const { return std::vector<double>(size_t(2 * points)); }
    void transform(std::vector<double> &x) const {
        for (int a = 0, inner = int(points); a < 3; ++a) {
            const int64_t n = t.spectrum.basis[a];
            inner /= int(n);
            std::vector<double> in(size_t(2 * n)), out(size_t(2 * n));
            for (int64_t line = 0; line < points / n && n > 1; ++line) {
                double *const first = x.data() + 2 * (line / inner * inner * n + line % inner);
                for (int64_t i = 0; i < 2 * n; ++i)
                    in[size_t(i)] = first[i / 2 * 2 * inner + i % 2];
                ref_dft(n, t.inverse ? 1 : -1, in.data(), out.data());
                for (int64_t i = 0; i < 2 * n; ++i)
                    first[i / 2 * 2 * inner + i % 2] = out[size_t(i)];
            }
        }
    }

  private:
    const cf_axis_window &axis(int a) const { return t.window.axis[a]; }
    static int64_t take(int64_t &n, int64_t extent) {
        const int64_t digit = n % extent;
        n /= extent;
        return digit;
    }
    const cf_transform_desc t;
    const int64_t rows;
    int64_t points = 1;
};

#endif
