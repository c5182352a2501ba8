/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix instructions of a whole warp, made of shuffles. In PTX all lanes must execute the same one (.aligned).
 * Included by simt.h. */
#ifndef SIMT_MATRIX_H
#define SIMT_MATRIX_H

/* ldmatrix.x4: lane l names the 16 bytes of row l % 8 of matrix l / 8, and receives word l % 4 of row l / 4 of each. */
inline void simt_ldmatrix_x4(unsigned r[4], smem<uint4> from, int unit) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    simt::whole_warp();
    for (int i = 0; i < 4; ++i) {
        const int row = __shfl_sync(~0u, unit, 8 * i + lane / 4);
        r[i] = smem_cast<unsigned>(from + row)[lane % 4];
    }
}

/* movmatrix.trans: lane l holds word l % 4 of row l / 4 of an 8 x 8 matrix of 16-bit numbers. */
inline unsigned simt_transposed(unsigned word) {
    const int lane = static_cast<int>(threadIdx.x % 32), column = lane / 4, row = lane % 4 * 2;
    simt::whole_warp();
    const unsigned low = __shfl_sync(~0u, word, 4 * row + column / 2),
                   high = __shfl_sync(~0u, word, 4 * (row + 1) + column / 2);
    const int shift = column % 2 * 16;
    return (low >> shift & 0xffffu) | (high >> shift & 0xffffu) << 16;
}

/* Round toward zero, as tensor cores round a sum. */
inline float simt_cut(double value) {
    const float nearest = static_cast<float>(value);
    return std::fabs(static_cast<double>(nearest)) > std::fabs(value) ? std::nextafter(nearest, 0.0f) : nearest;
}

/* The sum of the products of two pairs of 16-bit numbers. Each product is exact in double. */
inline double simt_dot(unsigned a, unsigned b, float (*number)(unsigned short)) {
    const auto half = [number](unsigned word, int shift) {
        return static_cast<double>(number(static_cast<unsigned short>(word >> shift)));
    };
    return half(a, 0) * half(b, 0) + half(a, 16) * half(b, 16);
}

/* The operands of each warp's lanes. Lanes that meet for a product are ordered by nothing else but a barrier. */
struct simt_operands {
    unsigned a[4], b[2];
};
inline simt_operands simt_brought[32][32];

/* A product of 16 rows and 8 columns, with sums in FP32. dot: the products of the numbers of two words. */
template <class Dot> void simt_multiply(float d[4], const unsigned a[4], unsigned b0, unsigned b1, const Dot &dot) {
    const int lane = static_cast<int>(threadIdx.x % 32), row = lane / 4, column = lane % 4 * 2;
    simt_operands *const all = simt_brought[threadIdx.x / 32];
    double sum[4] = {d[0], d[1], d[2], d[3]};
    all[lane] = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
    simt::whole_warp();
    for (int t = 0; t < 4; ++t)
        for (int word = 0; word < 2; ++word)
            for (int i = 0; i < 4; ++i)
                sum[i] += dot(all[4 * row + t].a[2 * word + i / 2], all[4 * (column + i % 2) + t].b[word]);
    __shfl_sync(~0u, 0, 0); /* before others are brought */
    for (int i = 0; i < 4; ++i)
        d[i] = simt_cut(sum[i]);
}
/* mma.m16n8k8 of TF32 numbers. The last 13 bits of each are ignored. */
inline void simt_multiply_tf32(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    const auto number = [](unsigned word) { return static_cast<double>(__uint_as_float(word & 0xffffe000u)); };
    simt_multiply(d, a, b0, b1, [number](unsigned x, unsigned y) { return number(x) * number(y); });
}
/* mma.m16n8k16 */
inline void simt_mma_m16n8k16(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    simt_multiply(d, a, b0, b1, [](unsigned x, unsigned y) { return simt_dot(x, y, cf_fp16_to_float); });
}
inline void simt_multiply_bf16(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    simt_multiply(d, a, b0, b1, [](unsigned x, unsigned y) { return simt_dot(x, y, cf_bf16_to_float); });
}

#endif
