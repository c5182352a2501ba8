/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that run alternately on one CPU thread. */
#ifndef SIMT_FIBER_H
#define SIMT_FIBER_H

#include <cstddef>

#if !defined(__x86_64__) && !defined(SIMT_UCONTEXT)
#define SIMT_UCONTEXT
#endif

#ifdef SIMT_UCONTEXT
#include <ucontext.h>
#endif

namespace simt {

/* The caller's own stack when it is first left, or a stack of fiber_create(). */
struct fiber {
#ifdef SIMT_UCONTEXT
    ucontext_t context;
#else
    void *pointer = nullptr; /* of its stack, while others run */
#endif
    void *memory = nullptr;       /* of a created fiber */
    const void *bottom = nullptr; /* of its stack: what the address sanitizer wants to know */
    std::size_t bytes = 0;
    void *fake_stack = nullptr;
};

/** Make `f` start at `entry`, which never returns, when it is first switched to. A fiber that was left can be made
 * again. With different `number`s, stacks start at different offsets in a page, so that they do not compete for cache
 * lines. Returns false if there is too little memory. */
bool fiber_create(fiber *f, unsigned number, void (*entry)());

/** Leave the running fiber `from` and continue `to`. Returns when another fiber continues `from`. */
void fiber_switch(fiber *from, fiber *to);

/** A fiber's entry calls this first. */
void fiber_started();

} // namespace simt

#endif
