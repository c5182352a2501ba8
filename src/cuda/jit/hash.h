/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_DEVICE_HASH_H
#define CF_DEVICE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define CF_HASH_START UINT64_C(0xcbf29ce484222325)

/* FNV-1a with 64 bits. It continues the hash of earlier data. */
static inline uint64_t cf_hash_on(uint64_t hash, const void *data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}
static inline uint64_t cf_hash(const void *data, size_t bytes) { return cf_hash_on(CF_HASH_START, data, bytes); }

#endif
