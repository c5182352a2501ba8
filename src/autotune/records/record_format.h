/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of tuning records: JSON lines. Every line begins with the CRC-32 of what stands behind it:
 *
 *     {"crc":"1c291ca3","format":"conv_fft records","version":1,"abi":1,"device":"NVIDIA H200","kind":"gpu, compute 9.0, ...","driver":"13.0"}
 *     {"crc":"8a11e0d2","problem":"in=128x64x64x64 ...","passes":1,"keep":0,"workspace_class":0,"strategy":["staged ..."],"ms":0.31,...}
 *
 * The first form is a header: the records behind it, up to the next header, are of that device. So files may be joined by cat. A line that
 * is longer than CF_LINE_BYTES, whose CRC is wrong or that is not what it should be is not a record.
 */
#ifndef CF_AUTOTUNE_RECORD_TEXT_H
#define CF_AUTOTUNE_RECORD_TEXT_H

#include "autotune/records/records.h"

enum {
    CF_RECORD_FORMAT = 1, /* version of the text */
    CF_LINE_BYTES = 8192
};

/* What times depend on. `driver` is information. */
typedef struct cf_fingerprint {
    char device[160]; /* the GPU's or the processor's name */
    char kind[96];    /* what else tells it from others of that name */
    char driver[64];
    int64_t version, abi; /* of the text, and of the library's interface */
} cf_fingerprint;

bool cf_fingerprint_equal(const cf_fingerprint *a, const cf_fingerprint *b);

/* Whether the records behind a header are those of a device: written by this version of the interface or an older one. A line of an older
 * one that no longer parses is left out where it is used. */
bool cf_fingerprint_reads(const cf_fingerprint *device, const cf_fingerprint *header);

typedef enum cf_line_kind {
    CF_LINE_BLANK,
    CF_LINE_HEADER,
    CF_LINE_RECORD,
    CF_LINE_DAMAGED, /* the CRC is wrong, or there is none */
    CF_LINE_UNKNOWN  /* whole, but neither a header nor a record that this version understands */
} cf_line_kind;

/* Read one line of `length` bytes, without its end. `record` or `header` is set if the result says so. Any bytes are safe. */
cf_line_kind cf_line_read(const char *line, size_t length, cf_fingerprint *header, cf_record *record);

/* Write a line with its end. `line` has CF_LINE_BYTES. OUT_OF_MEMORY. */
conv_fft_status cf_header_format(const cf_fingerprint *header, char *line);
conv_fft_status cf_record_format(const cf_record *record, char *line);

#endif
