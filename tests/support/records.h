/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning records for tests. */
#ifndef TEST_RECORDS_H
#define TEST_RECORDS_H

#include "autotune/records/record_cache.h"

/* A device that is not installed. */
cf_fingerprint test_fingerprint(const char *device);
/* A record of the forward pass of problem number `number`. */
cf_record test_record(int number, double ms, int64_t written);

/* The text of a file: a header of the device, and records 0 to count - 1, of 1 ms. The caller frees it. */
char *test_file_text(const char *device, int count);

/* A line with a right CRC around any content. Returns its length. */
size_t test_sealed_line(const char *content, char line[CF_LINE_BYTES]);

/* The number of records of the device in a file or a cache directory; 0 if it cannot be read. counts may be NULL. */
size_t records_in_file(const char *path, const char *device, cf_file_counts *counts);
size_t records_in_cache(const char *directory, const char *device, int64_t *corrupt);

/* A cache of the device in a directory. */
cf_record_cache test_cache(const char *directory, const char *device);

#endif
