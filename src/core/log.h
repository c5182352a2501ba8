/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on the standard error stream, if the level allows. */
#ifndef CF_CORE_LOG_H
#define CF_CORE_LOG_H

#include "core/status.h"

/* The level asked for, with CONV_FFT_LOG_DEFAULT resolved through the environment variable CONV_FFT_LOG. */
conv_fft_log_level cf_log_level(conv_fft_log_level asked);

void cf_log(conv_fft_log_level level, conv_fft_log_level line_level, const char *format, ...) CF_PRINTF(3, 4);

#endif
