/* SPDX-License-Identifier: Apache-2.0 */
/* The transform of a line of a power of two, in double. */
#ifndef SIMT_RECURSIVE_FFT_H
#define SIMT_RECURSIVE_FFT_H

#include <cmath>
#include <complex>
#include <vector>

typedef std::complex<double> complex;

/* Recursion over the even and odd points. */
inline std::vector<complex> transform(const std::vector<complex> &x, int sign) {
    const size_t n = x.size();
    const double turn = sign * 2 * std::acos(-1.0) / double(n);
    if (n == 1)
        return x;
    std::vector<complex> even(n / 2), odd(n / 2), y(n);
    for (size_t i = 0; i < n / 2; ++i)
        even[i] = x[2 * i], odd[i] = x[2 * i + 1];
    even = transform(even, sign), odd = transform(odd, sign);
    for (size_t k = 0; k < n / 2; ++k) {
        const complex turned = odd[k] * std::polar(1.0, turn * double(k));
        y[k] = even[k] + turned, y[k + n / 2] = even[k] - turned;
    }
    return y;
}

#endif
