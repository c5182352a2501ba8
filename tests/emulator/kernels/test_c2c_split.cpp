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

template <int LOG, bool INV, int LINES_, bool REALS_ = false> struct Config {
    static constexpr int LOG_N = LOG, THREADS = LOG == 8 && !REALS_ ? 64 : 128,
                         LINES = LOG == 8 ? THREADS / 32 : LINES_, FORM = CF_C2C_SPLIT_ROWS, LOG_INNER = 0,
                         LOG_LAST = 0;
    static constexpr bool INVERSE = INV, REALS = REALS_;
    typedef SplitLine<Config> L;
    static constexpr size_t shared = LOG > 8 || REALS ? size_t(LINES *L::LINE) * 16 : 0;
};

/* An axis with 2^INNER neighbouring lines. LAST: of the longest rows. */
template <int LOG, bool INV, int FORM_, int INNER, int LINES_, int LAST = 0> struct Strided {
    static constexpr int LOG_N = LOG, THREADS = LOG < 8 ? LINES_ / 2 : 128, LINES = LINES_, FORM = FORM_,
                         LOG_INNER = INNER, LOG_LAST = LAST;
    static constexpr bool INVERSE = INV, REALS = false;
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

/* A row of 2^(LOG + MIDDLE + LAST) points by three kernels. */
template <int LOG, int MIDDLE, int LAST, bool INV> void longest_row() {
    typedef Strided<LOG, INV, CF_C2C_SPLIT_FIRST, MIDDLE + LAST, 4, LAST> First;
    typedef Strided<MIDDLE, INV, CF_C2C_SPLIT_COLUMNS, LOG, 4, LAST> Second;
    typedef Strided < LAST, INV, CF_C2C_SPLIT_COLUMNS, LOG + MIDDLE, LAST<8 ? 64 : 4> Third;
    typedef Config<LOG + MIDDLE + LAST, INV, 1> Whole;
    const std::string what = "longest rows of 2^" + std::to_string(Whole::LOG_N);
    const size_t n = size_t(1) << Whole::LOG_N, count = LOG == 8 ? 2 : 1;
    const numbers in = random_numbers(n * count, 1), first = run<First>(in, count << (MIDDLE + LAST), 1, what),
                  second = run<Second>(first, count << (LOG + LAST), 1, what),
                  out = run<Third>(second, count << (LOG + MIDDLE), 0.75f, what);
    const double error = error_of<Whole>(in, out, count, 0.75);
    CHECK_TEXT(error <= 5e-7, what + ": error " + std::to_string(1e7 * error) + "e-7");
}
void longest_rows() { longest_row<8, 8, 2, false>(), longest_row<8, 8, 3, true>(), longest_row<9, 8, 2, false>(); }

/* ------------------------------------------------------------------------------------------------------------ reals */

template <int LOG, bool INV, int ROWS_0, int ROWS_1> struct Reals {
    static constexpr int LOG_N = LOG, THREADS = 64, FORM = CF_C2C_SPLIT_REALS, LOG_ROWS_0 = ROWS_0, LOG_ROWS_1 = ROWS_1;
    static constexpr bool INVERSE = INV;
};

/* Runs on `batch` entries. Outputs are poisoned before. */
template <class C> std::vector<cplx> run_reals(const std::vector<cplx> &in, size_t batch, float scale) {
    const size_t rows = batch << (C::LOG_ROWS_0 + C::LOG_ROWS_1), m = size_t(1) << C::LOG_N, out_row = m + !C::INVERSE,
                 per_block = 2 * CF_C2C_SPLIT_PAIRS * C::THREADS;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<cplx> out(rows * out_row, cplx{nan, nan});
    simt::options o;
    o.order = simt::order::random;
    const simt::result r = simt::launch(
        unsigned((rows * m + per_block - 1) / per_block), C::THREADS, 0,
        [&] { split_reals<C>(in.data(), out.data(), (long long)rows, scale); }, o);
    CHECK_TEXT(r.ok(), r.first());
    return out;
}

/* A plane or volume of rows of `m` numbers, transformed along all axes. */
std::vector<complex> transform_all(std::vector<complex> x, size_t n0, size_t n1, size_t m, int sign) {
    const size_t n[3] = {n0, n1, m};
    for (size_t axis = 0, inner = n1 * m; axis < 3; ++axis, inner = axis == 1 ? m : 1)
        for (size_t line = 0; line < x.size() / n[axis]; ++line) {
            std::vector<complex> v(n[axis]);
            const size_t first = line / inner * inner * n[axis] + line % inner;
            for (size_t i = 0; i < n[axis]; ++i)
                v[i] = x[first + i * inner];
            v = transform(v, sign);
            for (size_t i = 0; i < n[axis]; ++i)
                x[first + i * inner] = v[i];
        }
    return x;
}

/* The spectrum Z of reals as complex numbers and their own one X, in double. Separated, Z is X. Merged, X is 2 Z: bins
 * that must be real have imaginary parts that count for nothing. */
template <int LOG, int ROWS_0, int ROWS_1> void real_spectra() {
    typedef Reals<LOG, false, ROWS_0, ROWS_1> Separate;
    typedef Reals<LOG, true, ROWS_0, ROWS_1> Merge;
    const size_t n0 = 1 << ROWS_0, n1 = 1 << ROWS_1, m = size_t(1) << LOG, rows = n0 * n1, batch = 3;
    std::vector<cplx> z, x;
    for (size_t b = 0; b < batch; ++b) {
        numbers reals = random_numbers(rows * m * (b + 1), 1);
        std::vector<complex> packed(rows * m), own(rows * 2 * m);
        for (size_t i = 0; i < rows * 2 * m; ++i) {
            const double v = double(part(reals, 2 * rows * m * b + i));
            own[i] = v;
            packed[i / 2] += i % 2 ? complex(0, v) : complex(v, 0);
        }
        for (const complex &v : transform_all(packed, n0, n1, m, -1))
            z.push_back({float(v.real()), float(v.imag())});
        own = transform_all(own, n0, n1, 2 * m, -1);
        for (size_t row = 0; row < rows; ++row)
            for (size_t k = 0; k <= m; ++k)
                x.push_back({float(own[2 * m * row + k].real()), float(own[2 * m * row + k].imag())});
    }
    const std::string what = "reals of 2^" + std::to_string(LOG + 1);
    const auto compare = [&](const std::vector<cplx> &got, const std::vector<cplx> &wanted, double scale) {
        double error = 0, norm = 0;
        for (size_t i = 0; i < got.size(); ++i) {
            const complex a(double(got[i].x), double(got[i].y)), b(double(wanted[i].x), double(wanted[i].y));
            error += std::norm(a - scale * b), norm += std::norm(scale * b);
        }
        CHECK_TEXT(got.size() == wanted.size() && std::sqrt(error / norm) <= 2e-7,
                   what + ": error " + std::to_string(1e7 * std::sqrt(error / norm)) + "e-7");
    };
    compare(run_reals<Separate>(z, batch, 0.75f), x, 0.75);
    for (size_t b = 0; b < batch; ++b)
        for (size_t k0 = 0; k0<n0; k0 += n0> 1 ? n0 / 2 : 1)
            for (size_t k1 = 0; k1<n1; k1 += n1> 1 ? n1 / 2 : 1)
                for (size_t k = 0; k <= m; k += m)
                    x[((b * n0 + k0) * n1 + k1) * (m + 1) + k].y = 1000;
    compare(run_reals<Merge>(x, batch, 0.75f), z, 2);
}
/* Rows of reals by one kernel: packed, transformed forward; or the spectrum, transformed back. */
template <int LOG, int LINES> void real_lines() {
    typedef Config<LOG, false, LINES, true> Forward;
    typedef Config<LOG, true, LINES, true> Inverse;
    const size_t m = size_t(1) << LOG, count = 2 * Forward::LINES + 1;
    const std::string what = "lines of 2^" + std::to_string(LOG + 1) + " reals";
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const numbers in = random_numbers(m * count, 3e30f);
    std::vector<cplx> bins(count * (m + 1), cplx{nan, nan});
    numbers back(in.size(), float4{nan, nan, nan, nan});
    simt::options o;
    o.order = simt::order::random;
    o.banks = true;
    const auto launch = [&](size_t shared, auto body) {
        const simt::result r = simt::launch(3, Forward::THREADS, shared, body, o);
        CHECK_TEXT(r.ok(), what + ": " + r.first());
        CHECK_TEXT(r.banks.ratio() <= 1.25, what + ": " + r.conflicts());
    };
    launch(Forward::shared,
           [&] { split_lines<Forward>(in.data(), reinterpret_cast<float4 *>(bins.data()), (long long)count, 0.75f); });
    double error = 0, norm = 0;
    for (size_t l = 0; l < count; ++l) {
        std::vector<complex> x(2 * m);
        for (size_t i = 0; i < 2 * m; ++i)
            x[i] = double(part(const_cast<numbers &>(in), 2 * m * l + i));
        const std::vector<complex> y = transform(x, -1);
        for (size_t k = 0; k <= m; ++k) {
            const cplx v = bins[l * (m + 1) + k];
            error += std::norm(complex(double(v.x), double(v.y)) - 0.75 * y[k]), norm += std::norm(0.75 * y[k]);
        }
        bins[l * (m + 1)].y = bins[l * (m + 1) + m].y = 1e30f; /* count for nothing */
    }
    CHECK_TEXT(std::sqrt(error / norm) <= 4e-7,
               what + ": error " + std::to_string(1e7 * std::sqrt(error / norm)) + "e-7");
    launch(Inverse::shared, [&] {
        split_lines<Inverse>(reinterpret_cast<const float4 *>(bins.data()), back.data(), (long long)count,
                             0.5f / float(m));
    });
    error = norm = 0;
    for (size_t i = 0; i < 2 * m * count; ++i) {
        const double v = 0.75 * double(part(const_cast<numbers &>(in), i));
        error += std::pow(double(part(back, i)) - v, 2), norm += v * v;
    }
    CHECK_TEXT(std::sqrt(error / norm) <= 6e-7,
               what + ", back: error " + std::to_string(1e7 * std::sqrt(error / norm)) + "e-7");
}
void real_rows() {
    real_lines<8, 4>(), real_lines<9, 2>(), real_lines<10, 2>(), real_lines<11, 1>(), real_lines<12, 1>(),
        real_lines<13, 1>(), real_lines<14, 1>();
}

void reals() { real_spectra<8, 0, 0>(), real_spectra<10, 0, 0>(), real_spectra<8, 0, 3>(), real_spectra<8, 2, 2>(); }

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
                      {"longest rows", longest_rows},
                      {"reals", reals},
                      {"rows of reals", real_rows},
                      {"isolation", isolation},
                      {"the smallest numbers", smallest}});
}
