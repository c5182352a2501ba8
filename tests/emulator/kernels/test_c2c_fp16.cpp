/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms from FP16 to FP16 on tensor cores, run by the emulator and compared with a transform in double. */
#include "check.h"
#include "fbfft/c2c_fp16/lines.cuh"
#include "fbfft/c2c_fp16/tile.cuh"
#include "kernels/recursive_fft.h"

#include <cmath>
#include <string>
#include <vector>

namespace {

const double PI = std::acos(-1.0);

unsigned word_of(complex v) {
    return unsigned(cf_float_to_fp16(float(v.real()))) | unsigned(cf_float_to_fp16(float(v.imag()))) << 16;
}
complex value_of(unsigned word) {
    return {double(cf_fp16_to_float((unsigned short)word)), double(cf_fp16_to_float((unsigned short)(word >> 16)))};
}

std::vector<unsigned> random_words(size_t count) {
    std::vector<unsigned> words(count);
    unsigned state = 7;
    const auto next = [&state] {
        state = state * 1664525u + 1013904223u;
        return double(int(state >> 8) - (1 << 23)) / double(1 << 23);
    };
    for (unsigned &w : words) {
        const double re = next();
        w = word_of({re, next()});
    }
    return words;
}

/* Points of a row are `stride` apart in memory. */
std::vector<complex> line_of(const std::vector<unsigned> &words, size_t first, size_t stride, size_t n) {
    std::vector<complex> line(n);
    for (size_t i = 0; i < n; ++i)
        line[i] = value_of(words[first + i * stride]);
    return line;
}

struct errors {
    double error = 0, norm = 0;
    void add(unsigned word, complex expected) {
        error += std::norm(value_of(word) - expected);
        norm += std::norm(expected);
    }
    void check(const std::string &what) const {
        const double relative = std::sqrt(error / norm);
        CHECK_TEXT(relative <= 6e-4, what + ": error " + std::to_string(relative));
    }
};

const unsigned POISON = 0x7fff7fff;

template <class Run> void launch(unsigned blocks, unsigned threads, int chunks, const std::string &what, Run run) {
    simt::options o;
    o.order = simt::order::random;
    o.banks = true;
    const simt::result r = simt::launch(blocks, threads, size_t(chunks) * 16, run, o);
    CHECK_TEXT(r.ok(), what + ": " + r.first());
    CHECK_TEXT(r.banks.ratio() == 1, what + ": " + r.conflicts());
}

/* ----------------------------------------------------------------------------------------------- lines in registers */

template <int LOG, bool INV> struct LinesConfig {
    static constexpr int LOG_N = LOG, THREADS = 64, EACH = LOG % 2 ? 1 : 2, ROUNDS = LOG < 4 ? 1 : 2;
    static constexpr bool INVERSE = INV;
    static constexpr float gain(int, int product) { return product ? 0.75f : 0.5f; }
};

template <int LOG, bool INV> void lines() {
    typedef LinesConfig<LOG, INV> C;
    const std::string what = "lines of " + std::to_string(1 << LOG);
    const size_t n = size_t(1) << LOG, count = 37;
    const std::vector<unsigned> in = random_words(n * count);
    std::vector<unsigned> out(n * count, POISON);
    launch(20, C::THREADS, 0, what, [&] { fp16_lines<C>(in.data(), out.data(), (long long)count); });
    errors e;
    for (size_t l = 0; l < count; ++l) {
        const std::vector<complex> y = transform(line_of(in, l * n, 1, n), INV ? 1 : -1);
        for (size_t k = 0; k < n; ++k)
            e.add(out[l * n + k], (LOG < 8 ? 0.75 : 0.375) * y[k]);
    }
    e.check(what);
}

void short_lines() { lines<1, false>(), lines<2, true>(), lines<3, false>(), lines<3, true>(); }
void eights() { lines<4, false>(), lines<4, true>(), lines<5, false>(), lines<6, true>(), lines<7, false>(); }
void long_lines() { lines<8, false>(), lines<8, true>(), lines<9, false>(), lines<9, true>(); }

/* A NaN stays in its row. The other rows keep their bits. */
template <int LOG> void isolated() {
    typedef LinesConfig<LOG, false> C;
    const size_t n = size_t(1) << LOG, count = 19, bad = 5;
    std::vector<unsigned> in = random_words(n * count), clean(n * count), out(n * count);
    const std::string what = "a NaN among lines of " + std::to_string(n);
    launch(20, C::THREADS, 0, what, [&] { fp16_lines<C>(in.data(), clean.data(), (long long)count); });
    in[bad * n + n / 2] = POISON;
    launch(20, C::THREADS, 0, what, [&] { fp16_lines<C>(in.data(), out.data(), (long long)count); });
    for (size_t i = 0; i < n * count; ++i)
        CHECK(i / n == bad ? std::isnan(value_of(out[i]).real()) : out[i] == clean[i]);
}
void isolation() { isolated<2>(), isolated<4>(), isolated<6>(), isolated<8>(); }

/* ------------------------------------------------------------------------------------------------------------ tiles */

template <int FORM_, int R1, int R2, int W, int INNER, int TWIDDLE, int FIRST, int MIDDLE, bool INV, bool MORE = false>
struct TileConfig {
    static constexpr int FORM = FORM_, LOG_R1 = R1, LOG_R2 = R2, LOG_W = W, LOG_INNER = INNER, LOG_TWIDDLE = TWIDDLE,
                         LOG_FIRST = FIRST, LOG_MIDDLE = MIDDLE, THREADS = R1 + R2 + W > 10 ? 64 : 32;
    static constexpr bool INVERSE = INV, AHEAD = MORE;
    static constexpr float gain(int step, int product) { return step ? 0.75f : product ? 1.25f : 0.5f; }
    static constexpr double all() { return (R1 > 4 ? 0.5 : 1) * 1.25 * (R2 > 4 ? 0.75 : 1) * (R2 > 0 ? 0.75 : 1); }
};

template <int R1, int R2, int W, bool INV = false, bool MORE = false> void tile_lines() {
    typedef TileConfig<FP16_LINES, R1, R2, W, 0, 0, 0, 0, INV, MORE> C;
    const std::string what = "tiles of lines of " + std::to_string(1 << R1) + "*" + std::to_string(1 << R2);
    const size_t n = size_t(1) << (R1 + R2), count = (MORE ? 5 << W : 2 << W) - (W > 0); /* the last tile is not full */
    const std::vector<unsigned> in = random_words(n * count);
    std::vector<unsigned> out(n * count, POISON);
    launch(2, C::THREADS, MORE ? Fp16Tile<C>::CHUNKS / 4 * 7 : Fp16Tile<C>::CHUNKS, what, [&] {
        fp16_tile<C>(reinterpret_cast<const uint4 *>(in.data()), reinterpret_cast<uint4 *>(out.data()),
                     (long long)count);
    });
    errors e;
    for (size_t l = 0; l < count; ++l) {
        const std::vector<complex> y = transform(line_of(in, l * n, 1, n), INV ? 1 : -1);
        for (size_t k = 0; k < n; ++k)
            e.add(out[l * n + k], C::all() * y[k]);
    }
    e.check(what);
}

template <int R1, int R2, int W, int INNER, int TWIDDLE, bool INV = false, bool MORE = false> void columns() {
    typedef TileConfig<FP16_COLUMNS, R1, R2, W, INNER, TWIDDLE, 0, 0, INV, MORE> C;
    const std::string what = "columns of " + std::to_string(1 << R1) + "*" + std::to_string(1 << R2);
    const size_t n = size_t(1) << (R1 + R2), inner = size_t(1) << INNER, outer = 2;
    const std::vector<unsigned> in = random_words(outer * n * inner);
    std::vector<unsigned> out(in.size(), POISON);
    const unsigned tiles = unsigned(outer << (INNER - W));
    launch(MORE ? 3 : tiles, C::THREADS, MORE ? Fp16Tile<C>::CHUNKS / 4 * 7 : Fp16Tile<C>::CHUNKS, what, [&] {
        fp16_tile<C>(reinterpret_cast<const uint4 *>(in.data()), reinterpret_cast<uint4 *>(out.data()),
                     (long long)(tiles) << W);
    });
    errors e;
    const int sign = INV ? 1 : -1;
    for (size_t o = 0; o < outer; ++o)
        for (size_t i = 0; i < inner; ++i) {
            const std::vector<complex> y = transform(line_of(in, o * n * inner + i, inner, n), sign);
            for (size_t k = 0; k < n; ++k) {
                const double turn = TWIDDLE ? double(k) * double(i) / double(1 << TWIDDLE) : 0;
                e.add(out[(o * n + k) * inner + i], C::all() * y[k] * std::polar(1.0, sign * 2 * PI * turn));
            }
        }
    e.check(what);
}

template <int R1, int R2, int W, int FIRST, int MIDDLE, bool INV = false> void rows() {
    typedef TileConfig<FP16_ROWS, R1, R2, W, 0, 0, FIRST, MIDDLE, INV> C;
    const std::string what = "rows of " + std::to_string(1 << R1) + "*" + std::to_string(1 << R2);
    const size_t n = size_t(1) << (R1 + R2), first = size_t(1) << FIRST, middle = size_t(1) << MIDDLE, outer = 2;
    const std::vector<unsigned> in = random_words(outer * n * first * middle);
    std::vector<unsigned> out(in.size(), POISON);
    launch(unsigned(outer << (FIRST - W + MIDDLE)), C::THREADS, Fp16Tile<C>::CHUNKS, what,
           [&] { fp16_tile<C>(reinterpret_cast<const uint4 *>(in.data()), reinterpret_cast<uint4 *>(out.data()), 0); });
    errors e;
    for (size_t o = 0; o < outer; ++o)
        for (size_t f = 0; f < first; ++f)
            for (size_t m = 0; m < middle; ++m) {
                const std::vector<complex> y =
                    transform(line_of(in, ((o * first + f) * middle + m) * n, 1, n), INV ? 1 : -1);
                for (size_t k = 0; k < n; ++k)
                    e.add(out[((o * n + k) * middle + m) * first + f], C::all() * y[k]);
            }
    e.check(what);
}

void tiles_of_lines() {
    tile_lines<8, 2, 0>(), tile_lines<8, 2, 2>(), tile_lines<8, 3, 1>(), tile_lines<8, 4, 1, true>();
    tile_lines<8, 5, 0>(), tile_lines<8, 6, 0, true>();
}
void ahead() {
    tile_lines<8, 2, 0, false, true>(), tile_lines<8, 2, 1, true, true>(), tile_lines<8, 3, 2, false, true>();
    tile_lines<8, 4, 0, true, true>(), tile_lines<8, 7, 0, false, true>();
    columns<8, 0, 4, 6, 14, false, true>(), columns<8, 2, 3, 5, 15, true, true>(),
        columns<8, 3, 4, 5, 16, false, true>();
    columns<7, 0, 4, 5, 0, false, true>();
}
void one_step() {
    columns<8, 0, 4, 5, 0>(), columns<8, 0, 3, 4, 12, true>(), columns<7, 0, 4, 5, 12>(), columns<6, 0, 4, 5, 11>();
    columns<5, 0, 5, 6, 11>(), columns<5, 0, 5, 5, 0, true>(), columns<4, 0, 6, 6, 10>(), columns<3, 0, 7, 7, 10>();
}
void two_steps() {
    columns<8, 1, 4, 4, 0>(), columns<8, 2, 3, 5, 15>(), columns<8, 3, 3, 4, 15, true>(), columns<8, 4, 3, 3, 15>();
}
void rows_to_columns() {
    rows<8, 0, 4, 5, 0>(), rows<8, 0, 3, 4, 1, true>(), rows<7, 0, 4, 4, 0>(), rows<6, 0, 4, 5, 1>();
    rows<8, 1, 3, 3, 1>(), rows<8, 2, 3, 4, 0, true>(), rows<8, 3, 3, 3, 0>(), rows<8, 3, 3, 4, 1, true>();
    rows<8, 4, 3, 3, 0>();
}

} // namespace

int main() {
    return run_tests({{"short lines", short_lines},
                      {"lines of 16 to 128", eights},
                      {"lines of 256 and 512", long_lines},
                      {"isolation", isolation},
                      {"tiles of lines", tiles_of_lines},
                      {"one tile after the other", ahead},
                      {"columns, one step", one_step},
                      {"columns, two steps", two_steps},
                      {"rows to columns", rows_to_columns}});
}
