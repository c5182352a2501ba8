/* SPDX-License-Identifier: Apache-2.0 */
/* Whole reads and writes of a descriptor, continued where a signal or the kernel cuts them short. */
#ifndef CF_DEVICE_FILES_H
#define CF_DEVICE_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* False, with errno set, if not all bytes could be read (0: the file ended) or written. */
bool cf_read_all(int file, void *data, size_t bytes);
bool cf_write_all(int file, const void *data, size_t bytes);

#endif
