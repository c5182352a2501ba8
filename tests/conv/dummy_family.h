/* SPDX-License-Identifier: Apache-2.0 */
/* Family `scale` of test_dummy_family.c: dense FP32 tensors of one channel whose kernel has one tap, y = w x. */
#ifndef TEST_DUMMY_FAMILY_H
#define TEST_DUMMY_FAMILY_H

#include "conv/plan/family.h"

extern const cf_family dummy_family;

#endif
