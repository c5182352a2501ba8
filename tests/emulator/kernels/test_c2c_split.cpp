/* SPDX-License-Identifier: Apache-2.0 */
/* FP32 transforms on tensor cores by splitting, run by the emulator and compared with a transform in double. */
#include "check.h"
#include "fbfft/c2c_split/kernel.cuh"
#include "kernels/recursive_fft.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

typedef std::vector<float4> numbers; /* two complex numbers each */

float &part(numbers &v, size_t i) { return (&v[i / 4].x)[i % 4]; }
complex value(const numbers &v, size_t i) {
    const float *const p = &v[i / 2].x + i % 2 * 2;
    return {double(p[0]), double(p[1])};
}

numbers random_numbers(size_t points, float magnitude) {
    numbers v(points / 2);
    unsigned state = 7;
    for (size_t i = 0; i < 2 * points; ++i) {
        state = state * 1664525u + 1013904223u;
        part(v, i) = magnitude * float(int(state >> 8) - (1 << 23)) / float(1 << 23);
    }
    return v;
}

template <int LOG, bool INV, int LINES_> struct Config {
    static constexpr int LOG_N = LOG, THREADS = LOG == 8 ? 64 : 128, LINES = LOG == 8 ? THREADS / 32 : LINES_,
                         FORM = CF_C2C_SPLIT_ROWS, LOG_INNER = 0;
    static constexpr bool INVERSE = INV;
    typedef SplitLine<Config> L;
    static constexpr size_t shared = LOG > 8 ? size_t(LINES *L::LINE) * 16 : 0;
};

/* An axis with 2^INNER neighbouring lines. */
template <int LOG, bool INV, int FORM_, int INNER, int LINES_> struct Strided {
    static constexpr int LOG_N = LOG, THREADS = LOG < 8 ? LINES_ / 2 : 128, LINES = LINES_, FORM = FORM_,
                         LOG_INNER = INNER;
    static constexpr bool INVERSE = INV;
    static constexpr size_t shared = LOG < 8 ? 0 : size_t(LINES * cf_c2c_split_line(LOG < 8 ? 8 : LOG, LINES)) * 16;
};

/* Columns are transformed in place, as plans do. Other outputs are poisoned before. */
template <class C> numbers run(const numbers &in, size_t lines, float scale, const std::string &what) {
    const bool in_place = C::FORM == CF_C2C_SPLIT_COLUMNS;
    numbers out = in;
    const numbers &from = in_place ? out : in;
    for (size_t i = 0; i < 4 * out.size() && !in_place; ++i)
        part(out, i) = std::numeric_limits<float>::quiet_NaN();
    simt::options o;
    o.order = simt::order::random;
    o.banks = true;
    const unsigned blocks = unsigned((lines + C::LINES - 1) / C::LINES);
    const simt::result r = simt::launch(
        blocks, C::THREADS, C::shared, [&] { split_lines<C>(from.data(), out.data(), (long long)lines, scale); }, o);
    CHECK_TEXT(r.ok(), what + ": " + r.first());
    CHECK_TEXT(r.banks.ratio() == 1, what + ": " + r.conflicts());
    return out;
}

/* The error of a whole batch, relative to its norm. */
template <class C> double error_of(const numbers &in, const numbers &out, size_t lines, double scale) {
    const size_t n = size_t(1) << C::LOG_N;
    double error = 0, norm = 0;
    for (size_t l = 0; l < lines; ++l) {
        std::vector<complex> x(n);
        for (size_t i = 0; i < n; ++i)
            x[i] = value(in, l * n + i);
        const std::vector<complex> y = transform(x, C::INVERSE ? 1 : -1);
        for (size_t k = 0; k < n; ++k) {
            error += std::norm(value(out, l * n + k) - scale * y[k]);
            norm += std::norm(scale * y[k]);
        }
    }
    return std::sqrt(error / norm);
}

template <int LOG, bool INV, int LINES = 1> void lines() {
    typedef Config<LOG, INV, LINES> C;
    const std::string what = "lines of " + std::to_string(1 << LOG);
    const size_t n = size_t(1) << LOG, count = 3 * C::LINES - (C::LINES > 1);
    for (const float magnitude : {1.0f, 3e30f, 2e-33f}) {
        const numbers in = random_numbers(n * count, magnitude);
        const double error = error_of<C>(in, run<C>(in, count, 0.75f, what), count, 0.75);
        CHECK_TEXT(error <= 4e-7, what + ": error " + std::to_string(1e7 * error) + "e-7");
    }
}

void rows() { lines<8, false>(), lines<8, true>(); }
void short_columns() {
    lines<9, false, 2>(), lines<9, true>(), lines<10, false, 2>(), lines<10, true>(), lines<11, false>(),
        lines<11, true, 2>();
}
void long_columns() {
    lines<12, false>(), lines<12, true>(), lines<13, false>(), lines<13, true>(), lines<14, false>(), lines<14, true>();
}

/* The lines of columns, one after the other: [outer][point][column] to [outer][column][point], or back. */
template <class C> numbers lines_of(const numbers &from, size_t outer, bool back) {
    const size_t n = size_t(1) << C::LOG_N, inner = size_t(1) << C::LOG_INNER;
    numbers to(from.size());
    for (size_t o = 0; o < outer; ++o)
        for (size_t p = 0; p < n; ++p)
            for (size_t c = 0; c < inner; ++c)
                for (size_t half = 0; half < 2; ++half) {
                    const size_t column = 2 * ((o * n + p) * inner + c) + half,
                                 line = 2 * ((o * inner + c) * n + p) + half;
                    part(to, back ? column : line) = part(const_cast<numbers &>(from), back ? line : column);
                }
    return to;
}

