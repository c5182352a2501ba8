/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with errors. Each error is reported as what it is, in every order of threads, and the emulator works
 * afterwards. */
#include "check.h"
#include "simt.h"

static smem<int> shared_ints() { return cf_dynamic_shared<int>(); }

static int lane_number() { return static_cast<int>(threadIdx.x % 32); }

/* All errors have the expected kind, in every order. */
template <class Kernel> static void expect(simt::kind what, unsigned threads, std::size_t bytes, Kernel kernel) {
    for (simt::order order : {simt::order::ascending, simt::order::descending, simt::order::random}) {
        simt::options wanted;
        wanted.order = order;
        const simt::result wrong = simt::launch(2, threads, bytes, kernel, wanted);
        CHECK(!wrong.ok());
        for (const simt::error &e : wrong.errors)
            CHECK_TEXT(e.kind == what, wrong.first());
        CHECK_CLEAN(simt::launch(
            2, threads, bytes, [] { __syncthreads(); }, wanted));
    }
}

/* ---- shared memory */

static void test_out_of_bounds() {
    expect(simt::kind::out_of_bounds, 32, 128, [] { shared_ints()[lane_number() + 1] = 1; });
    expect(simt::kind::out_of_bounds, 32, 128, [] { shared_ints()[lane_number() - 1] = 1; });
    expect(simt::kind::out_of_bounds, 1, 12, [] { cf_dynamic_shared<float4>()[0] = make_float4(1, 2, 3, 4); });
    expect(simt::kind::out_of_bounds, 1, 0, [] {
        const int value = shared_ints()[0];
        CHECK(value == -1); /* the fill */
    });
    expect(simt::kind::out_of_bounds, 1, 64, [] {
        smem<int> nowhere;
        nowhere[0] = 1;
    });
}

static void test_misaligned() {
    expect(simt::kind::misaligned, 1, 64, [] { smem_cast<float2>(shared_ints() + 1)[0] = make_float2(1, 2); });
    expect(simt::kind::misaligned, 1, 64, [] {
        cf_dynamic_shared<float4>()[0] = make_float4(1, 2, 3, 4);
        cf_dynamic_shared<float4>()[1] = make_float4(1, 2, 3, 4);
        const float4 value = smem_cast<float4>(cf_dynamic_shared<float2>() + 1)[0];
        (void)value;
    });
}

static void test_misaligned_global() {
    alignas(16) float from[8] = {}, to[8] = {};
    expect(simt::kind::misaligned, 1, 0, [&] { (void)__ldcs(reinterpret_cast<float2 *>(from + 1)); });
    expect(simt::kind::misaligned, 1, 0, [&] { __stcs(reinterpret_cast<float4 *>(to + 2), make_float4(0, 0, 0, 0)); });
    CHECK_CLEAN(simt::launch(
        1, 1, 0, [&] { __stcs(reinterpret_cast<float4 *>(to + 4), __ldg(reinterpret_cast<const float4 *>(from))); }));
}

static void test_uninitialized() {
    expect(simt::kind::uninitialized, 32, 256, [] {
        shared_ints()[lane_number()] = 1;
        __syncthreads();
        const int value = shared_ints()[lane_number() + 1];
        (void)value;
    });
    expect(simt::kind::uninitialized, 1, 64, [] { /* half of it is written */
                                                  shared_ints()[0] = 1;
                                                  const float2 value = cf_dynamic_shared<float2>()[0];
                                                  (void)value;
    });
    /* Contents that an earlier block has left do not count. */
    const simt::result later = simt::launch(2, 1, 4, [] {
        if (blockIdx.x == 0)
            shared_ints()[0] = 1;
        const int value = shared_ints()[0];
        CHECK(value == (blockIdx.x == 0 ? 1 : -1));
    });
    CHECK(later.error_count == 1 && later.has(simt::kind::uninitialized) && later.errors[0].block.x == 1);
}

/* ---- races */

enum class between {
    nothing,
    shuffle,
    group_barrier,
    warp_barrier,
    block_barrier
};

/* Every thread writes its element, and then reads the element `distance` further. */
static void write_then_read(int distance, between step) {
    const smem<int> s = shared_ints();
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    s[thread] = 0; /* so that a read that comes too soon is a race and nothing else */
    __syncthreads();
    s[thread] = thread;
    if (step == between::shuffle)
        (void)__shfl_xor_sync(~0u, thread, 1); /* orders no memory */
    if (step == between::group_barrier)
        __syncwarp(0xffu << thread % 32 / 8 * 8);
    if (step == between::warp_barrier)
        __syncwarp();
    if (step == between::block_barrier)
        __syncthreads();
    const int value = s[(thread + distance) % threads];
    (void)value;
}

