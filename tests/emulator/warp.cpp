/* SPDX-License-Identifier: Apache-2.0 */
/* __syncwarp and shuffles: the lanes of a mask meet, exchange values, and go on. */
#include "state.h"

namespace simt {

const char *name_of(operation what) {
    const char *const names[] = {"a matrix instruction", "__syncwarp",     "__shfl_sync",
                                 "__shfl_xor_sync",      "__shfl_up_sync", "__shfl_down_sync"};
    return names[static_cast<int>(what)];
}

/* A lane knows its own time best, so the newest known time of a lane in the mask is its own. */
void order_lanes(warp *w, std::uint32_t mask) {
    std::uint32_t newest[32];
    for (unsigned b = 0; b < 32; b++) {
        if (mask >> b & 1) {
            newest[b] = ++w->clock[b][b];
            continue;
        }
        newest[b] = 0;
        for (unsigned a = 0; a < 32; a++)
            if ((mask >> a & 1) && w->clock[a][b] > newest[b])
                newest[b] = w->clock[a][b];
    }
    for (unsigned a = 0; a < 32; a++)
        if (mask >> a & 1)
            std::memcpy(w->clock[a], newest, sizeof newest);
}

static void exchange(warp *w, const group &g) {
    for (std::uint32_t lanes = g.mask; lanes; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes), source = w->source[lane];
        const bool named = g.mask >> source & 1;
        std::memset(&w->received[lane], now.wanted.fill, sizeof w->received[lane]);
        if (named)
            w->received[lane] = w->value[source];
    }
}

static group *find_group(warp *w, operation what, unsigned bytes, std::uint32_t mask) {
    for (unsigned i = 0; i < w->group_count; i++) {
        group *g = &w->groups[i];
        if (g->mask == mask && g->what == what && g->bytes == bytes)
            return g;
    }
    group *g = &w->groups[w->group_count++]; /* at most one for every waiting lane */
    *g = {what, bytes, mask, 0, 0, 0};
    return g;
}

static void complete(warp *w, group *g) {
    if (g->what == operation::sync_warp)
        order_lanes(w, g->mask);
    else if (g->what != operation::aligned)
        exchange(w, *g);
    if (g->elsewhere)
        report_error(kind::divergence, now.current,
                     "a matrix instruction of the whole warp: lanes 0x%08x are at another one", g->elsewhere);
    if (g->mask == w->present)
        count_requests(static_cast<unsigned>(w - now.warp_of));
    wake(w, g->mask);
    *g = w->groups[--w->group_count];
}

/* The call stack of the running thread as one number, made of return addresses found by frame pointers. Code that is
 * inlined has an address for each place that calls it. */
[[gnu::noinline]] static std::uint64_t path_of_calls() {
    std::uint64_t path = 1;
#if defined(__x86_64__) || defined(__aarch64__)
    const fiber &own = now.thread[now.current];
    const auto low = reinterpret_cast<std::uintptr_t>(own.memory), high = low + own.bytes;
    auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    for (std::uintptr_t below = low; frame > below && frame + 16 <= high && frame % 8 == 0;) {
        std::uintptr_t words[2];
        std::memcpy(words, reinterpret_cast<const void *>(frame), sizeof words);
        path = (path ^ words[1]) * 0x9e3779b97f4a7c15u;
        below = frame;
        frame = words[0];
    }
#endif
    return path;
}

/* Returns false if the caller is not in the mask, and so meets no lane. */
static bool meet(operation what, unsigned bytes, std::uint32_t mask, site where, std::uint64_t path = 0) {
    warp *w = now.own;
    const unsigned lane = now.lane;
    if (!(mask >> lane & 1)) {
        report_error(kind::mask, now.current, "%s with mask 0x%08x by lane %u", name_of(what), mask, lane);
        return false;
    }
    if (mask & ~w->present)
        report_error(kind::mask, now.current, "%s with mask 0x%08x: the block has lanes 0x%08x of this warp",
                     name_of(what), mask, w->present);
    now.last[now.current] = where;
    group *g = find_group(w, what, bytes, mask & w->present);
    if (!g->arrived)
        g->path = path;
    if (path != g->path)
        g->elsewhere |= 1u << lane;
    g->arrived |= 1u << lane;
    suspend();
    if (g->arrived == g->mask)
        complete(w, g);
    give_way();
    return true;
}

void whole_warp() { meet(operation::aligned, 0, ~0u, now.last[now.current], path_of_calls()); }

void sync_warp(unsigned mask, site where) { meet(operation::sync_warp, 0, mask, where); }

/* The lane that a value comes from, as PTX defines shfl; at the end of a segment it is the caller. */
static int source_lane(operation what, int lane, int argument, int width) {
    const int first = lane & ~(width - 1), last = first + width - 1;
    int source = lane;
    switch (what) {
    case operation::shuffle_index:
        return first + (argument & (width - 1));
    case operation::shuffle_xor:
        source = lane ^ (argument & 31);
        return source <= last ? source : lane;
    case operation::shuffle_up:
        source = lane - (argument & 31);
        return source >= first ? source : lane;
    case operation::shuffle_down:
        source = lane + (argument & 31);
        return source <= last ? source : lane;
    case operation::aligned:
    case operation::sync_warp:
        break;
    }
    return source;
}

std::uint64_t shuffle(operation what, unsigned mask, std::uint64_t bits, unsigned bytes, int argument, int width,
                      site where) {
    const unsigned lane = now.lane;
    if (width < 1 || width > 32 || (width & (width - 1))) {
        report_error(kind::shuffle_width, now.current, "%s over a width of %d", name_of(what), width);
        return bits;
    }
    const int source = source_lane(what, static_cast<int>(lane), argument, width);
    if ((mask >> lane & 1) && !(mask >> source & 1))
        report_error(kind::shuffle_source, now.current, "%s with mask 0x%08x reads lane %d", name_of(what), mask,
                     source);
    now.own->value[lane] = bits;
    now.own->source[lane] = static_cast<unsigned char>(source);
    return meet(what, bytes, mask, where) ? now.own->received[lane] : bits;
}

} // namespace simt
