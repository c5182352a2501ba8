/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/shared_memory/occupancy.h"

#include "core/arith.h"
#include "fbfft/shared_memory/registers.h"

bool cf_shared_fft_two_fit(const cf_shared_fft_config *c, const cf_gpu_properties *properties, int64_t lines) {
    return 2 * c->shared <= properties->shared_per_multiprocessor &&
           2 * c->planes * lines * cf_shared_fft_registers(c) <= properties->registers_per_multiprocessor;
}

/* The number of blocks that the registers allow. Each quarter of a multiprocessor takes whole warps; that matters for
 * kernels that multiply, which have few warps. If not even one block fits, fewer registers may still be enough. */
static int64_t blocks_by_registers(const cf_shared_fft_config *c, const cf_gpu_properties *properties) {
    const int64_t all = properties->registers_per_multiprocessor, registers = cf_shared_fft_registers(c);
    if (c->packs_nyquist)
        return all / (c->threads * registers);
    const int64_t blocks = 4 * (all / (4 * 32 * registers)) / (c->threads / 32);
    return blocks == 0 && c->threads * (registers * 4 / 5) <= all ? 1 : blocks;
}

int64_t cf_shared_fft_blocks_that_fit(const cf_shared_fft_config *c, int64_t shared,
                                      const cf_gpu_properties *properties) {
    const int64_t by_registers = blocks_by_registers(c, properties),
                  by_shared = properties->shared_per_multiprocessor / (shared + properties->shared_reserved_per_block),
                  by_threads = properties->threads_per_multiprocessor / c->threads;
    return cf_min(cf_min(by_registers, by_shared), cf_min(by_threads, properties->blocks_per_multiprocessor));
}

void cf_shared_fft_choose_threads(cf_shared_fft_config *c, const cf_gpu_properties *properties, int64_t total,
                                  int64_t shared) {
    const int64_t registers = cf_shared_fft_registers(c),
                  max_threads = cf_max(32, cf_min(512, properties->registers_per_multiprocessor / registers / 32 * 32));
    c->threads = (int)(cf_ceil_div(cf_ceil_div(total, cf_ceil_div(total, max_threads)), 32) * 32);
    c->blocks = (int)cf_max(1, cf_shared_fft_blocks_that_fit(c, shared, properties));
}

void cf_shared_fft_pair(cf_shared_fft_config pair[2], const cf_gpu_properties *properties) {
    const int threads = pair[pair[1].threads > pair[0].threads].threads;
    const int64_t shared = cf_max(pair[0].shared, pair[1].shared);
    int64_t blocks = INT32_MAX;
    for (int i = 0; i < 2; ++i) {
        pair[i].threads = threads;
        blocks = cf_min(blocks, cf_shared_fft_blocks_that_fit(&pair[i], shared, properties));
    }
    pair[0].blocks = pair[1].blocks = (int)cf_max(1, blocks);
}
