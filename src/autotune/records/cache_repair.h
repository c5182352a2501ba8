/* SPDX-License-Identifier: Apache-2.0 */
/* The repair of a cache directory. */
#ifndef CF_AUTOTUNE_CACHE_REPAIR_H
#define CF_AUTOTUNE_CACHE_REPAIR_H

#include "autotune/records/record_format.h"

/* Write the files of records again without the lines that cannot be verified, and remove damaged kernels. A file that
 * lost its header gets one: that of a later line of the file, or that of `device` if the file has the device's name.
 * Files of another version, without a known header, or that cannot be read stay; a warning names each. *removed counts
 * lines and kernels. directory: as in cf_cache_folder_open(). IO_ERROR: the directory or a file cannot be used or
 * written. OUT_OF_MEMORY. */
conv_fft_status cf_cache_repair(const char *directory, const cf_fingerprint *device, int64_t *removed);

#endif
