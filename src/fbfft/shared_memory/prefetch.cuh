/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inverse from bins in frequency-major order, for planes of which so few fit a multiprocessor that loads,
 * arithmetic and stores hardly overlap. A block transforms several groups of K::P planes. While it does, bins of the
 * next columns are copied to shared memory.
 *
 *     shared memory   | table | planes | column N2 / 2: [row][plane] | buffer of warp 0 | buffer of warp 1 | ...
 *     buffer          [row][lane], the first PREFETCHED rows of bins of the columns that the warp transforms next
 *
 * A lane transforms one column of one plane. As soon as a warp has its bins in registers, it requests those of its
 * next columns. So warps wait for one another only where planes pass from columns to rows and back.
 */
#pragma once

#include "fbfft/shared_memory/steps.cuh"

template <class K> struct Prefetch {
    typedef PlaneGeometry<K> G;
    typedef ColumnTask<K, 1, 1> Task;
    typedef typename K::Bins::number number;
    /* Neighbouring planes that a lane copies at once: the number of columns is a multiple of it. */
    static constexpr int EACH = 16 / int(sizeof(number)), ACROSS = K::P / EACH;
    static constexpr int ROUNDS = Task::COUNT / K::T; /* columns of a lane */
    static constexpr int AFTER = G::TABLE + K::P * G::PLANE * int(sizeof(cplx)),
                         BUFFERS = AFTER + G::N1 * K::P * int(sizeof(number)),
                         BUFFER = K::PREFETCHED * 32; /* numbers */
    static_assert(K::PREFETCHED == 0 ||
                      (K::DIRECT && G::NYQUIST_PACKED && G::O1::STEPS == 1 && G::N0 == 1 && Task::COUNT % K::T == 0 &&
                       32 % K::P == 0 && K::P % EACH == 0 && K::PREFETCHED % EACH == 0 && K::PREFETCHED <= G::N1),
                  "the planner's choice");
    static CF_DEVICE smem<number> nyquist(smem<char> shared) { return smem_cast<number>(shared + AFTER); }
    static CF_DEVICE smem<number> buffer(smem<char> shared) {
        return smem_cast<number>(shared + BUFFERS) + int(threadIdx.x) / 32 * BUFFER;
    }
};

/* Where bin 0 is of the first plane that this lane copies, in group `group` of planes. Planes after the last ones
 * repeat these. */
template <class K> CF_DEVICE long long bins_to_copy(const cf_shared_fft_call &call, long long group) {
    typedef Prefetch<K> F;
    const long long wanted = group * K::P + int(threadIdx.x) % F::ACROSS * F::EACH;
    const long long plane = wanted < call.planes ? wanted : call.planes - F::EACH;
    return spectrum_of(call, call.row_first + plane / call.columns * call.row_step, plane % call.columns);
}
/* Where bin 0 is of the plane that this lane transforms. copied: bins_to_copy() of this lane. */
template <class K> CF_DEVICE long long bins_of_lane(long long copied) {
    const int plane = int(threadIdx.x) % K::P, lane = plane / Prefetch<K>::EACH;
    const unsigned low = __shfl_sync(0xffffffffu, unsigned(copied), lane),
                   high = __shfl_sync(0xffffffffu, unsigned(copied >> 32), lane);
    return (long long)((unsigned long long)high << 32 | low) + plane % Prefetch<K>::EACH;
}

/* Request the bins of the columns that this warp transforms in a round. An instruction copies EACH rows of the warp's
 * columns. */
