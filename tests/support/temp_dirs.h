/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of files: temporary directories, another user, and the warnings of the library. */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Setup and teardown of cmocka: *state is the path of a new directory. Teardown removes it with its contents. */
int scratch_create(void **state);
int scratch_remove(void **state);

/* directory/name, in memory that is valid until eight further calls. */
const char *scratch_path(const char *directory, const char *name);
void scratch_write(const char *path, const void *data, size_t bytes);
/* The content with a 0 at its end; the caller frees it. NULL: it cannot be read. */
char *scratch_read(const char *path, size_t *bytes);
/* The number of files with this suffix. `first` (may be NULL; 1024 bytes) receives the path of one. */
int scratch_count(const char *directory, const char *suffix, char *first);

/* Root may do everything, so the code from begin to end runs as an ordinary user. The directory becomes that user's. */
void unprivileged_begin(const char *directory);
void unprivileged_end(void);

/* Collect the standard error stream from begin to end. capture_end() returns the text, which is valid until the next
 * begin. */
void capture_begin(void);
const char *capture_end(void);
/* The number of occurrences of `part`. */
int occurrences(const char *text, const char *part);

#endif