static void test_read_races() {
    expect(simt::kind::race, 32, 128, [] { write_then_read(1, between::nothing); });
    expect(simt::kind::race, 32, 128, [] { write_then_read(1, between::shuffle); });
    expect(simt::kind::race, 32, 128,
           [] { write_then_read(8, between::group_barrier); }); /* other groups of the warp */
    expect(simt::kind::race, 64, 256, [] { write_then_read(32, between::warp_barrier); }); /* other warps */
    CHECK_CLEAN(simt::launch(2, 32, 128, [] { write_then_read(5, between::warp_barrier); }));
    CHECK_CLEAN(simt::launch(2, 64, 256, [] { write_then_read(33, between::block_barrier); }));
    CHECK_CLEAN(simt::launch(2, 64, 256, [] { write_then_read(0, between::nothing); }));
}

/* All threads read, then one writes: in the same warp, in another one, and after a barrier without some readers. */
static void read_then_write(unsigned writer, unsigned mask, bool whole_block) {
    const smem<int> s = shared_ints();
    if (threadIdx.x == 0)
        s[0] = 1;
    __syncthreads();
    const int value = s[0];
    (void)value;
    if (threadIdx.x < 32 && (mask >> threadIdx.x & 1))
        __syncwarp(mask);
    if (whole_block)
        __syncthreads();
    if (threadIdx.x == writer)
        s[0] = 2;
}

static void test_write_races() {
    expect(simt::kind::race, 32, 4, [] { shared_ints()[0] = 1; });
    expect(simt::kind::race, 32, 4, [] { read_then_write(5, 0, false); });
    expect(simt::kind::race, 64, 4, [] { read_then_write(40, 0, false); });
    expect(simt::kind::race, 64, 4, [] { read_then_write(5, ~0u, false); });
    expect(simt::kind::race, 32, 4, [] { read_then_write(5, 0x7fffffffu, false); });
    CHECK_CLEAN(simt::launch(2, 32, 4, [] { read_then_write(5, ~0u, false); }));
    CHECK_CLEAN(simt::launch(2, 64, 4, [] { read_then_write(40, 0, true); }));
    CHECK_CLEAN(simt::launch(2, 1, 4, [] { read_then_write(0, 0, false); }));
}

/* ---- barriers that not all reach */

static void test_barriers() {
    expect(simt::kind::barrier, 32, 0, [] { /* at different places */
                                            if (threadIdx.x < 16)
                                                __syncthreads();
                                            else
                                                __syncthreads();
    });
    const simt::result mixed = simt::launch(3, 32, 0, [] {
        if (threadIdx.x < 16)
            __syncthreads();
        else
            __syncwarp();
    });
    CHECK(mixed.has(simt::kind::barrier) && mixed.has(simt::kind::mask) && mixed.errors[0].block.x == 0);
    CHECK(mixed.error_count == 2); /* the launch stops there */
    CHECK_CLEAN(simt::launch(3, 32, 0, [] { __syncthreads(); }));
}

static void test_early_return() {
    expect(simt::kind::early_return, 64, 0, [] {
        if (threadIdx.x != 40)
            __syncthreads();
    });
    expect(simt::kind::early_return, 64, 0, [] {
        if (threadIdx.x < 32)
            return;
        __syncthreads();
    });
    CHECK_CLEAN(simt::launch(1, 64, 0, [] {
        __syncthreads();
        if (threadIdx.x < 32)
            return;
        __syncwarp();
    }));
}

static void test_masks() {
    expect(simt::kind::mask, 32, 0, [] { /* lanes that have returned */
                                         if (threadIdx.x < 8)
                                             (void)__shfl_xor_sync(~0u, 1.0f, 1);
    });
    expect(simt::kind::mask, 32, 0, [] { /* lanes that wait elsewhere */
                                         if (threadIdx.x < 8)
                                             __syncwarp();
                                         else
                                             (void)__shfl_xor_sync(~0u, 1.0f, 1);
    });
    expect(simt::kind::mask, 32, 0, [] { /* another shuffle */
                                         if (threadIdx.x < 8)
                                             (void)__shfl_down_sync(~0u, 1.0f, 1);
                                         else
                                             (void)__shfl_xor_sync(~0u, 1.0f, 1);
    });
    expect(simt::kind::mask, 32, 0, [] { /* a shuffle of another type */
                                         if (threadIdx.x < 8)
                                             (void)__shfl_xor_sync(~0u, 1.0, 1);
                                         else
                                             (void)__shfl_xor_sync(~0u, 1.0f, 1);
    });
    expect(simt::kind::mask, 32, 0, [] { __syncwarp(threadIdx.x < 8 ? ~0u : 0xffffff00u); }); /* no common mask */
    expect(simt::kind::mask, 32, 0, [] { __syncwarp(0xffff0000u); });                         /* not the caller's */
    expect(simt::kind::mask, 16, 0, [] { __syncwarp(); });                                    /* no such lanes */
    CHECK_CLEAN(simt::launch(1, 16, 0, [] { __syncwarp(0xffffu); }));
}

