/* SPDX-License-Identifier: Apache-2.0 */
/* Bank conflicts of patterns whose degree is known. */
#include "check.h"
#include "simt.h"

/* Every lane writes, then reads, the element at its number times `stride`. */
template <class T> static simt::bank_counts strided(unsigned stride, unsigned threads = 64) {
    simt::options wanted;
    wanted.banks = true;
    const simt::result r = simt::launch(
        2, threads, threads * stride * sizeof(T),
        [&] {
            const smem<T> s = cf_dynamic_shared<T>();
            s[threadIdx.x * stride] = T{};
            __syncthreads();
            const T value = s[threadIdx.x * stride];
            (void)value;
        },
        wanted);
    CHECK_TEXT(r.ok(), r.first());
    return r.banks;
}

static void test_four_bytes() {
    CHECK(strided<float>(1).ratio() == 1);
    CHECK(strided<float>(2).ratio() == 2);
    CHECK(strided<float>(32).ratio() == 32);
    CHECK(strided<float>(33).ratio() == 1);
    CHECK(strided<float>(32).worst == 32);
    const simt::bank_counts counts = strided<float>(4);
    CHECK(counts.requests == 2 * 2 * 2 && counts.ideal == 8 && counts.wavefronts == 32);
}

static void test_wide() {
    for (unsigned odd = 1; odd < 32; odd += 2) {
        CHECK(strided<float2>(odd).ratio() == 1);
        CHECK(strided<float4>(odd).ratio() == 1);
    }
    CHECK(strided<double>(2).ratio() == 2);
    CHECK(strided<double>(16).ratio() == 16);
    CHECK(strided<double2>(8).ratio() == 8);
    const simt::bank_counts two = strided<float2>(1), four = strided<float4>(1);
    CHECK(two.requests == 8 && two.ideal == 16 && four.requests == 8 && four.ideal == 32);
}

/* A struct that promises no more than the alignment of float is read by halves. */
static void test_split() {
    struct pair {
        float x, y;
    };
    const simt::bank_counts counts = strided<pair>(1);
    CHECK(counts.requests == 16 && counts.ideal == 16 && counts.wavefronts == 32);
}

static void test_broadcast() {
    simt::options wanted;
    wanted.banks = true;
    const simt::result r = simt::launch(
        1, 32, 4096,
        [] {
            const smem<float> s = cf_dynamic_shared<float>();
            for (unsigned i = 0; i < 32; i++)
                s[i * 32 + threadIdx.x] = 1;
            __syncwarp();
            float value = s[7];                   /* all the same word: 1 */
            value += s[threadIdx.x / 2];          /* pairs: 1 */
            value += s[threadIdx.x % 2 * 32];     /* two words of one bank: 2 */
            value += s[threadIdx.x * 32 & 0x3e0]; /* 32 words of one bank: 32 */
            CHECK(value == 4);
        },
        wanted);
    CHECK_TEXT(r.ok(), r.first());
    CHECK(r.banks.requests == 36 && r.banks.ideal == 36 && r.banks.wavefronts == 32 + 1 + 1 + 2 + 32);
}

/* Lanes that access nothing, and barriers and shuffles that line them up again. */
static void test_divergence() {
    simt::options wanted;
    wanted.banks = true;
    for (int step = 0; step < 3; step++) {
        const simt::result r = simt::launch(
            1, 32, 512,
            [&] {
                const smem<float> s = cf_dynamic_shared<float>();
                if (threadIdx.x < 8)
                    s[threadIdx.x + 72] = 1;
                if (step == 0)
                    (void)__shfl_xor_sync(~0u, 1, 1);
                else if (step == 1)
                    __syncwarp();
                else
                    __syncthreads();
                s[threadIdx.x] = 1;
                if (threadIdx.x < 16)
                    s[threadIdx.x + 32] = 1;
            },
            wanted);
        CHECK(r.ok() && r.banks.requests == 3 && r.banks.ratio() == 1);
    }
    CHECK(simt::launch(
              1, 32, 0, [] {}, wanted)
              .banks.ratio() == 1);
    CHECK(simt::launch(1, 32, 128, [] { cf_dynamic_shared<int>()[threadIdx.x] = 1; }).banks.requests == 0);
}

static void test_parts() {
    simt::options wanted;
    wanted.banks = true;
    const simt::result r = simt::launch(
        2, 32, 4096,
        [] {
            const smem<float> s = cf_dynamic_shared<float>();
            s[threadIdx.x] = 1;
            s[threadIdx.x * 2 + 32] = 1;
            __syncthreads();
            const float value = s[threadIdx.x];
            cf_dynamic_shared<float4>()[threadIdx.x * 2 + 8] = make_float4(value, value, value, value);
        },
        wanted);
    CHECK_TEXT(r.ok(), r.first());
    CHECK(r.bank_rows.size() == 3);
    const std::string text = r.conflicts(), start = "4-byte writes after the start: 4 requests, 1.50 of the ideal";
    CHECK_TEXT(text.find(start) == 0, text);
    CHECK_TEXT(text.find("16-byte writes after test_bank_conflicts.cpp:") != std::string::npos, text);
    CHECK_TEXT(text.find("reads") == std::string::npos, text);
}

int main() {
    return run_tests({{"four bytes", test_four_bytes},
                      {"eight and sixteen bytes", test_wide},
                      {"split accesses", test_split},
                      {"broadcast", test_broadcast},
                      {"divergence", test_divergence},
                      {"parts", test_parts}});
}
