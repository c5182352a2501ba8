/* SPDX-License-Identifier: Apache-2.0 */
#include "core/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

conv_fft_log_level cf_log_level(conv_fft_log_level asked) {
    if (asked != CONV_FFT_LOG_DEFAULT)
        return asked;
    static const char *const words[] = {[CONV_FFT_LOG_SILENT] = "silent",
                                        [CONV_FFT_LOG_WARNING] = "warning",
                                        [CONV_FFT_LOG_INFO] = "info",
                                        [CONV_FFT_LOG_CALLS] = "calls"};
    static atomic_bool said;
    const char *text = getenv("CONV_FFT_LOG");
    if (!text || !*text)
        return CONV_FFT_LOG_WARNING;
    for (int level = CONV_FFT_LOG_SILENT; level <= CONV_FFT_LOG_CALLS; ++level)
        if (strcmp(text, words[level]) == 0 || (text[0] == '0' + level && text[1] == '\0'))
            return (conv_fft_log_level)level;
    if (!atomic_exchange(&said, true))
        cf_log(CONV_FFT_LOG_WARNING, CONV_FFT_LOG_WARNING,
               "CONV_FFT_LOG is \"%.100s\"; it must be 1 or silent, 2 or warning, 3 or info, 4 or calls; warnings are "
               "shown",
               text);
    return CONV_FFT_LOG_WARNING;
}

void cf_log(conv_fft_log_level level, conv_fft_log_level line_level, const char *format, ...) {
    if (line_level > level)
        return;
    /* One write per line, so that lines of several threads do not mix. */
    char line[2300];
    static const char prefix[] = "conv_fft: ";
    memcpy(line, prefix, sizeof prefix);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + strlen(prefix), sizeof line - sizeof prefix - 1, format, arguments);
    va_end(arguments);
    strcat(line, "\n");
    fputs(line, stderr);
}
