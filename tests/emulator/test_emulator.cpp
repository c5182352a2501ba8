/* SPDX-License-Identifier: Apache-2.0 */
/* Correct kernels run without complaint and compute what they should, in every order of threads. */
#include "check.h"
#include "simt.h"

#include <algorithm>
#include <cmath>
#include <vector>

static const simt::order orders[] = {simt::order::ascending, simt::order::descending, simt::order::random};

template <class Test> static void in_every_order(Test test) {
    for (simt::order order : orders)
        for (std::uint64_t seed = 1; seed <= (order == simt::order::random ? 5 : 1); seed++) {
            simt::options wanted;
            wanted.order = order;
            wanted.seed = seed;
            test(wanted);
        }
}

/* ---- the orders themselves */

/* Threads as they come, before and after a barrier. */
static std::vector<unsigned> turns(simt::order order, std::uint64_t seed) {
    simt::options wanted;
    wanted.order = order;
    wanted.seed = seed;
    std::vector<unsigned> seen;
    CHECK_CLEAN(simt::launch(
        1, 96, 0,
        [&] {
            seen.push_back(threadIdx.x);
            __syncthreads();
            seen.push_back(threadIdx.x);
        },
        wanted));
    return seen;
}

static void test_orders() {
    const std::vector<unsigned> rising = turns(simt::order::ascending, 1), falling = turns(simt::order::descending, 1);
    const std::vector<unsigned> mixed = turns(simt::order::random, 1), other = turns(simt::order::random, 2);
    unsigned first[96] = {}, second[96] = {};
    CHECK(rising.size() == 192 && falling.size() == 192 && mixed.size() == 192);
    for (unsigned i = 0; i < 96; i++) {
        CHECK(rising[i] == i && rising[96 + i] == i && falling[i] == 95 - i && falling[96 + i] == 95 - i);
        first[mixed[i]]++;
        second[mixed[96 + i]]++;
    }
    for (unsigned i = 0; i < 96; i++)
        CHECK(first[i] == 1 && second[i] == 1);
    CHECK(mixed != rising && mixed != other && mixed == turns(simt::order::random, 1));
    CHECK(!std::equal(mixed.begin(), mixed.begin() + 96, mixed.begin() + 96));
}

/* ---- reduction by shuffles */

template <class T> __global__ void __launch_bounds__(256) sum(const T *__restrict__ x, T *__restrict__ y) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    smem<T> partial = cf_dynamic_shared<T>();
    T value = __ldg(x + blockIdx.x * blockDim.x + threadIdx.x);
    for (int m = 16; m > 0; m /= 2)
        value += __shfl_xor_sync(~0u, value, m);
    if (lane == 0)
        partial[warp] = value;
    __syncthreads();
    value = lane < blockDim.x / 32 ? partial[lane] : T(0);
    for (unsigned d = 16; d > 0; d /= 2)
        value += __shfl_down_sync(~0u, value, d);
    if (threadIdx.x == 0)
        __stcs(y + blockIdx.x, value);
}

template <class T> static void test_sum() {
    const unsigned blocks = 7, threads = 256;
    std::vector<T> x(blocks * threads), y(blocks), expected(blocks);
    for (unsigned i = 0; i < x.size(); i++) {
        x[i] = static_cast<T>(i * i % 23);
        expected[i / threads] += x[i];
    }
    in_every_order([&](const simt::options &wanted) {
        y.assign(blocks, T(0));
        CHECK_CLEAN(simt::launch(
            blocks, threads, 8 * sizeof(T), [&] { sum(x.data(), y.data()); }, wanted));
        CHECK(y == expected);
    });
}

/* ---- transposes through shared memory */

__global__ void transpose_block(const float2 *x, float2 *y) { /* 32 x 32 by 32 x 8 threads */
    const smem<float2> tile = cf_dynamic_shared<float2>();
    for (unsigned r = threadIdx.y; r < 32; r += blockDim.y)
        tile[r * 33 + threadIdx.x] = x[r * 32 + threadIdx.x];
    __syncthreads();
    for (unsigned r = threadIdx.y; r < 32; r += blockDim.y)
        y[r * 32 + threadIdx.x] = tile[threadIdx.x * 33 + r];
}

/* Eight lanes hold eight registers each; the groups of eight wait for themselves alone. */
__global__ void transpose_group(const float *x, float *y, bool whole_warp) {
    const unsigned lane = threadIdx.x % 8, first = threadIdx.x / 8 * 64;
    const unsigned mask = whole_warp ? ~0u : 0xffu << threadIdx.x % 32 / 8 * 8;
    const smem<float> tile = cf_dynamic_shared<float>() + first;
    for (unsigned repeat = 0; repeat < 3; repeat++) {
        for (unsigned r = 0; r < 8; r++)
            tile[lane * 8 + r] = x[first + r * 8 + lane];
        __syncwarp(mask);
        for (unsigned r = 0; r < 8; r++)
            y[first + r * 8 + lane] = tile[r * 8 + lane];
        __syncwarp(mask);
    }
}

