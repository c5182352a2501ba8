/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory of register-resident kernels (register_resident.cuh), for the host, the kernels and the emulator.
 * Each plane has two table entries before it: one of each side. Offsets are complex numbers behind the tables. */
#ifndef CF_CONV_FUSED_GEOMETRY_H
#define CF_CONV_FUSED_GEOMETRY_H

#include "core/host_device.h"

enum {
    CF_RESIDENT_BARRIERS = 3 * 8, /* bytes: two mbarriers of the ring of weights, one of the staged rows */
    CF_FUSED_CHUNK = 16           /* bytes that one access or bulk copy moves at least */
};

/* Elements of the staged rows of a plane (whole_rows.cuh): `elements` of `bytes` each, in whole chunks. 16-bit planes
 * have one chunk more, because they may start inside one. */
CF_CONSTEXPR long long cf_whole_rows_size(long long elements, int bytes) {
    const int unit = CF_FUSED_CHUNK / bytes;
    return (elements + unit - 1) / unit * unit + (bytes == 2 ? unit : 0);
}

/* Whether two threads with neighbouring points can make words of two 16-bit elements (packed_words.cuh). width:
 * elements of a row. first: the point of the first one. tasks: of the last step of a row. */
CF_CONSTEXPR bool cf_whole_rows_pack(int bytes, long long width, long long first, int tasks) {
    return bytes == 2 && width % 2 == 0 && first % 2 == 0 && tasks % 4 == 0;
}

typedef struct cf_resident_offsets {
    long long weights; /* offset of the ring of weights */
    long long rows;    /* offset of the staged rows */
} cf_resident_offsets;

/* buffers: complex numbers of all buffers. ring: complex numbers of the ring. number: bytes of a complex number. */
CF_CONSTEXPR cf_resident_offsets cf_resident_offsets_of(long long buffers, long long ring, int number) {
    const int unit = CF_FUSED_CHUNK / number;
    cf_resident_offsets s = {(buffers + unit - 1) / unit * unit, 0};
    s.rows = s.weights + (ring + unit - 1) / unit * unit;
    return s;
}

#endif
