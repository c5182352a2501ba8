/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded calls. A plan runs each call once while it is created, on addresses that stand for the caller's arguments.
 * The device notes what it would launch. A call then launches the recorded work with its own addresses.
 */
#ifndef CF_CORE_RECORDING_H
#define CF_CORE_RECORDING_H

#include <stdint.h>

/* The arguments of a call that are addresses. EACH(NAME, name) */
#define CF_ARGUMENT_LIST(EACH)   \
    EACH(X, x)                   \
    EACH(W, w)                   \
    EACH(BIAS, bias)             \
    EACH(GY, gy)                 \
    EACH(Y, y)                   \
    EACH(GX, gx)                 \
    EACH(GW, gw)                 \
    EACH(GBIAS, gbias)           \
    EACH(X_SPECTRUM, x_spectrum) \
    EACH(W_SPECTRUM, w_spectrum) \
    EACH(WORKSPACE, workspace)

#define CF_ARGUMENT_ENUM(NAME, name) CF_ARGUMENT_##NAME,
enum {
    CF_ARGUMENT_LIST(CF_ARGUMENT_ENUM) CF_ARGUMENT_COUNT
};
#undef CF_ARGUMENT_ENUM

/* Recorded addresses are recognised by their eight highest bits, which no address of a process has. Each argument has
 * 2^56 bytes. Its address is in the middle, so that offsets of either sign lead to the same argument. */
static inline void *cf_recorded_address(int argument) {
    return (void *)(uintptr_t)(((uint64_t)argument + 1) << 56 | (uint64_t)1 << 55);
}
/* The argument of an address and an offset, or -1 if it is not recorded. */
static inline int cf_recorded_argument(uint64_t address, int64_t *offset) {
    const int argument = (int)(address >> 56) - 1;
    if (argument < 0 || argument >= CF_ARGUMENT_COUNT)
        return -1;
    *offset = (int64_t)(address - (uint64_t)(uintptr_t)cf_recorded_address(argument));
    return argument;
}

/* Recorded addresses are multiples of this many bytes. A recording is right for arguments that are, too. */
#define CF_RECORDED_ALIGNMENT 16

typedef struct cf_recording cf_recording; /* each device's own */

#endif
