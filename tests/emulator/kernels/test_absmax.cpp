/* SPDX-License-Identifier: Apache-2.0 */
/* The largest magnitudes of FP16 and FP32 samples, run by the emulator: dense samples at any address, strided samples,
 * NaN and Inf. */
#include "check.h"
#include "conv/gpu/absmax.cuh"

#include <cmath>
#include <vector>

namespace {

struct numbers {
    unsigned seed = 3;
    unsigned next() { return (seed = seed * 1664525u + 1013904223u) >> 16; }
};

bool is_number(unsigned short bits) { return (bits & 0x7fff) < 0x7c00; }

/* The five axes of a sample, or of one of its groups. */
struct shape {
    long long extent[5], stride[5];

    /* Elements from the first to the end of the last one. */
    long long size() const {
        long long n = 1;
        for (int a = 0; a < 5; ++a)
            n += (extent[a] - 1) * stride[a];
        return n;
    }
    /* Offset of an element from the first one. */
    long long at(long long element) const {
        long long place = 0;
        for (int a = 4; a >= 0; --a) {
            place += element % extent[a] * stride[a];
            element /= extent[a];
        }
        return place;
    }
    /* `call` takes these axes. */
    template <class Call> void describe(Call &call) const {
        call.elements = 1;
        for (int a = 0; a < 5; ++a) {
            call.extent[a] = extent[a];
            call.stride[a] = stride[a];
            call.elements *= extent[a];
        }
    }
};

/* The largest result of a sample's parts must be the expected one. Each result is at least `least`. */
void check_results(const std::vector<float> &got, const std::vector<float> &expected, float least) {
    const size_t parts = got.size() / expected.size();
    for (size_t i = 0; i < expected.size(); ++i) {
        float most = 0;
        for (size_t part = 0; part < parts; ++part) {
            CHECK(got[i * parts + part] >= least);
            most = std::max(most, got[i * parts + part]);
        }
        CHECK(most == expected[i]);
    }
}

/* Samples and groups of elements. The gaps between them have larger elements than all others. */
void check(const shape &axes, long long samples, long long groups, int parts, bool dense, int shift, bool strange) {
    cf_absmax_call s = {};
    numbers random;
    axes.describe(s);
    s.samples = samples, s.sample_stride = axes.size() + 3, s.group_stride = samples * s.sample_stride + 5;
    s.parts = parts, s.dense = dense;
    std::vector<unsigned short> memory(size_t(groups * s.group_stride + shift), 0x7bff);
    std::vector<float> expected(size_t(samples * groups)), got(size_t(samples * groups * parts), NAN);
    s.data = memory.data() + shift;
    s.absmax = got.data();
    for (long long g = 0; g < groups; ++g)
        for (long long i = 0; i < samples; ++i)
            for (long long e = 0; e < s.elements; ++e) {
                unsigned short bits = (unsigned short)(random.next() & (0x8fffu + 0x1000u * unsigned(i % 4)));
                if (strange && e % 7 == 0)
                    bits = e % 2 ? 0x7c00 : 0xfe00;
                memory[size_t(shift + g * s.group_stride + i * s.sample_stride + axes.at(e))] = bits;
                float &most = expected[size_t(g * samples + i)];
                if (is_number(bits))
                    most = std::max(most, std::fabs(cf_fp16_to_float(bits)));
            }
    CHECK_CLEAN(simt::launch(unsigned(groups * samples * parts), 64, 8, [&] { absmax_fp16(s); }));
    check_results(got, expected, 0);
}

/* FP32: as above. Samples of zeros only, or of NaN and Inf only, have the smallest magnitude. */
void check_floats(const shape &axes, long long samples, long long groups, int parts, bool dense, int shift,
                  bool strange) {
    cf_absmax_call s = {};
    numbers random;
    axes.describe(s);
    s.samples = samples, s.sample_stride = axes.size() + 3, s.group_stride = samples * s.sample_stride + 5;
    s.parts = parts, s.dense = dense;
    std::vector<float> memory(size_t(groups * s.group_stride + shift), 1e38f);
    std::vector<float> expected(size_t(samples * groups), 0x1p-100f), got(size_t(samples * groups * parts), NAN);
    s.data = memory.data() + shift;
    s.absmax = got.data();
    for (long long i = 0; i < samples * groups; ++i)
        for (long long e = 0; e < s.elements; ++e) {
            float v = i % 3 == 2 ? 0 : std::ldexp(float(random.next()) - 3e4f, int(40 * (i % 4)) - 40);
            if (strange && e % 5 == 0)
                v = e % 2 ? INFINITY : NAN;
            memory[size_t(shift + i / samples * s.group_stride + i % samples * s.sample_stride + axes.at(e))] = v;
            if (std::isfinite(v))
                expected[size_t(i)] = std::max(expected[size_t(i)], std::fabs(v));
        }
    CHECK_CLEAN(simt::launch(unsigned(groups * samples * parts), 64, 8, [&] { absmax_fp32(s); }));
    check_results(got, expected, 0x1p-100f);
}

void floats() {
    for (int shift = 0; shift < 5; ++shift) {
        check_floats({{1, 1, 1, 1, 700}, {0, 0, 0, 0, 1}}, 3, 1, 3, true, shift, shift % 2);
        check_floats({{1, 1, 1, 1, 3}, {0, 0, 0, 0, 1}}, 2, 2, 2, true, shift, false);
    }
    check_floats({{3, 4, 1, 5, 6}, {400, 1, 0, 70, 9}}, 3, 2, 2, false, 1, true);
    check_floats({{1, 1, 1, 1, 1}, {0, 0, 0, 0, 1}}, 2, 1, 1, true, 0, true);
}

void dense() {
    for (int shift = 0; shift < 9; ++shift) {
        check({{1, 1, 1, 1, 700}, {0, 0, 0, 0, 1}}, 3, 2, 1, true, shift, false);
        check({{1, 1, 1, 1, 700}, {0, 0, 0, 0, 1}}, 3, 2, 3, true, shift, shift % 2);
        check({{1, 1, 1, 1, 5}, {0, 0, 0, 0, 1}}, 2, 1, 2, true, shift, false);
    }
}
void strided() {
    check({{3, 4, 1, 5, 6}, {400, 1, 0, 70, 9}}, 2, 3, 2, false, 1, false);
    check({{1, 4, 2, 5, 6}, {0, 160, 80, 14, 2}}, 3, 1, 4, false, 0, true);
}
void nothing_but_infinities() { check({{1, 1, 1, 1, 1}, {0, 0, 0, 0, 1}}, 2, 1, 1, true, 0, true); }

} // namespace

int main() {
    return run_tests({{"dense", dense},
                      {"strided", strided},
                      {"nothing but infinities", nothing_but_infinities},
                      {"floats", floats}});
}
