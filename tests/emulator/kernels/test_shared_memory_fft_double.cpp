// SPDX-License-Identifier: Apache-2.0
// The same for transforms in double, which are another program's: kernels of both types have the same names.
#include "kernels/test_shared_memory_fft.cpp"
