/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk copies of compute capability 9.0. Bytes arrive in shared memory when a thread waits for the barrier phase that
 * counts them. Stored bytes are read when the thread that began the copy waits for it. Before a copy ends, its
 * destination holds the fill, and an access to it is reported. A thread that reads after the wait of another thread,
 * without a barrier between, is reported too. */
#include "state.h"

namespace simt {

static bool has_address(const void *p, int bytes) {
    const bool good = bytes > 0 && bytes % 16 == 0 && reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
    if (!good)
        report_error(kind::misaligned, now.current,
                     "copies %d bytes at the global address %p; both must be multiples "
                     "of 16",
                     bytes, p);
    return good;
}

static bulk_barrier *barrier_at(std::ptrdiff_t offset) {
    for (bulk_barrier &b : now.bulk_barriers)
        if (b.offset == offset)
            return &b;
    report_error(kind::bulk, now.current, "uses a barrier at byte %td, where none has been initialized", offset);
    return nullptr;
}

/* Other threads must be behind a barrier of the block, even if they only use the address. */
static void use(const bulk_barrier &b) {
    unsigned char object[8];
    load_shared(b.offset, 8, 8, object);
}

static bool is_over(const bulk_barrier &b) { return b.missing == 0 && b.asked == b.expected; }

/* The phase ends: its bytes have arrived, and waiting threads go on. */
static void complete(bulk_barrier *b) {
    const unsigned number = static_cast<unsigned>(b - now.bulk_barriers.data());
    for (const bulk_copy &c : b->coming)
        end_bulk_write(c.shared, c.from, static_cast<unsigned>(c.bytes), number, b->phases);
    b->coming.clear();
    b->phases++;
    b->missing = b->arrivals;
    b->expected = b->asked = 0;
    for (unsigned t : b->waiting)
        wake(&now.warp_of[t / 32], 1u << t % 32);
    b->waiting.clear();
}

static void complete_if_awaited(bulk_barrier *b) {
    if (is_over(*b) && !b->waiting.empty())
        complete(b);
}

void mbarrier_init(std::ptrdiff_t barrier, int arrivals) {
    const unsigned char object[8] = {};
    store_shared(barrier, 8, 8, object);
    now.bulk_barriers.push_back(
        {barrier, arrivals, arrivals, 0, 0, 0, {}, {}, std::vector<std::uint32_t>(now.threads)});
}

void mbarrier_expect_tx(std::ptrdiff_t barrier, int bytes) {
    bulk_barrier *b = barrier_at(barrier);
    if (!b)
        return;
    use(*b);
    if (b->missing == 0) {
        report_error(kind::bulk, now.current,
                     "arrives at the barrier at byte %td, where all have arrived, and nobody "
                     "has waited",
                     barrier);
        return;
    }
    b->missing--;
    b->expected += bytes;
    complete_if_awaited(b);
}

void tma_load(std::ptrdiff_t to, const void *from, int bytes, std::ptrdiff_t barrier) {
    bulk_barrier *b = barrier_at(barrier);
    if (!b || !has_address(from, bytes) || !begin_bulk_write(to, static_cast<unsigned>(bytes)))
        return;
    b->coming.push_back({to, nullptr, from, static_cast<std::size_t>(bytes)});
    b->asked += bytes;
    complete_if_awaited(b);
}

void mbarrier_wait(std::ptrdiff_t barrier, int parity) {
    bulk_barrier *b = barrier_at(barrier);
    if (!b)
        return;
    use(*b);
    const std::size_t number = static_cast<std::size_t>(b - now.bulk_barriers.data());
    /* The phase before this one has the other parity. */
    if (static_cast<int>(b->phases & 1) == parity && is_over(*b))
        complete(b);
    /* The thread knows of no later phase, even if a later one has ended before it runs. */
    std::uint32_t known = b->phases;
    if (static_cast<int>(b->phases & 1) == parity) {
        known++;
        b->waiting.push_back(now.current);
        suspend();
        give_way();
    }
    now.bulk_barriers[number].seen[now.current] = known;
}

void tma_store(void *to, std::ptrdiff_t from, int bytes) {
    if (!has_address(to, bytes))
        return;
    std::vector<unsigned char> value(static_cast<std::size_t>(bytes));
    for (int i = 0; i < bytes; i += 16)
        load_shared(from + i, 16, 16, &value[static_cast<std::size_t>(i)]);
    if (!check_fence(from, static_cast<unsigned>(bytes)))
        report_error(kind::bulk, now.current,
                     "copies %d bytes from byte %td, which are written without a fence behind "
                     "that",
                     bytes, from);
    now.leaving[now.current].push_back({from, to, nullptr, static_cast<std::size_t>(bytes)});
}

void tma_store_fence() { now.fenced[now.current] = now.epoch; }

void tma_store_wait_read() {
    for (const bulk_copy &c : now.leaving[now.current])
        for (std::size_t i = 0; i < c.bytes; i += 16)
            load_shared(c.shared + static_cast<std::ptrdiff_t>(i), 16, 16, static_cast<unsigned char *>(c.to) + i);
    now.leaving[now.current].clear();
}

/* ---- blocks */

void begin_bulk() {
    now.bulk_barriers.clear();
    for (unsigned t = 0; t < now.threads; t++) {
        now.leaving[t].clear();
        now.fenced[t] = 0;
    }
}

void end_bulk(bool finished) {
    for (const bulk_barrier &b : now.bulk_barriers)
        for (const bulk_copy &c : b.coming)
            forget_bulk_write(c.shared, static_cast<unsigned>(c.bytes));
    for (const bulk_barrier &b : now.bulk_barriers)
        if (finished && !b.coming.empty())
            report_error(kind::bulk, 0, "the block ends before what the barrier at byte %td counts is there", b.offset);
    for (unsigned t = 0; t < now.threads; t++)
        if (finished && !now.leaving[t].empty())
            report_error(kind::bulk, t, "ends before what it copies has been read");
}

unsigned report_stuck_bulk() {
    unsigned count = 0;
    for (const bulk_barrier &b : now.bulk_barriers) {
        count += static_cast<unsigned>(b.waiting.size());
        if (!b.waiting.empty())
            report_error(kind::bulk, b.waiting[0],
                         "waits at the barrier at byte %td, where %d threads do not arrive and "
                         "%lld of %lld bytes do not come",
                         b.offset, b.missing, b.expected - b.asked, b.expected);
    }
    return count;
}

} // namespace simt
