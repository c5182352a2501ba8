/* SPDX-License-Identifier: Apache-2.0 */
/* A report about the contents of a cache directory, and their removal. */
#ifndef CF_AUTOTUNE_CACHE_REPORT_H
#define CF_AUTOTUNE_CACHE_REPORT_H

#include "core/text.h"

/* The report has one line for each file of records, for each bad line of it, for each bad kernel, and for all
 * kernels together. *damaged counts lines and kernels that cannot be verified. directory: as in
 * cf_cache_folder_open(). IO_ERROR: the directory cannot be used. */
conv_fft_status cf_cache_report(const char *directory, cf_text *text, int64_t *damaged);

/* Remove records, kernels and temporary files of killed writers; *removed counts the files. Files of records of another
 * version, without a header, or too large to be read stay; a warning names each. */
conv_fft_status cf_cache_clear(const char *directory, int64_t *removed);

#endif
