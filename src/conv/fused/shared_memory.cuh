/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms, products, sums and inverse transforms in one kernel, with spectra and sums in shared memory. A reader
 * begins here.
 *
 * Forward and backward data: a kernel loads planes, transforms them, multiplies their spectra with those of the
 * weights, sums over channels, transforms back and stores. Another kernel has transformed the weights before.
 *
 * Backward weights: a kernel loads planes of x and gy, transforms both, multiplies the spectra, and sums over the rows
 * of a slice. It stores the sums, which are spectra of gw. Other kernels add the slices and transform back.
 *
 * Layers correlate: y[m] = sum over k of x[m + k] w[k]. So Y = X conj(W). The gradients are GX = GY W and
 * GW = X conj(GY).
 *
 *     kernel            buffers of shared memory            loop                         used for
 *     fused_scatter     spectra of IN inputs, one output    over CHUNK outputs           forward of few inputs
 *     fused_gather      sums of CHUNK outputs, one input    over IN inputs               backward data of such layers
 *     fused_weights     spectra of IN inputs, one gy,       over rows, then CHUNK gy     backward weights
 *                       IN * CHUNK sums
 *
 * weight_sums.cuh has fused_register_weights, which keeps the sums of backward weights in registers.
 * register_resident.cuh has kernels that keep spectra or sums of few planes in registers.
 *
 *     shared memory     | table of X | table of Y | buffer 0: P planes | buffer 1 | ...
 *     weights           [group][output][input][bin]; sums of backward weights [slice][group][output][input][bin]
 *
 * A row is a sample, or one tile or shift of a sample. Forward and backward data: the P planes of a block differ in the
 * row and the group. With ROWS_FIRST, neighbouring planes are of neighbouring rows, else of neighbouring groups.
 * Backward weights: the P planes are of P groups, and blockIdx.y counts slices. blockIdx.x counts blocks of P planes,
 * blockIdx.z chunks of CHUNK outputs.
 *
 * The host prints a problem F (config.c) with:
 *
 *     X, Y              configs of what is read and written (fused_weights: of x and gy); both have one geometry
 *     IN, OUT           columns per group of X and of Y
 *     CHUNK             columns of Y that a block computes
 *     CONJUGATE         whether products take the conjugate of the weights
 *     W_IN, W_OUT       distance between the weights of neighbouring inputs, and of neighbouring outputs, in bins
 *     ROWS_FIRST        whether neighbouring planes of a block are of neighbouring rows
 *
 * With one input and one output, the PDL wait comes late: such a kernel loads x while the weights are still being
 * transformed.
 */
#pragma once

#include "conv/fused/products.cuh"

/* The memory of a column's channel. With phases, the table of planes knows the channel already. */
template <class K> CF_DEVICE const void *channel_of(const void *memory, int column, bool phases) {
    return static_cast<const typename K::Storage::bits *>(memory) + (phases ? 0 : column * K::CHANNEL_STRIDE);
}

/* The planes of a block: their rows and groups, the tables of both sides, the buffers, and pointers of each column. */
template <class F> struct FusedBlock {
    typedef Fused<F> U;
    smem<char> shared;
    const cf_fused_call &call;
    int first, live;
    CF_DEVICE FusedBlock(smem<char> memory, const cf_fused_call &c) : shared(memory), call(c) {
        first = int(blockIdx.x) * F::X::P;
        const int left = int(c.rows * c.groups) - first;
        live = left < F::X::P ? left : F::X::P;
    }
    CF_DEVICE void place(int p, int &row, int &group) const {
        const unsigned n = unsigned(first + p), m = unsigned(F::ROWS_FIRST ? call.rows : call.groups);
        row = int(F::ROWS_FIRST ? n % m : n / m);
        group = int(F::ROWS_FIRST ? n / m : n % m);
    }
    template <class K>
    CF_DEVICE PlaneTable<K> plane_table(smem<char> table, const cf_fused_side &side, int column, int columns) const {
        return fused_places<K>(table, side, live, column, columns, (long long)F::IN * F::OUT * U::BINS,
                               [&](int p, int &row, int &group) { place(p, row, group); });
    }
    /* Without phases, one table serves all columns, and in() or out() gives the pointer of each. */
    CF_DEVICE PlaneTable<typename F::X> x(int column) const {
        if (U::HAS_PHASES_X && column > 0)
            return plane_table<typename F::X>(shared, call.x, column, F::IN);
        return {shared, live};
    }
    CF_DEVICE PlaneTable<typename F::Y> y(int column) const {
        if (U::HAS_PHASES_Y && column > 0) {
            __syncthreads(); /* stores still read the table of the last column */
            return plane_table<typename F::Y>(shared + U::G::TABLE, call.y, column, F::OUT);
        }
        return {shared + U::G::TABLE, live};
    }
    CF_DEVICE void begin() const {
        fused_tables<typename F::X, typename F::Y>(shared, shared + U::G::TABLE, call, live, F::IN, F::OUT,
                                                   (long long)F::IN * F::OUT * U::BINS,
                                                   [&](int p, int &row, int &group) { place(p, row, group); });
        __syncthreads();
    }
    CF_DEVICE smem<cplx> buffer(int i) const { return smem_cast<cplx>(shared + 2 * U::G::TABLE) + i * U::BUFFER; }
    CF_DEVICE const void *in(int column) const {
        return channel_of<typename F::X>(call.x.memory, column, U::HAS_PHASES_X);
    }
    CF_DEVICE void *out(int column) const {
        return const_cast<void *>(channel_of<typename F::Y>(call.y.memory, column, U::HAS_PHASES_Y));
    }
    CF_DEVICE const void *bias(int column) const {
        typedef typename F::Y::Bias::bits bits;
        return call.bias ? static_cast<const bits *>(call.bias) + (U::HAS_PHASES_Y ? 0 : column) : nullptr;
    }
};

