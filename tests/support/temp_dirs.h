/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of files need: directories of their own, another user, and what the library warns of. */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Setup and teardown of cmocka: *state is the path of a new directory, removed with all in it. */
int scratch_create(void **state);
int scratch_remove(void **state);

/* directory/name, in memory that lives until the next eight calls. */
const char *scratch_path(const char *directory, const char *name);
void scratch_write(const char *path, const void *data, size_t bytes);
/* The content with a 0 behind it, to be freed. NULL: it cannot be read. */
char *scratch_read(const char *path, size_t *bytes);
/* Files whose names end so. `first` (may be NULL; 1024 bytes) receives the path of one. */
int scratch_count(const char *directory, const char *suffix, char *first);

/* Permissions do not bind root: do as an ordinary user would, from begin to end. The directory becomes that user's. */
void unprivileged_begin(const char *directory);
void unprivileged_end(void);

/* Collect the standard error stream from begin to end; end returns the text, which lives until the next begin. */
void capture_begin(void);
const char *capture_end(void);
/* How often `part` occurs. */
int occurrences(const char *text, const char *part);

#endif
