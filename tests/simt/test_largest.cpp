/* SPDX-License-Identifier: Apache-2.0 */
/* The largest magnitudes of FP16 and FP32 samples, run by the emulator: dense ones at any address, strided ones, and what is no number. */
#include "check.h"
#include "conv/kernels/scan.cuh"
#include "conv/kernels/stages.cuh"

#include <cmath>
#include <vector>

namespace {

struct numbers {
    unsigned seed = 3;
    unsigned next() { return (seed = seed * 1664525u + 1013904223u) >> 16; }
};

bool is_number(unsigned short bits) { return (bits & 0x7fff) < 0x7c00; }

/* Samples and groups of elements with these extents and strides; `gap` elements that are not theirs are larger than all others. */
void check(const long long (&extent)[5], const long long (&stride)[5], long long samples, long long groups, int parts,
           bool dense, int shift, bool strange) {
    StageLargest s = {};
    numbers random;
    long long size = 1;
    s.elements = 1;
    for (int a = 0; a < 5; ++a) {
        s.extent[a] = extent[a];
        s.stride[a] = stride[a];
        s.elements *= extent[a];
        size += (extent[a] - 1) * stride[a];
    }
    s.samples = samples, s.sample_stride = size + 3, s.group_stride = samples * s.sample_stride + 5;
    s.parts = parts, s.dense = dense;
    std::vector<unsigned short> memory(size_t(groups * s.group_stride + shift), 0x7bff);
    std::vector<float> expected(size_t(samples * groups)), got(size_t(samples * groups * parts), NAN);
    s.data = memory.data() + shift;
    s.largest = got.data();
    for (long long g = 0; g < groups; ++g)
        for (long long i = 0; i < samples; ++i)
            for (long long e = 0; e < s.elements; ++e) {
                long long at = shift + g * s.group_stride + i * s.sample_stride, n = e;
                for (int a = 4; a >= 0; --a) {
                    at += n % extent[a] * stride[a];
                    n /= extent[a];
                }
                unsigned short bits = (unsigned short)(random.next() & (0x8fffu + 0x1000u * unsigned(i % 4)));
                if (strange && e % 7 == 0)
                    bits = e % 2 ? 0x7c00 : 0xfe00;
                memory[size_t(at)] = bits;
                float &most = expected[size_t(g * samples + i)];
                if (is_number(bits))
                    most = std::max(most, std::fabs(cf_half_to_float(bits)));
            }
    CHECK_CLEAN(simt::launch(unsigned(groups * samples * parts), 64, 8, [&] { stage_largest(s); }));
    for (size_t i = 0; i < expected.size(); ++i) {
        float most = 0;
        for (int part = 0; part < parts; ++part) {
            CHECK(got[i * size_t(parts) + size_t(part)] >= 0);
            most = std::max(most, got[i * size_t(parts) + size_t(part)]);
        }
        CHECK(most == expected[i]);
    }
}

/* FP32: as above; samples of nothing but zeros, or of what is no number, have the least magnitude. */
void check_floats(const long long (&extent)[5], const long long (&stride)[5], long long samples, int parts, bool dense,
                  int shift, bool strange) {
    ScanCall s = {};
    numbers random;
    long long size = 1;
    s.elements = 1;
    for (int a = 0; a < 5; ++a) {
        s.extent[a] = extent[a];
        s.stride[a] = stride[a];
        s.elements *= extent[a];
        size += (extent[a] - 1) * stride[a];
    }
    s.samples = samples, s.sample_stride = size + 3, s.parts = parts, s.dense = dense;
    std::vector<float> memory(size_t(samples * s.sample_stride + shift), 1e38f);
    std::vector<float> expected(size_t(samples), 0x1p-100f), got(size_t(samples * parts), NAN);
    s.data = memory.data() + shift;
    s.largest = got.data();
    for (long long i = 0; i < samples; ++i)
        for (long long e = 0; e < s.elements; ++e) {
            long long at = shift + i * s.sample_stride, n = e;
            for (int a = 4; a >= 0; --a) {
                at += n % extent[a] * stride[a];
                n /= extent[a];
            }
            float v = i % 3 == 2 ? 0 : std::ldexp(float(random.next()) - 3e4f, int(40 * i) - 40);
            if (strange && e % 5 == 0)
                v = e % 2 ? INFINITY : NAN;
            memory[size_t(at)] = v;
            if (std::isfinite(v))
                expected[size_t(i)] = std::max(expected[size_t(i)], std::fabs(v));
        }
    CHECK_CLEAN(simt::launch(unsigned(samples * parts), 64, 8, [&] { scan_largest(s); }));
    for (size_t i = 0; i < expected.size(); ++i) {
        float most = 0;
        for (int part = 0; part < parts; ++part) {
            CHECK(got[i * size_t(parts) + size_t(part)] >= 0x1p-100f);
            most = std::max(most, got[i * size_t(parts) + size_t(part)]);
        }
        CHECK(most == expected[i]);
    }
}
void floats() {
    for (int shift = 0; shift < 5; ++shift) {
        check_floats({1, 1, 1, 1, 700}, {0, 0, 0, 0, 1}, 3, 3, true, shift, shift % 2);
        check_floats({1, 1, 1, 1, 3}, {0, 0, 0, 0, 1}, 4, 2, true, shift, false);
    }
    check_floats({3, 4, 1, 5, 6}, {400, 1, 0, 70, 9}, 3, 2, false, 1, true);
    check_floats({1, 1, 1, 1, 1}, {0, 0, 0, 0, 1}, 2, 1, true, 0, true);
}

void dense() {
    for (int shift = 0; shift < 9; ++shift) {
        check({1, 1, 1, 1, 700}, {0, 0, 0, 0, 1}, 3, 2, 1, true, shift, false);
        check({1, 1, 1, 1, 700}, {0, 0, 0, 0, 1}, 3, 2, 3, true, shift, shift % 2);
        check({1, 1, 1, 1, 5}, {0, 0, 0, 0, 1}, 2, 1, 2, true, shift, false);
    }
}
void strided() {
    check({3, 4, 1, 5, 6}, {400, 1, 0, 70, 9}, 2, 3, 2, false, 1, false);
    check({1, 4, 2, 5, 6}, {0, 160, 80, 14, 2}, 3, 1, 4, false, 0, true);
}
void nothing_but_infinities() { check({1, 1, 1, 1, 1}, {0, 0, 0, 0, 1}, 2, 1, 1, true, 0, true); }

} // namespace

int main() {
    return run_tests({{"dense", dense},
                      {"strided", strided},
                      {"nothing but infinities", nothing_but_infinities},
                      {"floats", floats}});
}
