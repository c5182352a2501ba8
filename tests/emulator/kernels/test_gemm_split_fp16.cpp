/* SPDX-License-Identifier: Apache-2.0 */
/* Products of split terms on tensor cores, run by the emulator and compared with sums in double. */
#include "check.h"
#include "conv/gpu/gemm/cgemm_split_fp16.cuh"
#include "kernels/in_slices.h"

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
};

struct shape {
    int rows, bins, groups;
    bool accumulate, wide;
    int row_slices = 1; /* of the rows, whose sums another kernel adds */
};

/* [group][bin][row][column], with a gap behind each group. */
struct operand {
    int rows, columns, bins, groups;
    std::vector<cplx> data;
    long long bin_stride() const { return (long long)rows * columns; }
    long long group_stride() const { return bins * bin_stride() + 2 * columns; }
    operand(int rows_, int columns_, const shape &s, numbers &random)
        : rows(rows_), columns(columns_), bins(s.bins), groups(s.groups), data(size_t(s.groups * group_stride())) {
        for (cplx &v : data)
            v = {random.next(), random.next()};
    }
    size_t at(int group, int bin, int row, int column) const {
        return size_t(group * group_stride() + bin * bin_stride() + (long long)row * columns + column);
    }
    complex value(int group, int bin, int row, int column) const {
        const cplx v = data[at(group, bin, row, column)];
        return {v.x, v.y};
    }
};

template <class P, int IN, int OUT> struct product {
    shape s;
    numbers random;
    operand x, w, y;
    operand &result() { return P::KIND == 0 ? y : P::KIND == 1 ? x : w; }

    explicit product(const shape &s_, unsigned seed = 7)
        : s(s_), random{seed}, x(s.rows, IN, s, random), w(OUT, IN, s, random), y(s.rows, OUT, s, random) {}

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
        const operand &a = P::KIND == 0 ? x : y, &b = P::KIND == 2 ? x : w;
        operand &c = result();
        cf_cgemm_call call = {};
        call.a = a.data.data(), call.b = b.data.data(), call.c = c.data.data();
        call.a_bin = a.bin_stride(), call.b_bin = b.bin_stride(), call.c_bin = c.bin_stride();
        call.a_group = a.group_stride(), call.b_group = b.group_stride(), call.c_group = c.group_stride();
        call.bins = s.bins, call.rows = s.rows, call.wide_a = a.columns % 2 == 0 && s.wide,
        call.wide_b = b.columns % 2 == 0 && s.wide, call.wide_c = c.columns % 2 == 0 && s.wide,
        call.accumulate = s.accumulate;
        const int tiles = (c.rows + P::M - 1) / P::M * ((c.columns + P::N - 1) / P::N);
        in_slices slices(s.rows, s.row_slices, s.bins * c.bin_stride());
        if (P::ROW_SLICES)
            slices.set(call, a.columns, b.columns);
        simt::options o;
        o.order = simt::order::random;
        CHECK_CLEAN(simt::launch(
            unsigned(tiles * s.bins * (P::ROW_SLICES ? slices.count : s.groups)), unsigned(P::T * P::SLICES),
            size_t(P::SHARED), [&] { cgemm_run<P>(call); }, o));
        if (P::ROW_SLICES)
            slices.add(c.data.data(), s.accumulate);
    }

    /* The error relative to the root of the sum of squares of the terms. */
    double error() {
        const operand before = result();
        if (!s.accumulate)
            for (cplx &v : result().data)
                v = {NAN, NAN};
        run();
        const operand &c = result();
        double difference = 0, norm = 0;
        for (int group = 0; group < s.groups; ++group) {
            for (int bin = 0; bin < s.bins; ++bin)
                for (int row = 0; row < c.rows; ++row)
                    for (int column = 0; column < c.columns; ++column) {
                        double size;
                        complex sum = expected(group, bin, row, column, &size);
                        if (s.accumulate) {
                            sum += before.value(group, bin, row, column);
                            size += std::norm(before.value(group, bin, row, column));
                        }
                        const double d = std::abs(c.value(group, bin, row, column) - sum);
                        difference = !(d * d <= HUGE_VAL) ? NAN : difference + d * d;
                        norm += size;
                    }
            for (long long i = s.bins * c.bin_stride(); i < c.group_stride(); ++i) { /* the gap behind the group */
                const cplx &g = c.data[size_t(group * c.group_stride() + i)];
                const cplx &h = before.data[size_t(group * c.group_stride() + i)];
                CHECK(s.accumulate ? g.x == h.x && g.y == h.y : std::isnan(g.x) && std::isnan(g.y));
            }
        }
        return std::sqrt(difference / norm);
    }
};

