// SPDX-License-Identifier: Apache-2.0
// The same for FP64 transforms. They are another program, because kernels of both types have the same names.
#include "kernels/test_shared_memory_fft.cpp"
