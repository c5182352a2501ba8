// SPDX-License-Identifier: Apache-2.0
// For tests that instantiate kernels themselves: a fixed core of cases is always compiled, and others as the seed
// chooses (selection.cmake). A case is identified by its type.
#ifndef SIMT_IN_SHARE_H
#define SIMT_IN_SHARE_H

#include "share.h"

#include <cstdint>

/** Whether this run takes the case of type K. A template asks it by `if constexpr`, so that other cases are not
 * compiled. */
template <class K> constexpr bool in_share() {
    std::uint64_t h =
        0xcbf29ce484222325u; // FNV-1a of the type's name, then splitmix64 with the seed, as in support/selection.c
    for (const char *c = __PRETTY_FUNCTION__; *c; ++c)
        h = (h ^ static_cast<unsigned char>(*c)) * 0x100000001b3u;
    h += std::uint64_t(SIMT_SEED) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return int((h ^ h >> 31) % 100) < SIMT_SHARE;
}

#endif
