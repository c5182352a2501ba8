/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that public functions of several files share. */
#ifndef CF_API_H
#define CF_API_H

#include "core/status.h"

#define REQUIRE_POINTER(pointer) CF_REQUIRE((pointer) != NULL, #pointer " is NULL; it must not be")

conv_fft_status cf_check_plan_options(const conv_fft_plan_options *options);

#endif
