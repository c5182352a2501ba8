/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of tuning records. `directory` is an open directory, and names are relative to it (AT_FDCWD: to the working
 * directory). Any contents can be read safely: lines that cannot be verified are skipped and counted. Only files of
 * records of this version are overwritten.
 */
#ifndef CF_AUTOTUNE_RECORD_FILE_H
#define CF_AUTOTUNE_RECORD_FILE_H

#include "autotune/records/record_format.h"

enum {
    CF_RECORD_FILE_MAX_BYTES = 64 << 20 /* a larger file is not read, and none is made */
};

/* The lines of a file, by kind. */
typedef struct cf_file_counts {
    int64_t records; /* of this device */
    int64_t foreign; /* records of another device, format or version */
    int64_t damaged; /* the CRC is wrong */
    int64_t unknown; /* the CRC is right, but the line is not understood */
    int64_t headers;
} cf_file_counts;

/* One line of a file. ours: it is a record behind a header of this device. */
typedef struct cf_file_line {
    int64_t number; /* from 1 */
    cf_line_kind kind;
    bool ours;
    const cf_fingerprint *header; /* the last header above; NULL before the first */
    const cf_record *record;      /* if the kind is CF_LINE_RECORD */
    const char *text;             /* `length` bytes, without a newline */
    size_t length;
} cf_file_line;

typedef conv_fft_status (*cf_file_visit)(const cf_file_line *line, void *user);

/* Visit every line. A status of `visit` other than success ends the scan. device may be NULL: then no record is ours.
 * IO_ERROR: the file cannot be read, is no regular file, or is too large. OUT_OF_MEMORY. */
conv_fft_status cf_record_file_scan(int directory, const char *name, const cf_fingerprint *device, cf_file_visit visit,
                                    void *user);
/* The same for a text in memory. */
conv_fft_status cf_record_text_scan(const char *text, size_t bytes, const cf_fingerprint *device, cf_file_visit visit,
                                    void *user);

/* Add the records of this device to a set, with this rank. named: the file's name is that of this device, so records
 * before the first header are of it. (The header is damaged.) Of records with one key, the last decided stays. *counts
 * is also set on failure. */
conv_fft_status cf_record_file_read(int directory, const char *name, const cf_fingerprint *device, bool named, int rank,
                                    cf_records *records, cf_file_counts *counts);

/* Add the records of the same CPU with other numbers of threads. A number nearer to that of `device` has a higher rank.
 */
conv_fft_status cf_record_file_read_hints(int directory, const char *name, const cf_fingerprint *device,
                                          cf_records *hints);

/* Write the records to a temporary file, and rename it to `path`. Headers stand at the beginning and between the
 * records, so that a damaged header does not lose all records. NULL entries of the list are skipped.
 * IO_ERROR: the file cannot be written, or `path` exists and is not a file of records. */
conv_fft_status cf_record_file_write(const char *path, const cf_fingerprint *device, cf_record *const *records,
                                     size_t count);

/* Append a record in one write. A new file gets a header first. If the last line is incomplete, because its writer
 * was killed, the record begins a new line. On failure the file is as before. The caller holds the lock of the file,
 * or is its only writer. */
conv_fft_status cf_record_file_append(int directory, const char *name, const cf_fingerprint *device,
                                      const cf_record *record);

#endif