template <int KIND, int IN, int OUT, int WM, int WN, int MT, int NT, int PARTS, int SLICES = 1, bool GROUPED = false>
void check(const shape &s) {
    typedef CgemmConfig<KIND, IN, OUT, WM, WN, MT, NT, 3, PARTS, SLICES, GROUPED> P;
    product<P, IN, OUT> p(s);
    const double error = p.error(), most = PARTS == 2 ? 1.2e-7 : 4e-4;
    char text[200];
    std::snprintf(text, sizeof text, "kind %d, %d rows, %d and %d columns, terms %d, slices %d: error %.3g", KIND,
                  s.rows, IN, OUT, PARTS, SLICES, error);
    if (std::getenv("PRODUCT_PRINT"))
        std::puts(text);
    CHECK_TEXT(error <= most, text);
}

template <int KIND, int IN, int OUT, int PARTS> void tile(const shape &s) {
    check<KIND, IN, OUT, 1, 1, 2, 4, PARTS>(s);
}

void kinds() {
    tile<0, 20, 36, 2>({37, 2, 1, false, true});
    tile<1, 20, 36, 2>({37, 2, 1, false, true});
    tile<2, 20, 36, 2>({37, 2, 1, false, true});
    tile<0, 20, 36, 1>({37, 2, 1, false, true});
    tile<1, 20, 36, 1>({37, 2, 1, false, true});
    tile<2, 20, 36, 1>({37, 2, 1, false, true});
}
void odd() {
    tile<0, 7, 3, 2>({5, 3, 2, true, false});
    tile<1, 7, 3, 2>({5, 3, 2, true, false});
    tile<2, 7, 3, 2>({5, 3, 2, true, false});
    tile<0, 1, 1, 2>({1, 1, 3, false, false});
    tile<1, 33, 17, 2>({33, 1, 2, false, false});
    tile<2, 33, 17, 2>({33, 1, 2, false, false});
}
void slices() {
    check<2, 20, 36, 1, 1, 2, 4, 2, 3>({150, 2, 1, true, true});
    check<0, 100, 20, 2, 1, 1, 4, 2, 2>({40, 1, 1, false, true});
    check<1, 20, 70, 1, 2, 2, 4, 2, 2>({40, 1, 1, false, true});
}

/* Slices of the rows, of which the last one is shorter, and has no terms for some groups of warps. */
template <int SLICES, bool GROUPED> void shared_sum(const shape &s) {
    typedef CgemmConfig<2, 20, 36, GROUPED ? 4 : 1, 1, GROUPED ? 1 : 2, GROUPED ? 8 : 4, 3, 2, SLICES, GROUPED, true> P;
    product<P, 20, 36> p(s);
    const double error = p.error();
    CHECK_TEXT(error <= 1.2e-7, std::to_string(s.row_slices) + " slices: error " + std::to_string(error));
}
void row_slices() {
    shared_sum<1, false>({150, 2, 1, false, true, 4});
    shared_sum<2, false>({145, 2, 1, true, true, 3});
    shared_sum<1, true>({37, 1, 1, false, false, 10});
}

