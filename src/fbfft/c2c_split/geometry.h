/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of c2c_split/lines.cuh in shared memory, for the host and the kernel, in chunks of 16 bytes. A row is 256
 * complex numbers, and a line is 2^log_n / 256 rows. The pitch of rows makes neighbouring bins, which are in different
 * rows, differ in their banks. If `columns` lines are neighbours in memory, two or four pairs of them are accessed
 * together, and their pitch makes them differ in their banks. */
#ifndef CF_FBFFT_C2C_SPLIT_GEOMETRY_H
#define CF_FBFFT_C2C_SPLIT_GEOMETRY_H

#include "core/host_device.h"

/* Forms of the kernel: see kernel.cuh, and reals.cuh for the last one. */
enum {
    CF_C2C_SPLIT_ROWS,
    CF_C2C_SPLIT_COLUMNS,
    CF_C2C_SPLIT_FIRST,
    CF_C2C_SPLIT_REALS
};
enum {
    CF_C2C_SPLIT_PAIRS = 4 /* pairs of bins of a thread of the form REALS */
};

CF_CONSTEXPR int cf_c2c_split_pitch(int log_n) { return log_n == 10 ? 130 : 129; }
/* columns = 1: the lines are rows of memory. */
CF_CONSTEXPR int cf_c2c_split_line(int log_n, int columns) {
    return (cf_c2c_split_pitch(log_n) << (log_n - 8)) +
           (columns < 4 ? 0 : ((columns == 4 ? 6 : 5) - ((cf_c2c_split_pitch(log_n) << (log_n - 8)) & 3)) & 3);
}

#endif
