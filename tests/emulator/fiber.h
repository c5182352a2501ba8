/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that take turns on one CPU thread. */
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

/* Either the caller's own stack, as it is when first left, or one that fiber_create() gives. */
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

/** Make `f` start at `entry`, which never returns, when it is first switched to. A fiber left halfway can be made anew.
 * Stacks start at different places of a page for different `number`s, so that they do not compete for cache lines.
 * False if memory is short. */
bool fiber_create(fiber *f, unsigned number, void (*entry)());

/** Leave `from`, which is running, and go on with `to`. Returns when another fiber goes on with `from`. */
void fiber_switch(fiber *from, fiber *to);

/** To be called first in a fiber's entry. */
void fiber_started();

} // namespace simt

#endif