static void test_shuffle_arguments() {
    expect(simt::kind::shuffle_source, 32, 0, [] {
        if (threadIdx.x < 16)
            CHECK(__shfl_sync(0xffffu, 1, 20) == -1); /* the fill */
    });
    expect(simt::kind::shuffle_source, 32, 0, [] {
        if (threadIdx.x < 16)
            (void)__shfl_down_sync(0xffffu, 1.0, 1);
    });
    CHECK_CLEAN(simt::launch(1, 32, 0, [] {
        if (threadIdx.x < 16)
            (void)__shfl_down_sync(0xffffu, 1.0, 1, 16);
    }));
    expect(simt::kind::shuffle_width, 32, 0, [] { (void)__shfl_sync(~0u, 1, 0, 12); });
}

/* A product of the whole warp and its row sums. Zeros are sufficient. */
[[gnu::noinline]] static float multiply_once(float start) {
    const unsigned a[4] = {};
    float d[4] = {start, start, start, start};
    simt_mma_m16n8k16(d, a, 0, 0);
    return d[0] + d[3];
}

static void test_divergence() {
    float sums[64];
    expect(simt::kind::divergence, 64, 0, [&] { /* at different places */
                                                if (threadIdx.x % 32 < 16)
                                                    sums[threadIdx.x] = multiply_once(1);
                                                else
                                                    sums[threadIdx.x] = multiply_once(2) + 1;
    });
    expect(simt::kind::divergence, 32, 0, [&] { /* some as often, but elsewhere */
                                                sums[threadIdx.x] = 0;
                                                for (int i = 0; i < 3; i++)
                                                    if (i == 1 && threadIdx.x == 7)
                                                        sums[threadIdx.x] -= multiply_once(3);
                                                    else
                                                        sums[threadIdx.x] += multiply_once(4);
    });
    expect(simt::kind::divergence, 32, 0,
           [&] { sums[threadIdx.x] = threadIdx.x < 4 ? (float)simt_transposed(1) : 1 - (float)simt_transposed(2); });
    expect(simt::kind::mask, 32, 0, [&] { /* some not at all */
                                          if (threadIdx.x != 3)
                                              sums[threadIdx.x] = multiply_once(1);
    });
    CHECK_CLEAN(simt::launch(2, 64, 0, [&] { /* warps may go their own ways */
                                             sums[threadIdx.x] = 0;
                                             for (int i = 0; i < 3; i++)
                                                 if (threadIdx.x < 32)
                                                     sums[threadIdx.x] += multiply_once(1);
                                                 else
                                                     sums[threadIdx.x] += multiply_once(2) - multiply_once(4);
    }));
    for (int i = 0; i < 64; i++)
        CHECK(sums[i] == (i < 32 ? 6 : -12));
}

/* ---- the launch, and how errors read */

static void test_bad_launch() {
    const auto nothing = [] {};
    for (const dim3 &block : {dim3(1025), dim3(0), dim3(33, 32), dim3(1, 1, 65), dim3(65536, 65536)})
        CHECK(simt::launch(1, block, 0, nothing).has(simt::kind::bad_launch));
    CHECK(simt::launch(dim3(1, 65536), 1, 0, nothing).has(simt::kind::bad_launch));
    CHECK(simt::launch(1, 1, 232449, nothing).has(simt::kind::bad_launch));
    CHECK_CLEAN(simt::launch(1, 1024, 232448, nothing));
}

static void test_report() {
    const simt::result many = simt::launch(dim3(3, 2), 64, 256, [] {
        __syncthreads();
        if (blockIdx.y == 1 && threadIdx.x >= 50)
            shared_ints()[64] = 1;
    });
    const std::string first = many.first();
    CHECK(many.error_count == 3 * 14 && many.errors.size() == 16);
    CHECK_TEXT(first.find("block (0, 1, 0) thread 50: out of bounds: writes 4 bytes at byte 256 of 256") == 0, first);
    CHECK_TEXT(first.find("test_emulator_errors.cpp:") != std::string::npos, first);
    CHECK(simt::launch(1, 1, 0, [] {}).first().empty());
}

/* ---- bulk copies */

