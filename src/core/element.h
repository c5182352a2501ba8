/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CORE_ELEMENT_H
#define CF_CORE_ELEMENT_H

#include "conv_fft.h"

/* The value of one element of a tensor, exactly. */
double cf_element_value(conv_fft_dtype dtype, const void *element);

#endif