/* An axis that is not the last. A NaN stays in its line. */
template <int LOG, bool INV, int INNER, int LINES> void columns_of() {
    typedef Strided<LOG, INV, CF_C2C_SPLIT_COLUMNS, INNER, LINES> C;
    const std::string what = "columns of " + std::to_string(1 << LOG);
    const size_t n = size_t(1) << LOG, outer = 2, count = outer << INNER;
    numbers in = random_numbers(n * count, 3e30f);
    const numbers out = lines_of<C>(run<C>(in, count, 0.75f, what), outer, false);
    const double error = error_of<C>(lines_of<C>(in, outer, false), out, count, 0.75);
    CHECK_TEXT(error <= 4e-7, what + ": error " + std::to_string(1e7 * error) + "e-7");
    if (LOG > 10)
        return;
    numbers in_lines = lines_of<C>(in, outer, false);
    part(in_lines, 2 * 3 * n + 5) = std::numeric_limits<float>::quiet_NaN();
    const numbers bad = lines_of<C>(run<C>(lines_of<C>(in_lines, outer, true), count, 0.75f, what), outer, false);
    for (size_t i = 0; i < n * count; ++i)
        CHECK(i / n == 3 ? !std::isfinite(value(bad, i).real()) : value(bad, i) == value(out, i));
}
void columns() {
    columns_of<8, false, 4, 16>(), columns_of<8, true, 4, 8>(), columns_of<9, false, 3, 8>(),
        columns_of<10, true, 3, 4>(), columns_of<11, false, 2, 4>(), columns_of<11, true, 3, 2>(),
        columns_of<12, false, 2, 4>(), columns_of<12, true, 2, 2>();
}

/* A long row: the first kernel, then columns. */
template <int LOG, int INNER, bool INV, int LINES, int SECOND = 4> void long_row() {
    typedef Strided<LOG, INV, CF_C2C_SPLIT_FIRST, INNER, LINES> First;
    typedef Strided<INNER, INV, CF_C2C_SPLIT_COLUMNS, LOG, SECOND> Second;
    typedef Config<LOG + INNER, INV, 1> Whole;
    const std::string what = "rows of 2^" + std::to_string(Whole::LOG_N);
    const size_t n = size_t(1) << Whole::LOG_N, count = Whole::LOG_N > 16 ? 1 : 2;
    const numbers in = random_numbers(n * count, 1), between = run<First>(in, count << INNER, 1, what),
                  out = run<Second>(between, count << LOG, 0.75f, what);
    const double error = error_of<Whole>(in, out, count, 0.75);
    CHECK_TEXT(error <= 5e-7, what + ": error " + std::to_string(1e7 * error) + "e-7");
}
void long_rows() {
    long_row<8, 8, false, 16>(), long_row<8, 9, true, 16>(), long_row<9, 8, false, 8>(), long_row<10, 8, true, 4>(),
        long_row<11, 4, true, 4, 64>();
}

/* Numbers of very different size in a row: the error is still small beside the row's norm. A NaN or an infinity stays
 * in its row, and the other rows keep their bits. */
template <int LOG, int LINES> void isolated() {
    typedef Config<LOG, false, LINES> C;
    const size_t n = size_t(1) << LOG, count = 5;
    const std::string what = "rows beside others, of " + std::to_string(n);
    numbers in = random_numbers(n * count, 1);
    for (size_t i = 0; i < 2 * n * count; i += 7)
        part(in, i) *= 1e-12f;
    part(in, 2 * n + 11) = 1e9f;
    const numbers clean = run<C>(in, count, 1, what);
    CHECK(error_of<C>(in, clean, count, 1) <= 4e-7);
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        part(in, 2 * 3 * n + 5) = bad;
        const numbers out = run<C>(in, count, 1, what);
        for (size_t i = 0; i < n * count; ++i)
            CHECK(i / n == 3 ? !std::isfinite(value(out, i).real()) : value(out, i) == value(clean, i));
    }
    for (size_t l = 0; l < count; ++l) { /* each row by itself */
        const numbers own(in.begin() + long(l * n / 2), in.begin() + long((l + 1) * n / 2)),
            row(clean.begin() + long(l * n / 2), clean.begin() + long((l + 1) * n / 2));
        if (l != 3)
            CHECK(error_of<C>(own, row, 1, 1) <= 4e-7);
    }
}
void isolation() { isolated<8, 1>(), isolated<9, 2>(), isolated<11, 1>(), isolated<12, 1>(), isolated<13, 1>(); }

/* Zeros stay zeros. Rows of the smallest normal numbers of FP32 lose low bits, but no more than fbfft.h says. */
template <int LOG> void tiny() {
    typedef Config<LOG, true, 1> C;
    const size_t n = size_t(1) << LOG;
    numbers in = random_numbers(n, 0);
    const numbers zeros = run<C>(in, 1, 1, "zeros");
    for (size_t i = 0; i < n; ++i)
        CHECK(value(zeros, i) == 0.0);
    in = random_numbers(n, 2e-38f);
    CHECK(error_of<C>(in, run<C>(in, 1, 1, "the smallest numbers"), 1, 1) <= 1e-5);
}
void smallest() { tiny<8>(), tiny<10>(), tiny<12>(); }

} // namespace

int main() {
    return run_tests({{"rows", rows},
                      {"short columns", short_columns},
                      {"long columns", long_columns},
                      {"columns", columns},
                      {"long rows", long_rows},
                      {"isolation", isolation},
                      {"the smallest numbers", smallest}});
}
