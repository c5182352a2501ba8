/* SPDX-License-Identifier: Apache-2.0 */
/* The block that is running: what the parts of the emulator share. */
#ifndef SIMT_STATE_H
#define SIMT_STATE_H

#include "fiber.h"
#include "simt.h"

#include <array>

namespace simt {

const unsigned max_threads = 1024, max_warps = max_threads / 32;

/* Lanes of one warp that wait for each other. */
struct group {
    operation what;
    unsigned bytes; /* of a shuffled value */
    std::uint32_t mask, arrived;
    std::uint64_t path;      /* of the first lane at an aligned operation .. */
    std::uint32_t elsewhere; /* .. and lanes that came another way */
};

struct warp {
    std::uint32_t present;    /* lanes that the block has */
    std::uint32_t ready;      /* places in the order (state.lane_at), not lanes */
    std::uint32_t at_barrier; /* lanes that wait at __syncthreads */
    std::uint32_t returned;
    unsigned group_count;
    group groups[32];
    std::uint64_t value[32], received[32]; /* of a shuffle */
    unsigned char source[32];
    std::uint32_t clock[32][32]; /* vector clocks of the lanes: clock[a][b] is the latest time of b that a knows of */
};

/* Bytes that come to shared memory, or leave it, when somebody waits for them. */
struct bulk_copy {
    std::ptrdiff_t shared;
    void *to;
    const void *from;
    std::size_t bytes;
};

/* Of compute capability 9.0: a phase is over when so many threads have arrived and as many bytes as they expect. */
struct bulk_barrier {
    std::ptrdiff_t offset;
    int arrivals, missing;           /* of each phase; of this one, that have not come */
    long long expected, asked;       /* bytes of this phase */
    std::uint32_t phases;            /* that are over */
    std::vector<bulk_copy> coming;   /* of this phase */
    std::vector<unsigned> waiting;   /* threads */
    std::vector<std::uint32_t> seen; /* for each thread: phases that it knows to be over */
};

/* Who has last touched a word of shared memory. Epochs count the __syncthreads of all blocks, so that nothing needs to
 * be cleared: a word of an earlier epoch is ordered before everything, one from before the block was never written. */
struct word {
    std::uint32_t write_epoch, write_clock, read_epoch;
    std::uint32_t read_lanes; /* of the one warp that has read it in read_epoch .. */
    std::uint16_t writer;
    std::uint16_t read_warp; /* .. or several_warps */
};

const std::uint16_t several_warps = 0xffff;

/* Two special values. As the epoch of a word's write: the bytes are still being copied. As a word's writer, from this
 * value on: a bulk copy of this barrier's number, in the phase that the clock says. */
const std::uint32_t on_its_way = 0xffffffff;
const std::uint16_t bulk_writer = 0x8000;

struct access {
    site after;
    std::uint32_t offset;
    std::uint8_t bytes;
    bool write;
};

struct state {
    options wanted;
    result *report;
    void (*body)(void *);
    void *argument;
    unsigned threads, warps;

    unsigned current; /* the running thread; which lane of which warp */
    unsigned lane;
    warp *own;                  /* null when a __syncthreads has just completed */
    unsigned waiting, returned; /* threads at __syncthreads, and gone */
    site barrier;               /* the __syncthreads at which they wait */
    site last[max_threads];     /* the barrier or shuffle that a thread has last reached */
    unsigned warp_order[max_warps], lane_at[32], place_of[32];
    std::uint64_t random;

    std::uint32_t epoch, first_epoch;
    std::size_t shared_bytes;
    std::vector<unsigned char> shared;
    std::vector<word> words;
    std::vector<std::array<std::uint32_t, 32>> read_clock; /* per word: a lane's time at its last read */

    std::vector<bulk_barrier> bulk_barriers;
    std::vector<bulk_copy> leaving[max_threads];
    std::uint32_t fenced[max_threads]; /* the epoch of a thread's last tma_store_fence() */

    std::vector<access> trace[max_threads]; /* accesses since the last barrier or shuffle of the whole warp */

    warp warp_of[max_warps];
    fiber caller, thread[max_threads];
    uint3 index[max_threads];
};

extern state now;

/** "file.cuh:12", or "the start". */
std::string text_of(site where);

/** Record an error of thread `thread`; the text says after which barrier or shuffle. */
[[gnu::format(printf, 3, 4)]] void report_error(kind what, unsigned thread, const char *format, ...);

/* schedule.cpp */
void start_order();
void suspend();  /* the current thread is not ready any more .. */
void give_way(); /* .. run others until it is, or until its turn comes */
void wake(warp *w, std::uint32_t lanes);
bool same_site(site a, site b);
bool run_threads(); /* all threads of the block; false if some can never finish (reported) */

/* warp.cpp */
const char *name_of(operation what);
void order_lanes(warp *w, std::uint32_t mask); /* what they did so far is before what they do next */

/* shared_memory.cpp */
bool begin_bulk_write(std::ptrdiff_t offset, unsigned bytes); /* of words that are on their way from then on */
void end_bulk_write(std::ptrdiff_t offset, const void *value, unsigned bytes, unsigned barrier, std::uint32_t phase);
void forget_bulk_write(std::ptrdiff_t offset, unsigned bytes);
bool check_fence(std::ptrdiff_t offset, unsigned bytes); /* what threads have written there, they have fenced */

/* bulk_copy.cpp */
void begin_bulk();
void end_bulk(bool finished);
unsigned report_stuck_bulk(); /* how many threads wait for bulk copies */

/* bank_conflicts.cpp */
void record_access(std::uint32_t offset, unsigned bytes, unsigned alignment, bool write);
void count_requests(unsigned warp_index);

} // namespace simt

#endif
