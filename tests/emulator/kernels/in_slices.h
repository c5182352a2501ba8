/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over rows that are divided into slices: the launch of the slices as groups, and the kernel that adds them. */
#ifndef SIMT_IN_SLICES_H
#define SIMT_IN_SLICES_H

#include "check.h"
#include "conv/gpu/slices.cuh"

#include <cmath>
#include <vector>

struct in_slices {
    int rows, count;   /* of a slice; the slices */
    long long numbers; /* of the result */
    std::vector<cplx> sums;

    in_slices(int all_rows, int slices, long long numbers_)
        : rows((all_rows + slices - 1) / slices), count((all_rows + rows - 1) / rows), numbers(numbers_),
          sums(size_t(count * numbers), cplx{NAN, NAN}) {}

    template <class C> void set(C &call, int a_columns, int b_columns) {
        call.all_rows = call.rows;
        call.rows = rows;
        call.a_group = (long long)rows * a_columns, call.b_group = (long long)rows * b_columns;
        call.c = sums.data(), call.c_group = numbers;
        call.accumulate = 0;
    }
    void add(cplx *to, bool accumulate) const {
        constexpr int SUMS = 32, SHARES = 2;
        const cplx *const from = sums.data();
        simt::options o;
        o.order = simt::order::random;
        CHECK_CLEAN(simt::launch(
            unsigned((numbers + SUMS - 1) / SUMS), unsigned(SUMS * SHARES), SUMS * SHARES * sizeof(cplx),
            [&] {
                const long long index = sum_of_thread<SUMS>();
                cplx total;
                if (add_slices<SUMS, SHARES>(total, from, index, numbers, count))
                    to[index] = accumulate ? to[index] + total : total;
            },
            o));
    }
};

#endif
