/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_DEVICE_HASH_H
#define CF_DEVICE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a with 64 bits. */
static inline uint64_t cf_hash(const void *data, size_t bytes) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; ++i)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
