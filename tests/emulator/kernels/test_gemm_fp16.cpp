/* SPDX-License-Identifier: Apache-2.0 */
/* The products of 16-bit spectra, run by the emulator, against sums in double over the stored numbers times their
 * scales. */
#include "check.h"
#include "conv/gpu/gemm/cgemm_fp16.cuh"
#include "kernels/in_share.h"
#include "kernels/in_slices.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

namespace {

typedef std::complex<double> complex;

struct numbers {
    unsigned seed;
    float next() {
        seed = seed * 1664525u + 1013904223u;
        return float(int(seed >> 8) - (1 << 23)) / float(1 << 23);
    }
    int below(int n) { return int((next() + 1) / 2 * float(n)) % n; }
};

struct shape {
    int rows, bins, groups;
    bool accumulate, wide;
    int spread;         /* scales differ by up to so many powers of two */
    bool shared = true; /* blocks have several matrices */
    int row_slices = 1; /* of the rows, whose sums another kernel adds */
};

template <class B> complex value_of(unsigned word) {
    const cplx v = B::SCALED ? unpack_fp16(word) : unpack_bf16(word);
    return {v.x, v.y};
}

/* [group][bin][row][column], with a gap behind each group, and scales [group][row] of each eight columns. */
template <class B> struct operand {
    int rows, columns, bins, groups, eights;
    std::vector<unsigned> words;
    std::vector<float> scales;
    long long bin_stride() const { return (long long)rows * columns; }
    long long group_stride() const { return bins * bin_stride() + 4 * columns; }
    operand(int rows_, int columns_, const shape &s, numbers &random)
        : rows(rows_), columns(columns_), bins(s.bins), groups(s.groups), eights((columns_ + 7) / 8),
          words(size_t(s.groups * group_stride())), scales(size_t(s.groups * rows_ * eights)) {
        for (unsigned &w : words) {
            const float re = random.next(), im = random.next();
            w = B::SCALED ? pack_fp16(1e3f * re, 1e3f * im) : pack_bf16(re, im);
        }
        /* FP16 numbers here are below 1024, which leaves 2^5 of the range. Scales use up to 3 of these powers. */
        for (float &scale : scales)
            scale = !B::SCALED ? 1.0f : std::ldexp(1.0f + 0.25f * float(random.below(4)), -random.below(s.spread + 1));
        /* Some scales belong to zeros, and are zero. */
        for (size_t i = 0; i < scales.size() && s.spread > 0 && B::SCALED; ++i)
            if (random.below(9) == 0)
                empty(i);
    }
    void empty(size_t scale) {
        const int eight = int(scale) % eights, row = int(scale) / eights % rows, group = int(scale) / eights / rows;
        for (int bin = 0; bin < bins; ++bin)
            for (int column = 8 * eight; column < std::min(columns, 8 * eight + 8); ++column)
                words[at(group, bin, row, column)] = 0;
        scales[scale] = 0;
    }
    size_t at(int group, int bin, int row, int column) const {
        return size_t(group * group_stride() + bin * bin_stride() + (long long)row * columns + column);
    }
    complex value(int group, int bin, int row, int column) const {
        return value_of<B>(words[at(group, bin, row, column)]) * double(power_of_scale(scale(group, row, column)));
    }
    float scale(int group, int row, int column) const {
        return scales[size_t((group * rows + row) * eights + column / 8)];
    }
};

template <class P, int IN, int OUT> struct product {
    typedef typename P::Bins B;
    shape s;
    numbers random;
    operand<B> x, w, y;
    std::vector<cplx> sums; /* a result in FP32 */
    operand<B> &result() { return P::KIND == 0 ? y : P::KIND == 1 ? x : w; }

    explicit product(const shape &s_, unsigned seed = 7)
        : s(s_), random{seed}, x(s.rows, IN, s, random), w(OUT, IN, s, random), y(s.rows, OUT, s, random),
          sums(result().words.size()) {
        for (cplx &v : sums)
            v = {random.next(), random.next()};
        for (float &scale : result().scales)
            scale = P::NARROW && B::SCALED ? NAN : 1;
    }

    complex expected(int group, int bin, int row, int column, double *size) const {
        complex sum = 0;
        *size = 0;
        const int depth = P::KIND == 0 ? IN : P::KIND == 1 ? OUT : s.rows;
        for (int k = 0; k < depth; ++k) {
            const complex term = P::KIND == 0 ? x.value(group, bin, row, k) * std::conj(w.value(group, bin, column, k))
                                 : P::KIND == 1
                                     ? y.value(group, bin, row, k) * w.value(group, bin, k, column)
                                     : std::conj(y.value(group, bin, k, row)) * x.value(group, bin, k, column);
            sum += term;
            *size += std::norm(term);
        }
        return sum;
    }

    void run() {
        const operand<B> &a = P::KIND == 0 ? x : y, &b = P::KIND == 2 ? x : w;
        operand<B> &c = result();
        cf_fp16_cgemm_call call = {};
        call.a = a.words.data(), call.b = b.words.data();
        call.c = P::NARROW ? static_cast<void *>(c.words.data()) : sums.data();
        call.a_scales = a.scales.data(), call.b_scales = b.scales.data(), call.c_scales = c.scales.data();
        call.a_scale_group = a.rows * a.eights, call.b_scale_group = b.rows * b.eights;
        call.c_scale_group = c.rows * c.eights;
        call.a_bin = a.bin_stride(), call.b_bin = b.bin_stride(), call.c_bin = c.bin_stride();
        call.a_group = a.group_stride(), call.b_group = b.group_stride(), call.c_group = c.group_stride();
        call.bins = s.bins, call.rows = s.rows, call.wide_a = a.columns % 4 == 0 && s.wide,
        call.wide_b = b.columns % 4 == 0 && s.wide, call.wide_c = c.columns % 2 == 0 && s.wide,
        call.accumulate = s.accumulate;
        in_slices slices(s.rows, s.row_slices, s.bins * c.bin_stride());
        if (P::ROW_SLICES) {
            slices.set(call, a.columns, b.columns);
            call.a_scale_group = slices.rows * a.eights, call.b_scale_group = slices.rows * b.eights;
        }
        const int tiles = (c.rows + P::M - 1) / P::M * ((c.columns + P::N - 1) / P::N),
                  all = s.bins * (P::ROW_SLICES ? slices.count : s.groups);
        /* Blocks have several matrices of several groups, in launches that need not begin with a group. */
        const int most = s.shared ? (2 * all + 2) / 3 : all;
        for (call.first = 0; call.first < all; call.first += most) {
            call.matrices = std::min(most, all - call.first);
            const int together = P::SLICES > 1 || !s.shared ? call.matrices : (call.matrices + 1) / 2;
            simt::options o;
            o.order = simt::order::random;
            CHECK_CLEAN(simt::launch(
                unsigned(tiles * together), unsigned(P::T * P::SLICES), size_t(P::SHARED),
                [&] { fp16_cgemm_run<P>(call); }, o));
        }
        if (P::ROW_SLICES)
            slices.add(sums.data(), s.accumulate);
    }

    /* The error relative to the root of the sum of squares of the terms. */
    double error() {
        const std::vector<cplx> before = sums;
        const std::vector<unsigned> old = result().words;
        run();
        const operand<B> &c = result();
        double difference = 0, norm = 0;
        for (int group = 0; group < s.groups; ++group) {
            for (int bin = 0; bin < s.bins; ++bin)
                for (int row = 0; row < c.rows; ++row)
                    for (int column = 0; column < c.columns; ++column) {
                        const size_t at = c.at(group, bin, row, column);
                        double size;
                        complex sum = expected(group, bin, row, column, &size);
                        if (s.accumulate)
                            sum += complex(before[at].x, before[at].y);
                        const complex got =
                            P::NARROW ? c.value(group, bin, row, column) : complex(sums[at].x, sums[at].y);
                        const double d = std::abs(got - sum);
                        difference = !(d * d <= HUGE_VAL) ? NAN : difference + d * d;
                        norm += size;
                    }
            for (long long i = s.bins * c.bin_stride(); i < c.group_stride(); ++i) { /* the gap behind the group */
                const size_t at = size_t(group * c.group_stride() + i);
                CHECK(c.words[at] == old[at] && sums[at].x == before[at].x && sums[at].y == before[at].y);
            }
        }
        return std::sqrt(difference / norm);
    }
};

template <int KIND, int IN, int OUT, int WM, int WN, int MT, int NT, int CHUNK, class B, int SLICES = 1>
void check(const shape &s) {
    typedef Fp16CgemmConfig<KIND, IN, OUT, WM, WN, MT, NT, 3, CHUNK, SLICES, B, false> P;
    typedef Fp16CgemmConfig<KIND, IN, OUT, WM, WN, MT, NT, 2, CHUNK, SLICES, B, KIND != 2> N;
    product<P, IN, OUT> wide(s);
    product<N, IN, OUT> narrow(s);
    const double error = wide.error(), rounded = narrow.error();
    const double roundoff = B::SCALED ? 0x1p-11 : 0x1p-8;
    char text[200];
    std::snprintf(text, sizeof text, "kind %d, %d rows, %d and %d columns, slices %d: error %.3g, narrow %.3g", KIND,
                  s.rows, IN, OUT, SLICES, error, rounded);
    if (std::getenv("PRODUCT_PRINT"))
        std::puts(text);
    /* Numbers far below others of their sum lose bits. */
    const int depth = KIND == 0 ? IN : KIND == 1 ? OUT : s.rows;
    const double lost = B::SCALED && s.spread > 0 ? 1e-4 : depth > 200 ? 2e-6 : 5e-7; /* sums are cut, not rounded */
    CHECK_TEXT(error <= lost, text);
    CHECK_TEXT(rounded <= (KIND == 2 ? lost : roundoff), text);
}

/* The same for cases of which each run compiles a share. */
template <int KIND, int IN, int OUT, int WM, int WN, int MT, int NT, int CHUNK, class B, int SLICES = 1>
void rest(const shape &s) {
    if constexpr (in_share<Fp16CgemmConfig<KIND, IN, OUT, WM, WN, MT, NT, 3, CHUNK, SLICES, B, false>>())
        check<KIND, IN, OUT, WM, WN, MT, NT, CHUNK, B, SLICES>(s);
}

template <int KIND, int IN, int OUT, class B> void tile(const shape &s) { check<KIND, IN, OUT, 1, 1, 2, 4, 16, B>(s); }
template <int KIND, int IN, int OUT, class B> void rest_tile(const shape &s) {
    rest<KIND, IN, OUT, 1, 1, 2, 4, 16, B>(s);
}

template <class B> void kinds() {
    tile<0, 20, 36, B>({37, 2, 1, false, true, 20});
    tile<1, 20, 36, B>({37, 2, 1, false, true, 20});
    tile<2, 20, 36, B>({37, 2, 1, false, true, 0});
    tile<2, 20, 36, B>({37, 2, 1, false, true, 20});
}
template <class B> void odd() {
    tile<0, 20, 12, B>({19, 3, 3, false, true, 3});
    tile<1, 20, 12, B>({19, 3, 3, false, true, 3});
    tile<2, 20, 12, B>({19, 3, 3, true, true, 3});
    tile<0, 20, 12, B>({19, 3, 1, false, true, 3, false});
    /* Sums that are longer than a table of scales. */
    tile<0, 530, 5, B>({9, 1, 1, false, true, 3});
    rest_tile<1, 5, 530, B>({9, 2, 1, false, true, 3});
    rest_tile<2, 12, 7, B>({300, 2, 1, false, true, 3});
    tile<0, 7, 3, B>({5, 3, 2, false, false, 3});
    rest_tile<1, 7, 3, B>({5, 3, 2, false, false, 3});
    tile<2, 7, 3, B>({5, 3, 2, true, false, 0});
    rest_tile<0, 1, 1, B>({1, 1, 3, false, false, 0});
    rest_tile<1, 33, 17, B>({33, 1, 2, false, false, 9});
    tile<2, 33, 17, B>({33, 2, 2, false, false, 9});
    rest_tile<0, 6, 10, B>({20, 1, 1, false, true, 9});
}
template <class B> void blocks() {
    check<0, 70, 40, 4, 1, 2, 4, 32, B>({130, 1, 1, false, true, 4});
    rest<1, 72, 40, 2, 2, 1, 2, 32, B>({40, 1, 1, false, true, 4});
    check<2, 36, 40, 1, 4, 1, 2, 32, B>({70, 1, 1, true, true, 4});
    check<2, 20, 36, 1, 1, 2, 4, 32, B, 3>({150, 2, 1, true, true, 4});
    check<0, 100, 20, 2, 1, 1, 4, 16, B, 2>({40, 1, 1, false, true, 4});
    check<2, 48, 24, 2, 1, 1, 6, 16, B>({40, 1, 1, false, true, 4});
    rest<0, 64, 136, 4, 2, 2, 4, 32, B>({130, 2, 1, false, true, 4});
    rest<1, 136, 72, 2, 4, 2, 4, 32, B>({70, 2, 1, false, true, 4});
    rest<2, 72, 136, 4, 2, 2, 4, 32, B>({70, 2, 1, false, true, 4});
    rest<2, 136, 72, 2, 4, 2, 4, 32, B>({70, 2, 1, false, true, 4});
    rest<2, 6, 96, 3, 1, 2, 2, 32, B>({70, 2, 1, false, true, 4});
}

/* Slices of the rows, of which the last one is shorter. Each slice has factors of its own. */
template <class B, int SLICES> void shared_sum(const shape &s) {
    typedef Fp16CgemmConfig<2, 20, 36, 1, 1, 2, 4, 3, 16, SLICES, B, false, true> P;
    product<P, 20, 36> p(s);
    const double error = p.error();
    CHECK_TEXT(error <= (B::SCALED ? 1e-4 : 5e-7), std::to_string(s.row_slices) + " slices: " + std::to_string(error));
}
template <class B> void row_slices() {
    shared_sum<B, 1>({150, 2, 1, false, true, 4, false, 4});
    shared_sum<B, 2>({145, 2, 1, true, true, 20, false, 3});
    shared_sum<B, 1>({37, 1, 1, false, false, 0, false, 10});
}

/* A row of X (or Y) does not change a bit of the other rows of the result. */
template <int KIND, bool NARROW> void isolated(unsigned word, float scale) {
    typedef Fp16CgemmConfig<KIND, 20, 24, 1, 1, 2, 4, 3, 16, 1, fp16_bins, NARROW> P;
    const int bad = 3;
    product<P, 20, 24> plain({20, 1, 1, false, true, 4}), spoiled = plain;
    auto &rows = KIND == 0 ? spoiled.x : spoiled.y;
    for (int k = 0; k < rows.columns; ++k)
        rows.words[rows.at(0, 0, bad, k)] = word;
    std::fill_n(&rows.scales[size_t(bad * rows.eights)], rows.eights, scale);
    plain.run();
    spoiled.run();
    const auto &c = plain.result(), &d = spoiled.result();
    for (int row = 0; row < 20; ++row) {
        for (int column = 0; column < c.columns; ++column) {
            CHECK(!NARROW || (c.scale(0, row, column) == d.scale(0, row, column)) == (row != bad));
            const size_t at = c.at(0, 0, row, column);
            const bool same = NARROW ? c.words[at] == d.words[at]
                                     : plain.sums[at].x == spoiled.sums[at].x && plain.sums[at].y == spoiled.sums[at].y;
            CHECK(same == (row != bad));
        }
    }
}
void isolation() {
    for (const unsigned word : {0x7c007c00u, 0x7e007e00u, 0x7bff7bffu, 0x00010001u}) {
        isolated<0, false>(word, 0x1p20f);
        isolated<1, true>(word, 0x1p20f);
        isolated<0, true>(word, 0x1p-30f);
        isolated<1, false>(word, 0x1p-30f);
    }
}

/* The largest possible bins: no sum in 16 bits overflows. */
void limits() {
    typedef Fp16CgemmConfig<0, 70, 24, 1, 1, 2, 4, 3, 16, 1, fp16_bins, true> P;
    product<P, 70, 24> p({20, 1, 1, false, true, 4});
    const unsigned most = pack_fp16(32768, 0);
    for (unsigned &w : p.x.words)
        w = most;
    for (unsigned &w : p.w.words)
        w = most;
    for (auto *scales : {&p.x.scales, &p.w.scales})
        std::fill(scales->begin(), scales->end(), 1.0f);
    const double error = p.error();
    CHECK_TEXT(error <= 0x1p-11 * 10, std::to_string(error)); /* sqrt of the 70 terms, which do not cancel */
}

} // namespace

int main() {
    return run_tests({{"kinds of FP16", kinds<fp16_bins>},
                      {"kinds of BF16", kinds<bf16_bins>},
                      {"odd sizes of FP16", odd<fp16_bins>},
                      {"odd sizes of BF16", odd<bf16_bins>},
                      {"blocks of FP16", blocks<fp16_bins>},
                      {"blocks of BF16", blocks<bf16_bins>},
                      {"row slices of FP16", row_slices<fp16_bins>},
                      {"row slices of BF16", row_slices<bf16_bins>},
                      {"isolation", isolation},
                      {"limits", limits}});
}
