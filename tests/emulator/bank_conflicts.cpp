/* SPDX-License-Identifier: Apache-2.0 */
/* Bank conflicts: 32 banks, each gives one 4-byte word per wavefront to any number of lanes. */
#include "state.h"

#include <cstdio>

namespace simt {

void record_access(std::uint32_t offset, unsigned bytes, unsigned alignment, bool write) {
    if (!now.wanted.banks)
        return;
    /* The compiler splits an access whose type does not promise its alignment. */
    const unsigned piece = alignment < bytes ? alignment : bytes;
    for (unsigned i = 0; i < bytes; i += piece)
        now.trace[now.current].push_back({now.last[now.current], offset + i, static_cast<std::uint8_t>(piece), write});
}

/* The lanes that share a wavefront: all lanes for 4 bytes, half a warp for 8, a quarter for 16. */
static unsigned wavefronts_of(const access *const *lanes, unsigned count) {
    std::uint32_t words[32][32];
    unsigned used[32] = {}, most = 0;
    for (unsigned l = 0; l < count; l++)
        for (unsigned b = 0; lanes[l] && b < lanes[l]->bytes; b += 4) {
            const std::uint32_t wanted = (lanes[l]->offset + b) / 4, bank = wanted % 32;
            unsigned i = 0;
            while (i < used[bank] && words[bank][i] != wanted)
                i++;
            words[bank][i] = wanted;
            used[bank] += i == used[bank];
            most = used[bank] > most ? used[bank] : most;
        }
    return most;
}

static void add(bank_counts *counts, const access *const *lanes, unsigned bytes) {
    const unsigned together = 128 / bytes;
    counts->requests++;
    for (unsigned first = 0; first < 32; first += together) {
        const unsigned wavefronts = wavefronts_of(lanes + first, together);
        counts->wavefronts += wavefronts;
        counts->ideal += wavefronts > 0;
        counts->worst = wavefronts > counts->worst ? wavefronts : counts->worst;
    }
}

static bank_counts *row_of(const access &a) {
    std::vector<bank_row> *rows = &now.report->bank_rows;
    for (bank_row &row : *rows)
        if (same_site(row.after, a.after) && row.bytes == a.bytes && row.write == a.write)
            return &row.counts;
    rows->push_back({a.after, a.bytes, a.write, {}});
    return &rows->back().counts;
}

/* Lanes whose accesses differ in kind have diverged. Each kind makes one request. */
static void count_step(const std::vector<access> *traces, std::size_t step) {
    for (unsigned kind = 0; kind < 6; kind++) {
        const unsigned bytes = 4u << kind / 2;
        const bool write = kind % 2;
        const access *lanes[32] = {};
        const access *any = nullptr;
        for (unsigned l = 0; l < 32; l++)
            if (step < traces[l].size() && traces[l][step].bytes == bytes && traces[l][step].write == write) {
                any = lanes[l] = &traces[l][step];
            }
        if (any) {
            add(&now.report->banks, lanes, bytes);
            add(row_of(*any), lanes, bytes);
        }
    }
}

std::string result::conflicts() const {
    std::string text;
    for (const bank_row &row : bank_rows) {
        char line[200];
        std::snprintf(line, sizeof line, "%u-byte %s after %s: %llu requests, %.2f of the ideal, worst %u\n", row.bytes,
                      row.write ? "writes" : "reads", text_of(row.after).c_str(),
                      static_cast<unsigned long long>(row.counts.requests), row.counts.ratio(), row.counts.worst);
        if (row.counts.wavefronts > row.counts.ideal)
            text += line;
    }
    return text;
}

void count_requests(unsigned warp_index) {
    if (!now.wanted.banks)
        return;
    std::vector<access> *traces = &now.trace[warp_index * 32];
    std::size_t steps = 0;
    for (unsigned l = 0; l < 32; l++)
        steps = traces[l].size() > steps ? traces[l].size() : steps;
    for (std::size_t step = 0; step < steps; step++)
        count_step(traces, step);
    for (unsigned l = 0; l < 32; l++)
        traces[l].clear();
}

} // namespace simt
