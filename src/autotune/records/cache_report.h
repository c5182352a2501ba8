/* SPDX-License-Identifier: Apache-2.0 */
/* What a cache directory holds, for people, and its removal. */
#ifndef CF_AUTOTUNE_CACHE_REPORT_H
#define CF_AUTOTUNE_CACHE_REPORT_H

#include "core/text.h"

/* directory as in cf_cache_folder_open(). One line for each file of records, one for each bad line of it, one for each bad kernel, one for
 * all kernels. *damaged counts the lines and kernels that cannot be verified. IO_ERROR: the directory cannot be used. */
conv_fft_status cf_cache_report(const char *directory, cf_text *text, int64_t *damaged);

/* Remove records, kernels and what killed writers left; *removed counts the files. A file of records that is not wholly understood stays: of
 * another version, without a header, or too large to be read. */
conv_fft_status cf_cache_clear(const char *directory, int64_t *removed);

#endif
