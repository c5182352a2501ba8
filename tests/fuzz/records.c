/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a file of tuning records. Nothing is read beyond them. Accepted records can be written and read again,
 * and their texts are parsed or refused. A good line after the bytes is always read. If the first byte is odd, each
 * line gets its right CRC, so that the code after the check of the CRC is reached too.
 */
#include "autotune/records/record_file.h"
#include "conv/problem/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void need(bool condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "fuzz_records: %s\n", what);
    abort();
}

static cf_fingerprint device(void) {
    cf_fingerprint f = {.version = CF_RECORD_FORMAT, .abi = CONV_FFT_ABI};
    strcpy(f.device, "A");
    strcpy(f.kind, "B");
    return f;
}

static void parse_texts(const cf_record *record) {
    conv_fft_problem problem;
    cf_strategy strategy;
    char name[64];
    cf_problem_parse(record->key.problem, &problem, name, sizeof name);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        for (int rank = 1; rank <= CONV_FFT_MAX_RANK; ++rank)
            cf_strategy_parse(record->strategy[pass], rank, &strategy);
}

static conv_fft_status see(const cf_file_line *line, void *user) {
    cf_fingerprint header;
    cf_record again;
    char text[CF_LINE_BYTES];
    if (line->kind != CF_LINE_RECORD)
        return CONV_FFT_SUCCESS;
    *(int *)user += line->ours;
    need(cf_record_format(line->record, text) == CONV_FFT_SUCCESS, "a record that was read cannot be written");
    need(cf_line_read(text, strlen(text) - 1, &header, &again) == CF_LINE_RECORD, "a record is not read again");
    need(cf_record_key_compare(&again.key, &line->record->key) == 0, "a record has another key when read again");
    parse_texts(line->record);
    return CONV_FFT_SUCCESS;
}

/* Give every line that is long enough a right CRC. */
static void seal(char *text, size_t bytes) {
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        const size_t length = end ? (size_t)(end - text) - at : bytes - at;
        if (length > 18) {
            char digits[9];
            snprintf(digits, sizeof digits, "%08lx", crc32(0, (const Bytef *)text + at + 18, (uInt)(length - 18)));
            memcpy(text + at, "{\"crc\":\"", 8);
            memcpy(text + at + 8, digits, 8);
            memcpy(text + at + 16, "\",", 2);
        }
        at += length + 1;
    }
}

static size_t add_good_lines(char *text, size_t at) {
    const cf_fingerprint f = device();
    cf_record record;
    memset(&record, 0, sizeof record);
    strcpy(record.key.problem, "in=1x1x9 out=1");
    record.key.passes = CONV_FFT_FORWARD;
    strcpy(record.strategy[CF_PASS_FORWARD], "staged");
    record.direct_ms = -1.0;
    record.mode = CONV_FFT_TUNE_MEASURE;
    text[at++] = '\n';
    need(cf_header_format(&f, text + at) == CONV_FFT_SUCCESS, "header");
    at += strlen(text + at);
    need(cf_record_format(&record, text + at) == CONV_FFT_SUCCESS, "record");
    return at + strlen(text + at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    if (bytes == 0)
        return 0;
    const bool sealed = data[0] & 1;
    const cf_fingerprint f = device();
    int before = 0, after = 0;
    /* Exactly as long as it is, so that a sanitizer sees a read beyond the end. */
    char *exact = malloc(bytes), *text = malloc(bytes + 2 * CF_LINE_BYTES + 1);
    need(exact && text, "out of memory");
    memcpy(exact, data + 1, bytes - 1);
    if (sealed)
        seal(exact, bytes - 1);
    need(cf_record_text_scan(exact, bytes - 1, &f, see, &before) == CONV_FFT_SUCCESS, "the scan failed");
    memcpy(text, exact, bytes - 1);
    const size_t all = add_good_lines(text, bytes - 1);
    need(cf_record_text_scan(text, all, &f, see, &after) == CONV_FFT_SUCCESS, "the scan failed");
    need(after == before + 1, "a good line behind others is not read");
    free(text);
    free(exact);
    return 0;
}
