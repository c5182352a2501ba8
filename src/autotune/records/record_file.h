/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of tuning records. Names are taken from an open directory (AT_FDCWD: from the working directory). Reading is safe whatever the
 * file holds: what cannot be verified is skipped and counted. No file is overwritten that is not a file of records of this version.
 */
#ifndef CF_AUTOTUNE_RECORD_FILE_H
#define CF_AUTOTUNE_RECORD_FILE_H

#include "autotune/records/record_format.h"

enum {
    CF_RECORD_FILE_MAX_BYTES = 64 << 20 /* a larger file is not read, and none is made */
};

/* What a file holds, in lines. */
typedef struct cf_file_counts {
    int64_t records; /* of this device */
    int64_t foreign; /* records of another device, format or version */
    int64_t damaged; /* the CRC is wrong */
    int64_t unknown; /* whole, but not understood */
    int64_t headers;
} cf_file_counts;

/* One line as cf_record_file_scan() sees it; `ours`: a record behind a header of this device. */
typedef struct cf_file_line {
    int64_t number; /* from 1 */
    cf_line_kind kind;
    bool ours;
    const cf_fingerprint *header; /* the one in force; NULL before the first */
    const cf_record *record;      /* of kind CF_LINE_RECORD */
} cf_file_line;

typedef conv_fft_status (*cf_file_visit)(const cf_file_line *line, void *user);

/* Visit every line; what `visit` returns but success ends the scan. `device` may be NULL: no record is ours then. IO_ERROR: the file cannot
 * be read, is no regular file, or is too large. OUT_OF_MEMORY. */
conv_fft_status cf_record_file_scan(int directory, const char *name, const cf_fingerprint *device, cf_file_visit visit,
                                    void *user);
/* The same of a text in memory. */
conv_fft_status cf_record_text_scan(const char *text, size_t bytes, const cf_fingerprint *device, cf_file_visit visit,
                                    void *user);

/* Add the records of this device to a set, with this rank; the last decided stay. *counts is set in any case. */
conv_fft_status cf_record_file_read(int directory, const char *name, const cf_fingerprint *device, int rank,
                                    cf_records *records, cf_file_counts *counts);

/* Write a header and the records (NULL in the list: left out) to a temporary file, then rename it. IO_ERROR: it cannot be written, or what
 * is there is not a file of records. */
conv_fft_status cf_record_file_write(const char *path, const cf_fingerprint *device, cf_record *const *records,
                                     size_t count);

/* Append a record in one write, behind a header if the file is new, and on a line of its own if a writer was killed within its line.
 * On success the record is in the file; on failure the file is as it was. The caller holds the lock of the file, or owns it. */
conv_fft_status cf_record_file_append(int directory, const char *name, const cf_fingerprint *device,
                                      const cf_record *record);

#endif
