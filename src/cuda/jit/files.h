/* SPDX-License-Identifier: Apache-2.0 */
/* Read and write all bytes of a descriptor. Short reads and writes are continued. */
#ifndef CF_DEVICE_FILES_H
#define CF_DEVICE_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Returns false and sets errno if not all bytes could be read or written. errno 0: the file ended. */
bool cf_read_all(int file, void *data, size_t bytes);
bool cf_write_all(int file, const void *data, size_t bytes);

#endif
