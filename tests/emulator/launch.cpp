/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"
#include "state.h"

#include <cstdarg>
#include <cstdio>

namespace simt {

state now;

static const std::size_t kept_errors = 16;

static const char *name_of(kind what) {
    switch (what) {
    case kind::bad_launch:
        return "bad launch";
    case kind::out_of_bounds:
        return "out of bounds";
    case kind::misaligned:
        return "misaligned";
    case kind::uninitialized:
        return "uninitialized";
    case kind::race:
        return "race";
    case kind::barrier:
        return "mismatched barrier";
    case kind::early_return:
        return "early return";
    case kind::mask:
        return "mask";
    case kind::shuffle_source:
        return "shuffle source";
    case kind::shuffle_width:
        return "shuffle width";
    case kind::divergence:
        return "divergence";
    case kind::bulk:
        return "bulk copy";
    }
    return "?";
}

std::string text_of(site where) {
    if (!where.file)
        return "the start";
    const char *slash = std::strrchr(where.file, '/');
    return std::string(slash ? slash + 1 : where.file) + ":" + std::to_string(where.line);
}

void report_error(kind what, unsigned thread, const char *format, ...) {
    now.report->error_count++;
    if (now.report->errors.size() == kept_errors)
        return;
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    now.report->errors.push_back({what, blockIdx, thread, text + (" [after " + text_of(now.last[thread]) + "]")});
}

bool result::has(kind what) const {
    for (const error &e : errors)
        if (e.kind == what)
            return true;
    return false;
}

std::string result::first() const {
    if (errors.empty())
        return "";
    const error &e = errors[0];
    char place[100];
    std::snprintf(place, sizeof place, "block (%u, %u, %u) thread %u: %s: ", e.block.x, e.block.y, e.block.z, e.thread,
                  name_of(e.kind));
    return place + e.text;
}

/* ---- a launch */

static void thread_body() {
    fiber_started();
    for (;;) {
        now.body(now.argument);
        now.own->returned |= 1u << now.lane;
        now.returned++;
        suspend();
        give_way(); /* until the next block */
    }
}

static bool launch_is_possible(dim3 grid, dim3 block, std::size_t shared_bytes) {
    const bool extents = grid.x && grid.y && grid.z && block.x && block.y && block.z && grid.x <= 0x7fffffffu &&
                         grid.y <= 65535 && grid.z <= 65535 && block.x <= max_threads && block.y <= max_threads &&
                         block.z <= 64 && block.x * block.y <= max_threads &&
                         block.x * block.y * block.z <= max_threads;
    if (!extents)
        report_error(kind::bad_launch, 0, "grid (%u, %u, %u) of blocks (%u, %u, %u)", grid.x, grid.y, grid.z, block.x,
                     block.y, block.z);
    if (shared_bytes > now.wanted.shared_limit)
        report_error(kind::bad_launch, 0, "%zu bytes of shared memory, %zu are allowed", shared_bytes,
                     now.wanted.shared_limit);
    return now.report->ok();
}

static bool set_up(dim3 grid, dim3 block, std::size_t shared_bytes) {
    gridDim = grid;
    blockDim = block;
    now.threads = block.x * block.y * block.z;
    now.warps = (now.threads + 31) / 32;
    now.random = now.wanted.seed;
    for (unsigned t = 0; t < now.threads; t++) {
        now.index[t] = {t % block.x, t / block.x % block.y, t / block.x / block.y};
        if (!now.thread[t].memory && !fiber_create(&now.thread[t], t, thread_body)) {
            report_error(kind::bad_launch, t, "no memory for the stack of a thread");
            return false;
        }
    }
    now.shared_bytes = shared_bytes;
    now.shared.resize(shared_bytes);
    const std::size_t words = shared_bytes / 4;
    if (now.words.size() < words) {
        now.words.resize(words);
        now.read_clock.resize(words);
    }
    return true;
}

static bool run_block() {
    if (now.shared_bytes)
        std::memset(now.shared.data(), now.wanted.fill, now.shared_bytes);
    now.first_epoch = ++now.epoch;
    now.waiting = now.returned = 0;
    begin_bulk();
    for (unsigned t = 0; t < now.threads; t++)
        now.last[t] = {nullptr, 0};
    for (unsigned i = 0; i < now.warps; i++) {
        warp *w = &now.warp_of[i];
        const unsigned lanes = now.threads - 32 * i;
        w->present = lanes < 32 ? (1u << lanes) - 1 : ~0u;
        w->at_barrier = w->returned = w->ready = 0;
        w->group_count = 0;
    }
    start_order();
    for (unsigned i = 0; i < now.warps; i++)
        wake(&now.warp_of[i], now.warp_of[i].present);
    const bool finished = run_threads();
    end_bulk(finished);
    for (unsigned t = 0; !finished && t < now.threads; t++)
        fiber_create(&now.thread[t], t, thread_body);
    for (unsigned i = 0; i < now.warps; i++)
        count_requests(i);
    return finished;
}

result run(dim3 grid, dim3 block, std::size_t shared_bytes, void (*body)(void *), void *argument,
           const options &wanted) {
    result report;
    now.wanted = wanted;
    now.report = &report;
    now.body = body;
    now.argument = argument;
    now.last[0] = {nullptr, 0};
    blockIdx = {0, 0, 0};
    if (!launch_is_possible(grid, block, shared_bytes) || !set_up(grid, block, shared_bytes))
        return report;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = {x, y, z};
                if (!run_block())
                    return report;
            }
    return report;
}

} // namespace simt
