/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread runs next, barriers of the block, and the report if no thread can run. A warp runs as far as it can
 * before the next one starts: that is the most unequal progress that barriers allow. */
#include "state.h"

#include <utility>

namespace simt {

static unsigned random_below(unsigned bound) { /* splitmix64 */
    std::uint64_t z = now.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return static_cast<unsigned>((z ^ z >> 31) % bound);
}

static void arrange(unsigned *items, unsigned count) {
    const bool falling = now.wanted.order == order::descending;
    for (unsigned i = 0; i < count; i++)
        items[i] = falling ? count - 1 - i : i;
    for (unsigned i = count; now.wanted.order == order::random && i > 1; i--)
        std::swap(items[i - 1], items[random_below(i)]);
}

void start_order() {
    arrange(now.warp_order, now.warps);
    arrange(now.lane_at, 32);
    for (unsigned i = 0; i < 32; i++)
        now.place_of[now.lane_at[i]] = i;
}

void wake(warp *w, std::uint32_t lanes) {
    for (; lanes; lanes &= lanes - 1)
        w->ready |= 1u << now.place_of[__builtin_ctz(lanes)];
}

/* The first warp in the order that has a thread to run. The running warp comes first. */
static warp *warp_to_run() {
    if (now.own && now.own->ready)
        return now.own;
    for (unsigned i = 0; i < now.warps; i++) {
        warp *w = &now.warp_of[now.warp_order[i]];
        if (w->ready)
            return w;
    }
    return nullptr;
}

static void go_on_with(fiber *from, warp *w) {
    if (!w) {
        fiber_switch(from, &now.caller);
        return;
    }
    now.own = w;
    now.lane = now.lane_at[__builtin_ctz(w->ready)];
    now.current = static_cast<unsigned>(w - now.warp_of) * 32 + now.lane;
    threadIdx = now.index[now.current];
    fiber *to = &now.thread[now.current];
    if (to != from)
        fiber_switch(from, to);
}

void suspend() { now.own->ready &= ~(1u << now.place_of[now.lane]); }

void give_way() { go_on_with(&now.thread[now.current], warp_to_run()); }

/* ---- __syncthreads */

bool same_site(site a, site b) {
    return a.line == b.line && (a.file == b.file || (a.file && b.file && std::strcmp(a.file, b.file) == 0));
}

static void release_block() {
    now.waiting = 0;
    now.epoch++;
    now.own = nullptr;
    start_order();
    for (unsigned i = 0; i < now.warps; i++) {
        count_requests(i);
        now.warp_of[i].at_barrier = 0;
        wake(&now.warp_of[i], now.warp_of[i].present);
    }
}

void sync_block(site where) {
    if (now.waiting > 0 && !same_site(where, now.barrier))
        report_error(kind::barrier, now.current, "reaches the __syncthreads of line %d, others wait at that of line %d",
                     where.line, now.barrier.line);
    now.barrier = where;
    now.last[now.current] = where;
    now.own->at_barrier |= 1u << now.lane;
    suspend();
    if (++now.waiting == now.threads)
        release_block();
    give_way();
}

/* ---- nothing can run */

static void report_group(unsigned warp_index, const group &g) {
    const warp &w = now.warp_of[warp_index];
    const std::uint32_t missing = g.mask & ~g.arrived;
    report_error(kind::mask, warp_index * 32 + static_cast<unsigned>(__builtin_ctz(g.arrived)),
                 "%s with mask 0x%08x: lanes 0x%08x wait, lanes 0x%08x do not arrive, of them 0x%08x have returned",
                 name_of(g.what), g.mask, g.arrived, missing, missing & w.returned);
}

static void report_stuck() {
    unsigned first_waiting = now.threads, elsewhere = 0;
    for (unsigned i = now.warps; i-- > 0;) {
        const warp &w = now.warp_of[i];
        for (unsigned g = 0; g < w.group_count; g++)
            report_group(i, w.groups[g]);
        elsewhere += static_cast<unsigned>(__builtin_popcount(w.present & ~w.at_barrier & ~w.returned));
        if (w.at_barrier)
            first_waiting = i * 32 + static_cast<unsigned>(__builtin_ctz(w.at_barrier));
    }
    elsewhere -= report_stuck_bulk();
    if (now.waiting && elsewhere)
        report_error(kind::barrier, first_waiting, "%u threads wait at __syncthreads, %u at barriers of their warp",
                     now.waiting, elsewhere);
    if (now.waiting && now.returned)
        report_error(kind::early_return, first_waiting, "%u threads wait at __syncthreads, %u have returned",
                     now.waiting, now.returned);
}

bool run_threads() {
    now.own = nullptr;
    go_on_with(&now.caller, warp_to_run());
    if (now.returned == now.threads)
        return true;
    report_stuck();
    return false;
}

} // namespace simt
