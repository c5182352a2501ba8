/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk copies between memory and shared memory: one instruction of one thread copies thousands of bytes (compute
 * capability 9.0).
 *
 *     load      mbarrier_init() once; then for each use of the mbarrier mbarrier_expect_tx() and tma_load() by the same
 *               thread, and mbarrier_wait() by all threads that read
 *     store     tma_store_fence() by all threads that wrote; __syncthreads(); tma_store() by one thread; before the
 *               source is overwritten, tma_store_wait_read() by that thread
 *
 * Both addresses and the size are multiples of 16 bytes. CF_SIMT is the emulator (tests/emulator).
 */
#pragma once

#include "fbfft/shared_memory/kernel.cuh"

#ifdef CF_SIMT
CF_DEVICE void mbarrier_init(smem<char> barrier, int threads) { simt::mbarrier_init(smem_offset(barrier), threads); }
CF_DEVICE void mbarrier_expect_tx(smem<char> barrier, int bytes) {
    simt::mbarrier_expect_tx(smem_offset(barrier), bytes);
}
CF_DEVICE void tma_load(smem<char> to, const void *from, int bytes, smem<char> barrier) {
    simt::tma_load(smem_offset(to), from, bytes, smem_offset(barrier));
}
CF_DEVICE void mbarrier_wait(smem<char> barrier, int use) { simt::mbarrier_wait(smem_offset(barrier), use & 1); }
CF_DEVICE void tma_store(void *to, smem<char> from, int bytes) { simt::tma_store(to, smem_offset(from), bytes); }
CF_DEVICE void tma_store_fence() { simt::tma_store_fence(); }
CF_DEVICE void tma_store_wait_read() { simt::tma_store_wait_read(); }
#else
CF_DEVICE unsigned shared_address(smem<char> p) { return (unsigned)__cvta_generic_to_shared(p); }
/*
 * Initialises the mbarrier. A phase of it ends when `threads` threads have called mbarrier_expect_tx() and all their
 * bytes are there.
 */
CF_DEVICE void mbarrier_init(smem<char> barrier, int threads) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(threads) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/* This thread arrives, and will copy so many bytes in this phase. */
CF_DEVICE void mbarrier_expect_tx(smem<char> barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}
/* Starts a copy from memory to shared memory. */
CF_DEVICE void tma_load(smem<char> to, const void *from, int bytes, smem<char> barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}
/* Waits until phase `use` of the mbarrier has ended. */
CF_DEVICE void mbarrier_wait(smem<char> barrier, int use) {
    asm volatile("{\n.reg .pred arrived;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 arrived, [%0], %1;\n"
                 "@!arrived bra WAIT;\n}" ::"r"(shared_address(barrier)),
                 "r"(use & 1)
                 : "memory");
}
/* Starts a copy from shared memory to memory. */
CF_DEVICE void tma_store(void *to, smem<char> from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)),
                 "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/* Makes what this thread wrote to shared memory visible to a later tma_store(). A barrier must follow. */
CF_DEVICE void tma_store_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/* Waits until all tma_store() of this thread have read their source. */
CF_DEVICE void tma_store_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
#endif