static void test_transpose() {
    std::vector<float2> x(1024), y(1024);
    std::vector<float> a(512), b(512);
    for (unsigned i = 0; i < 1024; i++)
        x[i] = make_float2(static_cast<float>(i), -static_cast<float>(i));
    for (unsigned i = 0; i < 512; i++)
        a[i] = static_cast<float>(i);
    in_every_order([&](const simt::options &wanted) {
        CHECK_CLEAN(simt::launch(
            1, dim3(32, 8), 32 * 33 * 8, [&] { transpose_block(x.data(), y.data()); }, wanted));
        for (unsigned i = 0; i < 1024; i++)
            CHECK(y[i % 32 * 32 + i / 32].x == x[i].x && y[i % 32 * 32 + i / 32].y == x[i].y);
        for (int whole = 0; whole < 2; whole++) {
            b.assign(512, 0);
            CHECK_CLEAN(simt::launch(
                1, 64, 2048, [&] { transpose_group(a.data(), b.data(), whole); }, wanted));
            for (unsigned i = 0; i < 512; i++)
                CHECK(b[i / 64 * 64 + i % 8 * 8 + i / 8 % 8] == a[i]);
        }
    });
}

/* ---- shuffles: what PTX says of every kind at the ends of a segment */

static void test_shuffles() {
    const int widths[] = {1, 2, 4, 8, 16, 32};
    for (int width : widths)
        for (int by = 0; by < 32; by++) {
            int index[32], exclusive[32], up[32], down[32];
            CHECK_CLEAN(simt::launch(1, 32, 0, [&] {
                const int lane = static_cast<int>(threadIdx.x);
                index[lane] = __shfl_sync(~0u, lane, by, width);
                exclusive[lane] = __shfl_xor_sync(~0u, lane, by, width);
                up[lane] = __shfl_up_sync(~0u, lane, static_cast<unsigned>(by), width);
                down[lane] = __shfl_down_sync(~0u, lane, static_cast<unsigned>(by), width);
            }));
            for (int lane = 0; lane < 32; lane++) {
                const int first = lane / width * width, end = first + width;
                CHECK(index[lane] == first + by % width);
                CHECK(exclusive[lane] == ((lane ^ by) < end ? lane ^ by : lane));
                CHECK(up[lane] == (lane - by >= first ? lane - by : lane));
                CHECK(down[lane] == (lane + by < end ? lane + by : lane));
            }
        }
}

/* Halves of a warp that take different ways, each with a mask of its own, and lanes that meet one after the other. */
static void test_masks() {
    in_every_order([](const simt::options &wanted) {
        unsigned low[16], high[16], pair[3];
        CHECK_CLEAN(simt::launch(
            1, 32, 0,
            [&] {
                const unsigned lane = threadIdx.x;
                if (lane < 16)
                    low[lane] = __shfl_xor_sync(0xffffu, lane, 1);
                else
                    for (unsigned i = 0; i < 3; i++)
                        high[lane - 16] = __shfl_sync(0xffff0000u, lane + i, 16 + static_cast<int>(i));
                if (lane < 3)
                    pair[lane] = lane;
                if (lane < 2)
                    pair[lane] = __shfl_xor_sync(3u, lane, 1);
                if (lane == 0 || lane == 2)
                    pair[lane] = __shfl_xor_sync(5u, pair[lane], 2);
            },
            wanted));
        for (unsigned i = 0; i < 16; i++)
            CHECK(low[i] == (i ^ 1) && high[i] == 20);
        CHECK(pair[0] == 2 && pair[1] == 0 && pair[2] == 1);
    });
}

/* ---- what is ordered without a barrier of the block */

/* Lane 0 writes; the word travels by pairs: 0 meets 1, 1 meets 2, ... Order is handed on. */
static void test_order_is_transitive() {
    in_every_order([](const simt::options &wanted) {
        int sum_of_all = 0;
        CHECK_CLEAN(simt::launch(
            1, 32, 8,
            [&] {
                const smem<int> s = cf_dynamic_shared<int>();
                const unsigned lane = threadIdx.x;
                if (lane == 0)
                    s[1] = 1000;
                if (lane > 0)
                    __syncwarp(3u << (lane - 1));
                const int before = lane > 0 ? s[0] : 0;
                s[0] = before + static_cast<int>(lane);
                if (lane < 31)
                    __syncwarp(3u << lane);
                else
                    sum_of_all = s[0] + s[1];
            },
            wanted));
        CHECK(sum_of_all == 1496);
    });
}

