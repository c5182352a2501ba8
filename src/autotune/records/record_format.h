/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of tuning records: JSON lines. Every line begins with the CRC-32 of the rest of the line:
 *
 *     {"crc":"1c291ca3","format":"conv_fft records","version":1,"abi":1,"device":"NVIDIA H200",
 *      "kind":"gpu, compute 9.0, ...","driver":"13.0"}
 *     {"crc":"8a11e0d2","problem":"in=128x64x64x64 ...","passes":1,"keep":0,"workspace_class":0,
 *      "strategy":["staged ..."],"ms":0.31,...}
 *
 * (here broken for print). The first form is a header: the records behind it, up to the next header, are of that
 * device. So files may be joined by cat. Lines longer than CF_LINE_BYTES, with a wrong CRC, or of another form are not
 * records.
 */
#ifndef CF_AUTOTUNE_RECORD_TEXT_H
#define CF_AUTOTUNE_RECORD_TEXT_H

#include "autotune/records/records.h"

enum {
    CF_RECORD_FORMAT = 1, /* version of the text */
    CF_LINE_BYTES = 8192
};

/* The device and version on which measured times depend. `driver` is for information only. */
typedef struct cf_fingerprint {
    char device[160]; /* the name of the GPU or processor */
    char kind[96];    /* properties that devices of one name may differ in */
    char driver[64];
    int64_t version, abi; /* of the text, and of the library's interface */
} cf_fingerprint;

bool cf_fingerprint_equal(const cf_fingerprint *a, const cf_fingerprint *b);

/* Whether records behind this header apply to the device. They may be of an older version of the interface: a record
 * whose lines no longer parse is skipped when a plan looks it up. */
bool cf_fingerprint_reads(const cf_fingerprint *device, const cf_fingerprint *header);

/* The number of threads of a header of the same processor and BLAS with another number of threads; 0: it is no such
 * header. */
int cf_fingerprint_other_threads(const cf_fingerprint *device, const cf_fingerprint *header, int *own);

typedef enum cf_line_kind {
    CF_LINE_BLANK,
    CF_LINE_HEADER,
    CF_LINE_RECORD,
    CF_LINE_DAMAGED, /* the CRC is wrong, or there is none */
    CF_LINE_UNKNOWN  /* the CRC is right, but this version understands neither a header nor a record */
} cf_line_kind;

/* Read one line of `length` bytes, without its newline. Sets *record or *header, as the result says. Any bytes are
 * safe. */
cf_line_kind cf_line_read(const char *line, size_t length, cf_fingerprint *header, cf_record *record);

/* Write a line with its newline. `line` has CF_LINE_BYTES. OUT_OF_MEMORY. */
conv_fft_status cf_header_format(const cf_fingerprint *header, char *line);
conv_fft_status cf_record_format(const cf_record *record, char *line);

#endif