template <class K>
CF_DEVICE void request_bins(smem<char> shared, const cf_shared_fft_call &call, long long copied, int round) {
    typedef Prefetch<K> F;
    typedef PlaneGeometry<K> G;
    typedef typename F::number number;
    constexpr int OF_A_ROW = 32 / F::EACH; /* lanes */
    const int lane = int(threadIdx.x) % 32, first = (int(threadIdx.x) - lane + round * K::T) / K::P;
    const number *const in = static_cast<const number *>(call.in) + copied;
    const number *from = in + bin_of<K>(0, lane / OF_A_ROW, first + lane % OF_A_ROW / F::ACROSS, call.bin_unit);
    const long long gap = bin_of<K>(0, 1, 0, call.bin_unit);
    smem<uint4> to = smem_cast<uint4>(F::buffer(shared)) + lane;
#pragma unroll
    for (int r = 0; r < K::PREFETCHED; r += F::EACH)
        copy_line_async(to + r / F::EACH * 32, reinterpret_cast<const uint4 *>(from + r * gap));
    if (first == 0) {
        from = in + bin_of<K>(0, 0, G::N2 / 2, call.bin_unit);
        to = smem_cast<uint4>(F::nyquist(shared)) + lane % F::ACROSS;
#pragma unroll 4
        for (int r = lane / F::ACROSS; r < G::N1; r += 32 / F::ACROSS)
            copy_line_async(to + r * F::ACROSS, reinterpret_cast<const uint4 *>(from + r * gap));
    }
}

/* Read the bins of this lane's column in a round. bins: bins_of_lane(). */
template <class K>
CF_DEVICE void get_bins(cplx *v, smem<char> shared, const cf_shared_fft_call &call, long long bins, int k) {
    typedef Prefetch<K> F;
    typedef PlaneGeometry<K> G;
    typedef typename F::number number;
    const int lane = int(threadIdx.x) % 32;
    const number *const from = static_cast<const number *>(call.in) + bins + bin_of<K>(0, 0, k, call.bin_unit);
    const long long gap = bin_of<K>(0, 1, 0, call.bin_unit);
    unroll<K::PREFETCHED, G::N1>([&](auto r) { v[r] = K::Bins::load(from + r * gap); });
    wait_async();
    __syncwarp();
    const smem<number> buffer = F::buffer(shared);
    unroll<0, K::PREFETCHED>([&](auto r) { v[r] = K::Bins::unpack(buffer[r * 32 + lane]); });
    if (k == 0) { /* column N2 / 2 is packed into the imaginary part: load_bins() */
        const smem<number> nyquist = F::nyquist(shared);
        unroll<0, G::N1>([&](auto r) {
            const cplx b = K::Bins::unpack(nyquist[r * K::P + lane]);
            if constexpr (decltype(r)::value == 0 || 2 * decltype(r)::value == G::N1)
                v[r] = {v[r].x, b.x};
            else
                v[r] = v[r] + times_i(b);
        });
    }
    __syncwarp();
}

template <class K> CF_DEVICE void prefetching_inverse(const cf_shared_fft_call &call) {
    typedef Prefetch<K> F;
    typedef typename F::Task Task;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<cplx> z = smem_cast<cplx>(shared + PlaneGeometry<K>::TABLE);
    const long long groups = (call.planes + K::P - 1) / K::P;
    long long copied = bins_to_copy<K>(call, (long long)blockIdx.x);
    request_bins<K>(shared, call, copied, 0);
#pragma unroll 1
    for (long long group = blockIdx.x; group < groups; group += gridDim.x) {
        const bool more = group + gridDim.x < groups;
        const long long bins = bins_of_lane<K>(copied), next = bins_to_copy<K>(call, more ? group + gridDim.x : group);
#pragma unroll 1
        for (int round = 0; round < F::ROUNDS; ++round) {
            const Task task(z, int(threadIdx.x) + round * K::T);
            cplx v[Task::POINTS];
            get_bins<K>(v, shared, call, bins, task.k);
            if (round + 1 < F::ROUNDS)
                request_bins<K>(shared, call, copied, round + 1);
            else if (more)
                request_bins<K>(shared, call, next, 0);
            task.template transform<true>(v);
            if (round == 0) /* all rows of the previous planes are stored */
                __syncthreads();
            task.put_inverse(v);
        }
        const PlaneTable<K> plane_table = find_planes_of<K, true>(shared, call, group);
        axis_steps<K, 2, true>(z, plane_table, call);
        if constexpr (K::STAGED)
            store_staged<K, K::VECTOR>(z, plane_table, call);
        else
            store_signal<K>(z, plane_table, call);
        copied = next;
    }
}