/* Few inputs, many outputs. The spectra of the inputs stay in shared memory. */
template <class F> CF_DEVICE void fused_scatter(const cf_fused_call &call) {
    typedef Fused<F> U;
    const FusedBlock<F> block(cf_dynamic_shared<char>(), call);
    block.begin();
    if constexpr (F::IN == 1 && F::OUT == 1) {
        smem<cplx> z = block.buffer(0);
        constexpr bool ALL_STEPS = U::AXIS == 2 && !U::MIRRORS;
        fused_load<typename F::X, ALL_STEPS>(z, block.x(0), block.in(0));
        cf_pdl_wait(); /* only the weights may be late: the signal was complete before their transform began */
        multiply_in_place<F>(z, block.x(0), call.weights);
        fused_store<typename F::Y, ALL_STEPS>(z, block.y(0), block.out(0), block.bias(0), call);
    } else {
#pragma unroll 1
        for (int c = 0; c < F::IN; ++c)
            fused_load<typename F::X, true>(block.buffer(c), block.x(c), block.in(c));
#pragma unroll 1
        for (int i = 0; i < F::CHUNK; ++i) {
            const int o = int(blockIdx.z) * F::CHUNK + i;
            sum_inputs<F>(block.buffer(F::IN), block.buffer(0), block.x(0), call.weights + o * F::W_OUT);
            fused_store<typename F::Y, U::AXIS == 2>(block.buffer(F::IN), block.y(o), block.out(o), block.bias(o),
                                                     call);
            __syncthreads();
        }
    }
}

/* Many inputs, few outputs. The sums of the outputs stay in shared memory. */
template <class F> CF_DEVICE void fused_gather(const cf_fused_call &call) {
    typedef Fused<F> U;
    const FusedBlock<F> block(cf_dynamic_shared<char>(), call);
    block.begin();
    smem<cplx> z = block.buffer(F::CHUNK);
    const int first = int(blockIdx.z) * F::CHUNK;
    const cplx *const weights = call.weights + first * F::W_OUT;
#pragma unroll 1
    for (int c = 0; c < F::IN; ++c) {
        fused_load<typename F::X, U::AXIS == 2>(z, block.x(c), block.in(c));
        if (c == 0)
            add_input<F, true>(block.buffer(0), z, block.x(c), weights);
        else
            add_input<F, false>(block.buffer(0), z, block.x(c), weights + c * F::W_IN);
    }
#pragma unroll 1
    for (int i = 0; i < F::CHUNK; ++i)
        fused_store<typename F::Y, true>(block.buffer(i), block.y(first + i), block.out(first + i),
                                         block.bias(first + i), call);
}

/* A block has the P groups from blockIdx.x * P on, and the rows of slice blockIdx.y. */
template <class F> CF_DEVICE void fused_weights(const cf_fused_call &call) {
    typedef Fused<F> U;
    const long long first = (long long)blockIdx.x * F::X::P, left = call.groups - first;
    const int live = left < F::X::P ? int(left) : F::X::P;
    const long long begin = call.rows * blockIdx.y / call.slices, end = call.rows * (blockIdx.y + 1) / call.slices;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<cplx> buffers = smem_cast<cplx>(shared + 2 * U::G::TABLE), z = buffers + F::IN * U::BUFFER,
               sums = z + U::BUFFER;
    PlaneTable<typename F::Y> gy = {shared + U::G::TABLE, live};
    const int first_out = int(blockIdx.z) * F::CHUNK;
#pragma unroll 1
    for (long long now = begin; now < end; ++now) {
        const auto place = [&](int p, int &row, int &group) {
            row = int(now);
            group = int(first) + p;
        };
#pragma unroll 1
        for (int c = 0; c < F::IN; ++c) {
            const int column = U::HAS_PHASES_X ? c : 0;
            const PlaneTable<typename F::X> x =
                fused_places<typename F::X>(shared, call.x, live, column, F::IN, 0, place);
            fused_load<typename F::X, true>(buffers + c * U::BUFFER, x,
                                            channel_of<typename F::X>(call.x.memory, c, U::HAS_PHASES_X));
        }
#pragma unroll 1
        for (int o = 0; o < F::CHUNK; ++o) {
            fused_places<typename F::Y>(shared + U::G::TABLE, call.y, live, 0, F::OUT,
                                        (long long)F::IN * F::OUT * U::BINS, place);
            fused_load<typename F::Y, U::AXIS == 2>(z, gy,
                                                    channel_of<typename F::Y>(call.y.memory, first_out + o, false));
            if (now == begin)
                add_row<F, true>(sums + o * F::IN * U::BUFFER, z, buffers);
            else
                add_row<F, false>(sums + o * F::IN * U::BUFFER, z, buffers);
        }
    }
#pragma unroll 1
    for (int i = 0; i < F::IN * F::CHUNK; ++i) {
        cf_shared_fft_call out = {};
        out.out = call.weights + (blockIdx.y * call.groups * (F::IN * F::OUT) + first_out * F::IN + i) * U::BINS;
        store_bins<typename F::Y, U::G::SWEEP>(sums + i * U::BUFFER, gy, out);
    }
}
