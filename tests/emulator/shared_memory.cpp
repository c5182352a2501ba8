/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory. Every word remembers its writer and its readers since then. So accesses that no barrier orders are
 * found, in whatever order the threads ran. */
#include "state.h"

namespace simt {

/* Whether the access of `thread` at `time`, in the current epoch, is ordered before the current thread's next
 * access. */
static bool is_before(unsigned thread, std::uint32_t time) {
    if (thread == now.current)
        return true;
    return thread / 32 == now.current / 32 && now.own->clock[now.lane][thread % 32] > time;
}

static bool has_racing_write(const word &w) {
    if (w.write_epoch == on_its_way)
        return true;
    if (w.write_epoch != now.epoch)
        return false;
    if (w.writer >= bulk_writer)
        return now.bulk_barriers[w.writer - bulk_writer].seen[now.current] <= w.write_clock;
    return !is_before(w.writer, w.write_clock);
}

static std::string writer_of(const word &w) {
    if (w.write_epoch == on_its_way)
        return "a bulk copy that nobody has waited for";
    if (w.writer >= bulk_writer)
        return "a bulk copy that this thread has not waited for";
    return "thread " + std::to_string(w.writer);
}

/* A thread that has read the word and is not ordered before the current one, or -1. */
static int racing_reader(const word &w, std::size_t index) {
    if (w.read_epoch != now.epoch)
        return -1;
    if (w.read_warp == several_warps)
        return static_cast<int>(now.threads);
    for (std::uint32_t lanes = w.read_lanes; lanes; lanes &= lanes - 1) {
        const unsigned lane = static_cast<unsigned>(__builtin_ctz(lanes)), thread = w.read_warp * 32u + lane;
        if (!is_before(thread, now.read_clock[index][lane]))
            return static_cast<int>(thread);
    }
    return -1;
}

static void note_reader(word *w, std::size_t index) {
    const unsigned own_warp = now.current / 32;
    if (w->read_epoch != now.epoch) {
        w->read_epoch = now.epoch;
        w->read_warp = static_cast<std::uint16_t>(own_warp);
        w->read_lanes = 0;
    }
    if (w->read_warp != own_warp) {
        w->read_warp = several_warps; /* at least one of them races with any write */
        return;
    }
    w->read_lanes |= 1u << now.lane;
    now.read_clock[index][now.lane] = now.own->clock[now.lane][now.lane];
}

static void note_writer(word *w) {
    w->write_epoch = now.epoch;
    w->write_clock = now.own->clock[now.lane][now.lane];
    w->writer = static_cast<std::uint16_t>(now.current);
}

/* ---- one access */

static bool is_inside(std::ptrdiff_t offset, unsigned bytes, unsigned alignment, const char *verb) {
    /* An address before the start becomes a very large offset. */
    const bool fits = now.shared_bytes >= bytes && static_cast<std::size_t>(offset) <= now.shared_bytes - bytes;
    const bool aligned = offset % static_cast<std::ptrdiff_t>(alignment) == 0;
    if (!fits)
        report_error(kind::out_of_bounds, now.current, "%s %u bytes at byte %td of %zu", verb, bytes, offset,
                     now.shared_bytes);
    else if (!aligned)
        report_error(kind::misaligned, now.current, "%s %u bytes at byte %td, aligned to %u", verb, bytes, offset,
                     alignment);
    return fits && aligned;
}

void check_global(const void *p, std::size_t alignment) {
    if (reinterpret_cast<std::uintptr_t>(p) % alignment)
        report_error(kind::misaligned, now.current, "uses the global address %p, to be aligned to %zu", p, alignment);
}

void load_shared(std::ptrdiff_t offset, unsigned bytes, unsigned alignment, void *value) {
    if (!is_inside(offset, bytes, alignment, "reads")) {
        std::memset(value, now.wanted.fill, bytes);
        return;
    }
    const std::size_t start = static_cast<std::size_t>(offset), first = start / 4;
    std::memcpy(value, &now.shared[start], bytes);
    record_access(static_cast<std::uint32_t>(start), bytes, alignment, false);
    bool faulty = false; /* one report for all words of an access */
    for (std::size_t i = first; i < first + bytes / 4; i++) {
        word &w = now.words[i];
        if (w.write_epoch < now.first_epoch && !faulty) {
            report_error(kind::uninitialized, now.current, "reads byte %zu, which nobody has written", 4 * i);
            faulty = true;
        }
        if (has_racing_write(w) && !faulty) {
            report_error(kind::race, now.current, "reads byte %zu, which %s writes", 4 * i, writer_of(w).c_str());
            faulty = true;
        }
        note_reader(&w, i);
    }
}

/* Words that the current thread writes, or that a bulk copy which it begins will write. */
static void note_writes(std::size_t first, std::size_t count, bool bulk) {
    bool faulty = false;
    for (std::size_t i = first; i < first + count; i++) {
        word &w = now.words[i];
        const int reader = racing_reader(w, i);
        if (has_racing_write(w) && !faulty) {
            report_error(kind::race, now.current, "writes byte %zu, which %s writes too", 4 * i, writer_of(w).c_str());
            faulty = true;
        }
        if (reader >= 0 && !faulty) {
            if (static_cast<unsigned>(reader) < now.threads)
                report_error(kind::race, now.current, "writes byte %zu, which thread %d reads", 4 * i, reader);
            else
                report_error(kind::race, now.current, "writes byte %zu, which several warps read", 4 * i);
            faulty = true;
        }
        if (bulk)
            w.write_epoch = on_its_way;
        else
            note_writer(&w);
    }
}

void store_shared(std::ptrdiff_t offset, unsigned bytes, unsigned alignment, const void *value) {
    if (!is_inside(offset, bytes, alignment, "writes"))
        return;
    const std::size_t start = static_cast<std::size_t>(offset);
    std::memcpy(&now.shared[start], value, bytes);
    record_access(static_cast<std::uint32_t>(start), bytes, alignment, true);
    note_writes(start / 4, bytes / 4, false);
}

/* ---- bulk copies: of whole words, by no thread's own accesses */

bool begin_bulk_write(std::ptrdiff_t offset, unsigned bytes) {
    if (!is_inside(offset, bytes, 16, "copies to"))
        return false;
    std::memset(&now.shared[static_cast<std::size_t>(offset)], now.wanted.fill, bytes);
    note_writes(static_cast<std::size_t>(offset) / 4, bytes / 4, true);
    return true;
}

void end_bulk_write(std::ptrdiff_t offset, const void *value, unsigned bytes, unsigned barrier, std::uint32_t phase) {
    const std::size_t start = static_cast<std::size_t>(offset);
    std::memcpy(&now.shared[start], value, bytes);
    for (std::size_t i = start / 4; i < (start + bytes) / 4; i++) {
        now.words[i].write_epoch = now.epoch;
        now.words[i].write_clock = phase;
        now.words[i].writer = static_cast<std::uint16_t>(bulk_writer + barrier);
    }
}

void forget_bulk_write(std::ptrdiff_t offset, unsigned bytes) {
    for (std::size_t i = static_cast<std::size_t>(offset) / 4; i < (static_cast<std::size_t>(offset) + bytes) / 4; i++)
        now.words[i].write_epoch = 0;
}

bool check_fence(std::ptrdiff_t offset, unsigned bytes) {
    for (std::size_t i = static_cast<std::size_t>(offset) / 4; i < (static_cast<std::size_t>(offset) + bytes) / 4;
         i++) {
        const word &w = now.words[i];
        if (w.write_epoch != on_its_way && w.writer < bulk_writer && now.fenced[w.writer] < w.write_epoch)
            return false;
    }
    return true;
}

} // namespace simt
