/* SPDX-License-Identifier: Apache-2.0 */
/* Run a device kernel on the host, block by block, and report what a GPU would leave undefined.
 *
 *     simt::result r = simt::launch(grid, block, shared_bytes, [&] { kernel<Config>(x, y); });
 *     CHECK(r.ok()); // or r.first() says what is wrong
 *
 * Every thread of a block is a fiber of its own. A fiber runs until it waits for others; the order in which fibers run
 * between two barriers is an option. One launch at a time in a process. */
#ifndef SIMT_LAUNCH_H
#define SIMT_LAUNCH_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace simt {

enum class order {
    ascending,
    descending,
    random
};

enum class kind {
    bad_launch,     /* more threads, blocks or shared memory than the device has */
    out_of_bounds,  /* shared access outside the block's shared memory */
    misaligned,     /* access to shared memory, or by __ldg and its like, at an address that its type does not allow */
    uninitialized,  /* read of shared memory that this block has not written */
    race,           /* two accesses to shared memory, at least one a write, that no barrier orders */
    barrier,        /* some threads wait at __syncthreads, others at another barrier or at another __syncthreads */
    early_return,   /* some threads have returned before a __syncthreads that others reach */
    mask,           /* __syncwarp or shuffle whose mask misses its caller, or names lanes that do not arrive */
    shuffle_source, /* shuffle from a lane that its mask does not name */
    shuffle_width,  /* shuffle over a width that is no power of two up to 32 */
    divergence,     /* lanes of a warp at different matrix instructions, or at different calls of their function */
    bulk,           /* a bulk copy, or a barrier of such copies, that is not used as it must be */
};

struct options {
    enum order order = order::ascending; /* random: another order after every __syncthreads */
    std::uint64_t seed = 1;              /* of the random order */
    unsigned char fill = 0xff;           /* every byte of shared memory before a block starts */
    bool banks = false;                  /* count bank conflicts (slower) */
    std::size_t shared_limit = 232448;   /* bytes of shared memory that a block may have */
};

struct error {
    enum kind kind;
    uint3 block;
    unsigned thread; /* x + blockDim.x * (y + blockDim.y * z) */
    std::string text;
};

/* The i-th accesses of the lanes of a warp after a common barrier or shuffle count as one request. That is exact if the
 * lanes do not diverge. At best a request takes one wavefront for 4-byte accesses, two for 8-byte and four for 16-byte
 * accesses. Each further word in the same bank takes another wavefront. */
struct bank_counts {
    std::uint64_t requests = 0, wavefronts = 0, ideal = 0;
    unsigned worst = 0; /* most wavefronts in place of one */
    double ratio() const { return ideal ? static_cast<double>(wavefronts) / static_cast<double>(ideal) : 1; }
};

struct site { /* of a barrier or shuffle */
    const char *file;
    int line;
};

/* The counts of accesses after one barrier or shuffle, by kind of access. */
struct bank_row {
    site after; /* file is null at the start of the kernel */
    unsigned bytes;
    bool write;
    bank_counts counts;
};

struct result {
    std::vector<error> errors;       /* the first ones; a launch stops at a barrier that cannot complete */
    std::uint64_t error_count = 0;   /* all of them */
    bank_counts banks;               /* if asked for */
    std::vector<bank_row> bank_rows; /* the same in parts */

    bool ok() const { return error_count == 0; }
    bool has(kind what) const;
    std::string first() const;     /* the first error as a line; empty if there is none */
    std::string conflicts() const; /* a line for each part that has bank conflicts */
};

result run(dim3 grid, dim3 block, std::size_t shared_bytes, void (*body)(void *), void *argument,
           const options &wanted);

/** Call `body` once for every thread of every block, with threadIdx and the other variables set. */
template <class Body>
result launch(dim3 grid, dim3 block, std::size_t shared_bytes, Body &&body, const options &wanted = options()) {
    using callable = std::remove_reference_t<Body>;
    const auto call = [](void *argument) { (*static_cast<callable *>(argument))(); };
    return run(grid, block, shared_bytes, call, const_cast<void *>(static_cast<const void *>(&body)), wanted);
}

} // namespace simt

#endif
