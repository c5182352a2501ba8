/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of one line in shared memory.
 *
 * A line has H = R1 R2 R3 complex points. Its transform has up to three steps (R3 = 1: two), each with one tree for
 * every combination of the other two indices. Steps work in place:
 *
 *     before step 1     nothing: step 1 reads the line from memory, n = R2 R3 a + R3 b + c
 *     after step 1      [p1][b][c]
 *     after step 2      [p1][p2][c]         in registers with two steps
 *     after step 3      [p1][p2][p3]        in registers: bin k = k1 + R1 k2 + R1 R2 k3, k1 = cf_reversed(p1, R1) etc.
 *
 * Place (p1, b, c) is at p1 * MP + b * CP + c (geometry.h).
 */
#pragma once

#include "conv/long1d/geometry.h"
#include "fbfft/common/complex.cuh"

/*
 * The host prints K with R1, R2, R3 and T, the threads of a line. LAST: the radix of the last step; TASKS: its
 * trees.
 */
template <class K> struct Long1d {
    static constexpr int R1 = K::R1, R2 = K::R2, R3 = K::R3, T = K::T;
    static constexpr bool THREE = R3 > 1;
    static constexpr int H = R1 * R2 * R3, M = R2 * R3, LAST = THREE ? R3 : R2, TASKS = H / LAST;
    static constexpr cf_long1d_layout LAYOUT = cf_long1d_layout_of(R1, R2, R3);
    static constexpr int CP = LAYOUT.row, MP = LAYOUT.piece, SIZE = LAYOUT.size;
    static constexpr int FIRST_EACH = M / T, LAST_EACH = TASKS / T;
    static_assert(FIRST_EACH * T == M && LAST_EACH * T == TASKS, "threads share the work evenly");
    /* Place of point m of piece p1, after step 1; place of the first point of a task of the last step. */
    static CF_DEVICE int place(int p1, int m) { return p1 * MP + (THREE ? m / R3 * CP + m % R3 : m); }
    static CF_DEVICE int row(int task) { return THREE ? task / R2 * MP + task % R2 * CP : task * MP; }
};
