/* SPDX-License-Identifier: Apache-2.0 */
/* The substitutes of CUDA for device headers: keywords, built-in variables and types, barriers, shuffles, shared
 * memory. Shared memory is accessed only through smem<T>, so that every access is checked. s[i] is a reference that
 * converts to T and can be assigned, but has no members. An access has 4, 8 or 16 bytes. A pointer to another type can
 * only be moved and cast. */
#ifndef SIMT_SIMT_H
#define SIMT_SIMT_H

#include "launch.h"
#include "numeric.h"

#define __global__ inline
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __constant__ [[maybe_unused]] static

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

/* ---- built-in vector types */

#define SIMT_VECTORS(scalar, name)                                              \
    struct alignas(2 * sizeof(scalar)) name##2 {                                \
        scalar x, y;                                                            \
    };                                                                          \
    inline name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }        \
    struct alignas(4 * sizeof(scalar) < 16 ? 4 * sizeof(scalar) : 16) name##4 { \
        scalar x, y, z, w;                                                      \
    };                                                                          \
    inline name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }

SIMT_VECTORS(float, float)
SIMT_VECTORS(double, double)
SIMT_VECTORS(int, int)
SIMT_VECTORS(unsigned, uint)
SIMT_VECTORS(unsigned short, ushort)
#undef SIMT_VECTORS

/* ---- what simt.h asks of the emulator */

namespace simt {

enum class operation {
    aligned,
    sync_warp,
    shuffle_index,
    shuffle_xor,
    shuffle_up,
    shuffle_down
};

void sync_block(site where);
void sync_warp(unsigned mask, site where);
void whole_warp(); /* an instruction that all lanes of a warp must execute together, at one place of the kernel */
std::uint64_t shuffle(operation what, unsigned mask, std::uint64_t bits, unsigned bytes, int argument, int width,
                      site where);
void check_global(const void *p, std::size_t alignment);
void load_shared(std::ptrdiff_t offset, unsigned bytes, unsigned alignment, void *value);
void store_shared(std::ptrdiff_t offset, unsigned bytes, unsigned alignment, const void *value);

template <class T> inline T shuffle_value(operation what, unsigned mask, T value, int argument, int width, site where) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int> ||
                      std::is_same_v<T, unsigned>,
                  "shuffles carry float, double, int and unsigned");
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = shuffle(what, mask, bits, sizeof value, argument, width, where);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

} // namespace simt

/* ---- global memory: the cache hints mean nothing here */

template <class T> inline T simt_load(const void *p) {
    T value;
    simt::check_global(p, alignof(T));
    std::memcpy(&value, p, sizeof value);
    return value;
}

template <class T> inline void simt_store(void *p, T value) {
    simt::check_global(p, alignof(T));
    std::memcpy(p, &value, sizeof value);
}

template <class T> inline T __ldg(const T *p) { return simt_load<T>(p); }
template <class T> inline T __ldca(const T *p) { return simt_load<T>(p); }
template <class T> inline T __ldcg(const T *p) { return simt_load<T>(p); }
template <class T> inline T __ldcs(const T *p) { return simt_load<T>(p); }
template <class T> inline void __stcg(T *p, std::common_type_t<T> value) { simt_store<T>(p, value); }
template <class T> inline void __stcs(T *p, std::common_type_t<T> value) { simt_store<T>(p, value); }

/* ---- barriers and shuffles */

#define SIMT_CALLER const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(SIMT_CALLER) { simt::sync_block({file, line}); }

inline void __syncwarp(unsigned mask = ~0u, SIMT_CALLER) { simt::sync_warp(mask, {file, line}); }

template <class T> inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32, SIMT_CALLER) {
    return simt::shuffle_value(simt::operation::shuffle_index, mask, value, lane, width, {file, line});
}

template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, SIMT_CALLER) {
    return simt::shuffle_value(simt::operation::shuffle_xor, mask, value, lane_mask, width, {file, line});
}

template <class T> inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_CALLER) {
    return simt::shuffle_value(simt::operation::shuffle_up, mask, value, static_cast<int>(delta), width, {file, line});
}

template <class T> inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_CALLER) {
    return simt::shuffle_value(simt::operation::shuffle_down, mask, value, static_cast<int>(delta), width,
                               {file, line});
}

#undef SIMT_CALLER

/* ---- shared memory */

template <class T> class smem {
  public:
    class reference {
      public:
        explicit reference(std::ptrdiff_t offset_) : offset(offset_) {}
        reference(const reference &) = default;

        /* Only of a temporary: `auto v = s[i]` would read at every use of v. */
        operator std::remove_const_t<T>() const && {
            check_type();
            std::remove_const_t<T> value;
            simt::load_shared(offset, sizeof(T), alignof(T), &value);
            return value;
        }

        void operator=(const std::remove_const_t<T> &value) const && {
            check_type();
            static_assert(!std::is_const_v<T>, "store through smem<const T>");
            simt::store_shared(offset, sizeof(T), alignof(T), &value);
        }

        void operator=(const reference &other) const && {
            static_cast<const reference &&>(*this) = std::remove_const_t<T>(reference(other));
        }

      private:
        static constexpr void check_type() {
            static_assert(std::is_trivially_copyable_v<T>, "shared memory holds trivially copyable types");
            static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "shared accesses have 4, 8 or 16 bytes");
            static_assert(alignof(T) >= 4, "shared memory is checked by words of 4 bytes");
        }

        std::ptrdiff_t offset;
    };

    smem() = default;
    explicit smem(std::ptrdiff_t byte_offset) : offset(byte_offset) {}
    operator smem<const T>() const { return smem<const T>(offset); }

    template <class Index> reference operator[](Index i) const { return reference((*this + i).offset); }
    reference operator*() const { return reference(offset); }

    template <class Index> smem operator+(Index i) const {
        static_assert(std::is_integral_v<Index>, "smem is moved by whole elements");
        return smem(offset + static_cast<std::ptrdiff_t>(i) * static_cast<std::ptrdiff_t>(sizeof(T)));
    }
    template <class Index> smem operator-(Index i) const { return *this + -static_cast<std::ptrdiff_t>(i); }
    template <class Index> smem &operator+=(Index i) { return *this = *this + i; }

    template <class U, class V> friend smem<U> smem_cast(smem<V> pointer);
    template <class V> friend std::ptrdiff_t smem_offset(smem<V> pointer);

  private:
    std::ptrdiff_t offset = PTRDIFF_MIN / 2; /* bytes from the start of the block's shared memory */
};

/** The same address as a pointer to U. */
template <class U, class V> inline smem<U> smem_cast(smem<V> pointer) { return smem<U>(pointer.offset); }

/** Bytes from the start of the block's shared memory. */
template <class V> inline std::ptrdiff_t smem_offset(smem<V> pointer) { return pointer.offset; }

/** The start of the block's dynamic shared memory. */
template <class T> inline smem<T> cf_dynamic_shared() { return smem<T>(0); }

/* ---- bulk copies, and the barriers that count their bytes (bulk_copy.cpp) */

namespace simt {

void mbarrier_init(std::ptrdiff_t barrier, int arrivals);
void mbarrier_expect_tx(std::ptrdiff_t barrier, int bytes);
void tma_load(std::ptrdiff_t to, const void *from, int bytes, std::ptrdiff_t barrier);
void mbarrier_wait(std::ptrdiff_t barrier, int parity);
void tma_store(void *to, std::ptrdiff_t from, int bytes);
void tma_store_fence();
void tma_store_wait_read();

} // namespace simt

#include "mma.h"

#endif