static void test_geometry() {
    std::vector<unsigned> seen(2 * 3 * 2 * 4 * 2 * 3);
    CHECK_CLEAN(simt::launch(dim3(2, 3, 2), dim3(4, 2, 3), 0, [&] {
        const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        __syncthreads();
        seen[block * 24 + thread]++;
    }));
    CHECK(seen == std::vector<unsigned>(seen.size(), 1));
}

static void test_views() {
    float total = 0;
    CHECK_CLEAN(simt::launch(1, 1, 64, [&] {
        const smem<char> bytes = cf_dynamic_shared<char>() + 16;
        const smem<float4> quads = smem_cast<float4>(bytes - 16);
        quads[1] = make_float4(1, 2, 3, 4);
        *(quads + 2) = make_float4(5, 6, 7, 8);
        quads[3] = quads[2];
        const smem<const float> singles = smem_cast<float>(quads) + 8;
        const smem<double2> doubles = smem_cast<double2>(quads + 3);
        const float2 two = smem_cast<float2>(singles)[-1];
        const double2 copy = doubles[0];
        total = singles[0] + singles[-4] + two.y + (copy.x == copy.x ? 100.0f : 0.0f);
        total += (smem_cast<float>(quads) + 13)[0];
    }));
    CHECK(total == 5 + 1 + 4 + 100 + 6);
}

/* ---- numbers */

static void test_storage_formats() {
    CHECK(cf_fp16_to_float(0x3c00) == 1 && cf_fp16_to_float(0xc000) == -2 && cf_fp16_to_float(1) == 0x1p-24f);
    CHECK(cf_fp16_to_float(0x7bff) == 65504 && std::isinf(cf_fp16_to_float(0xfc00)) && cf_bf16_to_float(0x4049) > 3);
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        const unsigned short pattern = static_cast<unsigned short>(bits);
        const float half = cf_fp16_to_float(pattern), bf16 = cf_bf16_to_float(pattern);
        CHECK(std::isnan(half) ? cf_float_to_fp16(half) == 0x7fff : cf_float_to_fp16(half) == pattern);
        CHECK(std::isnan(bf16) ? cf_float_to_bf16(bf16) == 0x7fff : cf_float_to_bf16(bf16) == pattern);
        const unsigned magnitude = bits & 0x7fff, even = bits + (bits & 1);
        if (magnitude < 0x7bff) { /* a tie, and what is next to it */
            const float next = cf_fp16_to_float(static_cast<unsigned short>(bits + 1)), tie = half / 2 + next / 2;
            CHECK(cf_float_to_fp16(tie) == even && cf_float_to_fp16(std::nextafter(tie, half)) == bits);
            CHECK(cf_float_to_fp16(std::nextafter(tie, next)) == bits + 1);
        }
        if (magnitude < 0x7f7f) {
            const float tie = simt_float_of(bits << 16 | 0x8000u);
            CHECK(cf_float_to_bf16(tie) == even && cf_float_to_bf16(simt_float_of(bits << 16 | 0x8001u)) == bits + 1);
            CHECK(cf_float_to_bf16(simt_float_of(bits << 16 | 0x7fffu)) == bits);
        }
    }
    CHECK(cf_float_to_fp16(65519.9f) == 0x7bff && cf_float_to_fp16(65520) == 0x7c00);
}

static void test_sincospi() {
    const double root = std::sqrt(0.5);
    for (int eighth = -64; eighth <= 64; eighth++) {
        double s, c;
        float sf, cf;
        sincospi(eighth / 4.0, &s, &c);
        sincospif(static_cast<float>(eighth) / 4, &sf, &cf);
        const double values[] = {0, root, 1, root, 0, -root, -1, -root};
        CHECK(s == values[eighth & 7] && c == values[(eighth + 2) & 7]);
        CHECK(sf == static_cast<float>(s) && cf == static_cast<float>(c));
    }
}

int main() {
    return run_tests({{"orders", test_orders},
                      {"sum of floats", test_sum<float>},
                      {"sum of doubles", test_sum<double>},
                      {"sum of ints", test_sum<int>},
                      {"transpose", test_transpose},
                      {"shuffles", test_shuffles},
                      {"masks", test_masks},
                      {"order is transitive", test_order_is_transitive},
                      {"geometry", test_geometry},
                      {"views of shared memory", test_views},
                      {"storage formats", test_storage_formats},
                      {"sincospi", test_sincospi}});
}
