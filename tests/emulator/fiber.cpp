/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber.h"

#include <cstdint>
#include <cstring>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN
#endif
#endif

#ifdef SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace simt {

static const std::size_t stack_bytes = 256 << 10, guard_bytes = 64 << 10;

static fiber *left; /* the fiber that the latest switch has left */

#ifndef SIMT_UCONTEXT

extern "C" void simt_switch_stack(void **left_pointer, void *pointer);

/* The registers that a call preserves are saved on the stack. The caller saves the others. */
asm(".pushsection .text\n"
    ".type simt_switch_stack, @function\n"
    "simt_switch_stack:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size simt_switch_stack, .-simt_switch_stack\n"
    ".popsection\n");

/* simt_switch_stack() takes these from a new stack: six registers, the entry, and 0 for the entry's caller. */
static void prepare(fiber *f, std::size_t bytes, void (*entry)()) {
    void **top = reinterpret_cast<void **>(static_cast<char *>(f->memory) + bytes);
    std::memset(top - 8, 0, 8 * sizeof *top);
    std::memcpy(top - 2, &entry, sizeof entry);
    f->pointer = top - 8;
}

static void change(fiber *from, fiber *to) { simt_switch_stack(&from->pointer, to->pointer); }

#else

static void prepare(fiber *f, std::size_t bytes, void (*entry)()) {
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->memory;
    f->context.uc_stack.ss_size = bytes;
    f->context.uc_link = nullptr;
    makecontext(&f->context, entry, 0);
}

static void change(fiber *from, fiber *to) { swapcontext(&from->context, &to->context); }

#endif

static void *new_stack() {
    const std::size_t all = guard_bytes + stack_bytes;
    void *memory = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return nullptr;
    if (mprotect(memory, guard_bytes, PROT_NONE) == 0)
        return static_cast<char *>(memory) + guard_bytes;
    munmap(memory, all);
    return nullptr;
}

bool fiber_create(fiber *f, unsigned number, void (*entry)()) {
    if (!f->memory && !(f->memory = new_stack()))
        return false;
    f->bottom = f->memory;
    f->bytes = stack_bytes - number % 32 * 2112;
    f->fake_stack = nullptr;
#ifdef SIMT_ASAN
    ASAN_UNPOISON_MEMORY_REGION(f->memory, stack_bytes);
#endif
    prepare(f, f->bytes, entry);
    return true;
}

void fiber_started() {
#ifdef SIMT_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &left->bottom, &left->bytes);
#endif
}

void fiber_switch(fiber *from, fiber *to) {
    left = from;
#ifdef SIMT_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->bytes);
#endif
    change(from, to);
#ifdef SIMT_ASAN
    __sanitizer_finish_switch_fiber(from->fake_stack, &left->bottom, &left->bytes);
#endif
}

} // namespace simt
