/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of many kinds that are planned on the substitute GPU of tests/fakes, and folders of its libraries. */
#ifndef TEST_FAKE_LAYERS_H
#define TEST_FAKE_LAYERS_H

#include "support/fake_context.h"

#define WITHOUT_BLAS FAKES "/good"
#define WITH_BLAS FAKES "/good:" FAKES "/with_cublas"
#define DRIVER FAKES "/good/libcuda.so.1"

enum {
    FAKE_LAYERS = 8
};
extern const char *const fake_layer_lines[FAKE_LAYERS];

#endif