/* A pipeline as in kernels: thread 0 copies two rows of 64 bytes to shared memory one after the other, all threads read
 * each row, and thread 0 copies out what was made of the second row. */
struct steps {
    bool begun = true, waited = true, waited_again = true, parity = true, order = true, expected = true, fenced = true,
         read = true;
};
static void run_pipeline(const steps &s, const float *from, float *to) {
    const std::ptrdiff_t row = 0, out = 64, barrier = 128;
    const int thread = static_cast<int>(threadIdx.x);
    const smem<float> floats = cf_dynamic_shared<float>();
    if (thread == 0 && s.begun)
        simt::mbarrier_init(barrier, 1);
    __syncthreads();
    if (thread == 0) {
        if (s.expected)
            simt::mbarrier_expect_tx(barrier, 64);
        simt::tma_load(row, from, 64, barrier);
    }
    __syncthreads();
    if (s.waited)
        simt::mbarrier_wait(barrier, 0);
    const float first = floats[thread % 16];
    if (s.order)
        __syncthreads();
    if (thread == 0) {
        simt::mbarrier_expect_tx(barrier, 64);
        simt::tma_load(row, from + 16, 64, barrier);
    }
    if (s.waited_again || thread == 0)
        simt::mbarrier_wait(barrier, s.parity ? 1 : 0);
    const float second = floats[thread % 16];
    if (thread < 16)
        floats[16 + thread] = first + second;
    if (s.fenced)
        simt::tma_store_fence();
    __syncthreads();
    if (thread == 0) {
        simt::tma_store(to, out, 64);
        if (s.read)
            simt::tma_store_wait_read();
    }
}

static void expect_bulk(simt::kind what, const steps &s, simt::kind or_what) {
    alignas(16) float from[32], to[16] = {};
    for (int i = 0; i < 32; i++)
        from[i] = static_cast<float>(i);
    for (simt::order order : {simt::order::ascending, simt::order::descending, simt::order::random}) {
        simt::options wanted;
        wanted.order = order;
        const simt::result wrong = simt::launch(
            2, 64, 136, [&] { run_pipeline(s, from, to); }, wanted);
        CHECK_TEXT(wrong.has(what) || wrong.has(or_what), wrong.first());
        CHECK_CLEAN(simt::launch(
            2, 64, 136, [&] { run_pipeline(steps(), from, to); }, wanted));
        for (int i = 0; i < 16; i++)
            CHECK(to[i] == static_cast<float>(2 * i + 16));
    }
}

static void expect_bulk(simt::kind what, const steps &s) { expect_bulk(what, s, what); }

static void test_bulk_copies() {
    steps s;
    s.waited = false; /* nobody */
    expect_bulk(simt::kind::race, s);
    s = steps();
    s.waited_again = false; /* one thread alone: the others read what it alone knows to be there */
    expect_bulk(simt::kind::race, s);
    s = steps();
    s.parity = false; /* of the phase that is over */
    expect_bulk(simt::kind::race, s);
    s = steps();
    s.order = false; /* others still read, or come to the first wait when the second phase is over */
    expect_bulk(simt::kind::race, s, simt::kind::bulk);
    s = steps();
    s.begun = false;
    expect_bulk(simt::kind::bulk, s);
    s = steps();
    s.expected = false; /* so all wait for ever */
    expect_bulk(simt::kind::bulk, s);
    s = steps();
    s.fenced = false;
    expect_bulk(simt::kind::bulk, s);
    s = steps();
    s.read = false;
    expect_bulk(simt::kind::bulk, s);
    /* Copied bytes are read when the thread waits for them, and not before. */
    alignas(16) float to[4] = {};
    CHECK_CLEAN(simt::launch(1, 1, 16, [&] {
        const smem<float> floats = cf_dynamic_shared<float>();
        for (int i = 0; i < 4; i++)
            floats[i] = 1;
        simt::tma_store_fence();
        simt::tma_store(to, 0, 16);
        floats[1] = 2;
        simt::tma_store_wait_read();
    }));
    CHECK(to[0] == 1 && to[1] == 2);
}

int main() {
    return run_tests({{"out of bounds", test_out_of_bounds},
                      {"misaligned", test_misaligned},
                      {"misaligned in global memory", test_misaligned_global},
                      {"uninitialized", test_uninitialized},
                      {"races of reads", test_read_races},
                      {"races of writes", test_write_races},
                      {"mismatched barriers", test_barriers},
                      {"early return", test_early_return},
                      {"masks", test_masks},
                      {"arguments of shuffles", test_shuffle_arguments},
                      {"divergence", test_divergence},
                      {"bulk copies", test_bulk_copies},
                      {"bad launch", test_bad_launch},
                      {"report", test_report}});
}