/* Several warps, and warpgroups that multiply together. */
void blocks() {
    check<0, 70, 40, 4, 1, 2, 8, 2>({130, 1, 1, false, true});
    check<1, 70, 72, 2, 2, 1, 2, 2>({40, 1, 1, false, true});
    check<2, 34, 40, 1, 4, 1, 2, 2>({70, 1, 1, true, true});
    check<0, 40, 70, 4, 1, 1, 8, 2, 1, true>({70, 1, 1, false, true});
    check<1, 48, 24, 2, 1, 1, 6, 2>({40, 1, 1, false, true});
    check<2, 48, 24, 2, 1, 1, 6, 2>({40, 1, 1, false, true});
    check<2, 20, 70, 4, 1, 1, 8, 2, 2, true>({70, 1, 1, false, true});
    check<0, 3, 96, 4, 1, 1, 6, 2>({70, 2, 1, false, true});
    check<1, 20, 140, 4, 2, 1, 8, 1, 1, true>({50, 1, 1, false, true});
    check<2, 33, 70, 4, 1, 1, 8, 2, 1, true>({40, 2, 1, true, false});
}

/* A row of X (or Y) does not change a bit of the other rows of the result. */
template <int KIND, int IN, int OUT> void isolated(float factor) {
    typedef CgemmConfig<KIND, IN, OUT, 1, 1, 2, 4, 3, 2, 1, false> P;
    const int bad = 3;
    product<P, IN, OUT> plain({20, 1, 1, false, true}), spoiled = plain;
    operand &rows = KIND == 0 ? spoiled.x : spoiled.y;
    for (int k = 0; k < rows.columns; ++k) {
        cplx &v = rows.data[rows.at(0, 0, bad, k)];
        v = {v.x * factor, v.y * factor};
    }
    plain.run();
    spoiled.run();
    const operand &c = plain.result(), &d = spoiled.result();
    for (int row = 0; row < 20; ++row)
        for (int column = 0; column < c.columns; ++column) {
            const cplx a = c.data[c.at(0, 0, row, column)], b = d.data[d.at(0, 0, row, column)];
            const bool same = a.x == b.x && a.y == b.y;
            CHECK(same == (row != bad));
        }
}
void isolation() {
    for (const float factor : {1e6f, INFINITY, NAN, 1e37f, 1e-37f}) {
        isolated<0, 20, 24>(factor);
        isolated<1, 20, 24>(factor);
    }
}

/* Rows of very different magnitude are equally accurate. */
template <int KIND, int IN, int OUT> void scaled(float first, float second, double most) {
    typedef CgemmConfig<KIND, IN, OUT, 1, 1, 2, 4, 3, 2, 1, false> P;
    product<P, IN, OUT> p({20, 1, 1, false, true});
    operand &a = KIND == 0 ? p.x : p.y, &b = KIND == 2 ? p.x : p.w;
    for (cplx &v : a.data)
        v = {v.x * first, v.y * first};
    for (cplx &v : b.data)
        v = {v.x * second, v.y * second};
    const double error = p.error();
    CHECK_TEXT(error <= most, std::to_string(first) + " " + std::to_string(second) + ": " + std::to_string(error));
}
void ranges() {
    const float absmax = 0x1.fffffep127f;
    for (const float second : {absmax, 1e20f, 1.0f, 1e-20f, 1e-30f}) {
        const float first = second == absmax ? 1e-30f : 0.01f / second;
        scaled<0, 20, 24>(first, second, 1.2e-7);
        scaled<1, 20, 24>(first, second, 1.2e-7);
        scaled<2, 20, 24>(first, second, 1.2e-7);
        scaled<0, 20, 24>(second, first, 1.2e-7);
    }
    scaled<0, 20, 24>(1e-37f, 1e30f, 1e-4); /* the first operand has fewer bits below 2^-106 */
    scaled<0, 20, 24>(1e30f, 1e-37f, 1.2e-7);
}

} // namespace

int main() {
    return run_tests({{"kinds", kinds},
                      {"odd", odd},
                      {"slices", slices},
                      {"row slices", row_slices},
                      {"blocks", blocks},
                      {"isolation", isolation},
                      {"ranges", ranges}});
}
