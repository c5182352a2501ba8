/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/records/record_format.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char format_name[] = "conv_fft records";
static const char before_crc[] = "{\"crc\":\"";

enum {
    CRC_DIGITS = 8,
    CRC_AT = sizeof before_crc - 1,
    COVERED_AT = CRC_AT + CRC_DIGITS + 2 /* behind the quote and the comma */
};

static bool is_same_device(const cf_fingerprint *a, const cf_fingerprint *b) {
    return a->version == b->version && strcmp(a->device, b->device) == 0 && strcmp(a->kind, b->kind) == 0;
}

bool cf_fingerprint_equal(const cf_fingerprint *a, const cf_fingerprint *b) {
    return a->abi == b->abi && is_same_device(a, b);
}

bool cf_fingerprint_reads(const cf_fingerprint *device, const cf_fingerprint *header) {
    return header->abi <= device->abi && is_same_device(device, header);
}

/* "cpu, threads 16, blas": the number, and what stands behind it. 0: it is of another form. */
static int threads_of(const char *kind, const char **rest) {
    static const char before[] = "cpu, threads ";
    char *end;
    if (strncmp(kind, before, sizeof before - 1) != 0)
        return 0;
    const long threads = strtol(kind + sizeof before - 1, &end, 10);
    *rest = end;
    return threads > 0 && threads <= INT_MAX / 4 ? (int)threads : 0;
}

int cf_fingerprint_other_threads(const cf_fingerprint *device, const cf_fingerprint *header, int *own) {
    const char *own_rest = "", *rest = "";
    *own = threads_of(device->kind, &own_rest);
    const int threads = threads_of(header->kind, &rest);
    const bool other = *own > 0 && threads > 0 && threads != *own && strcmp(own_rest, rest) == 0 &&
                       device->version == header->version && header->abi <= device->abi &&
                       strcmp(device->device, header->device) == 0;
    return other ? threads : 0;
}

/* ---- reading */

/* Copy printable ASCII of at most bytes - 1 characters. Nothing else: these texts are printed on terminals. */
static bool copy_text(const json_t *value, char *text, size_t bytes) {
    const char *from = json_string_value(value);
    if (!from || json_string_length(value) >= bytes)
        return false;
    for (const char *at = from; *at; ++at) {
        if (*at < ' ' || *at > '~')
            return false;
    }
    memset(text, 0, bytes);
    memcpy(text, from, strlen(from));
    return true;
}

static bool read_text(const json_t *object, const char *key, char *text, size_t bytes) {
    return copy_text(json_object_get(object, key), text, bytes);
}

static bool read_whole(const json_t *object, const char *key, int64_t max_value, int64_t *number) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        return false;
    *number = json_integer_value(value);
    return *number >= 0 && *number <= max_value;
}

/* Milliseconds, up to a month of them. */
static bool read_ms(const json_t *object, const char *key, double *ms) {
    const json_t *value = json_object_get(object, key);
    *ms = json_number_value(value);
    return json_is_number(value) && isfinite(*ms) && *ms >= 0.0 && *ms < 3e9;
}

static bool read_strategies(const json_t *list, cf_record *record) {
    size_t at = 0;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (!(record->key.passes & 1 << pass))
            continue;
        if (!copy_text(json_array_get(list, at++), record->strategy[pass], sizeof record->strategy[pass]))
            return false;
    }
    return json_array_size(list) == at;
}

static bool read_record(const json_t *object, cf_record *record) {
    int64_t passes, keep, workspace_class, workspace, mode;
    memset(record, 0, sizeof *record);
    cf_record_key *key = &record->key;
    if (!read_text(object, "problem", key->problem, sizeof key->problem) ||
        !read_whole(object, "passes", CONV_FFT_ALL_PASSES, &passes) || passes == 0 ||
        !read_whole(object, "keep", CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W, &keep) ||
        !read_whole(object, "workspace_class", INT64_MAX, &workspace_class) ||
        !read_whole(object, "workspace", INT64_MAX, &workspace) ||
        !read_whole(object, "mode", CONV_FFT_TUNE_EXHAUSTIVE, &mode) || mode < CONV_FFT_TUNE_MEASURE ||
        !read_whole(object, "candidates", INT32_MAX, &record->candidates) ||
        !read_whole(object, "written", INT64_MAX, &record->written) || !read_ms(object, "ms", &record->ms) ||
        !read_ms(object, "predicted_ms", &record->predicted_ms))
        return false;
    key->passes = (int)passes;
    key->keep = (int)keep;
    key->workspace_class = (uint64_t)workspace_class;
    record->workspace_bytes = (uint64_t)workspace;
    record->mode = (conv_fft_tuning)mode;
    record->direct_ms = -1.0;
    record->decided = record->written;
    if (json_object_get(object, "decided") && !read_whole(object, "decided", INT64_MAX, &record->decided))
        return false;
    if (json_object_get(object, "direct_ms") && !read_ms(object, "direct_ms", &record->direct_ms))
        return false;
    if (json_object_get(object, "model_ms") && !read_ms(object, "model_ms", &record->model_ms))
        return false;
    if (json_object_get(object, "fastest_ms") && !read_ms(object, "fastest_ms", &record->fastest_ms))
        return false;
    const json_t *processors = json_object_get(object, "processors");
    record->processors = json_number_value(processors);
    if (processors && !(json_is_number(processors) && record->processors >= 0.0 && record->processors < INT_MAX))
        return false;
    if (json_object_get(object, "library") && !read_text(object, "library", record->library, sizeof record->library))
        return false;
    return cf_workspace_class(key->workspace_class) == key->workspace_class &&
           read_strategies(json_object_get(object, "strategy"), record);
}

static bool read_header(const json_t *object, cf_fingerprint *header) {
    memset(header, 0, sizeof *header);
    const char *format = json_string_value(json_object_get(object, "format"));
    if (!format || strcmp(format, format_name) != 0 || !read_whole(object, "version", INT64_MAX, &header->version) ||
        !read_whole(object, "abi", INT64_MAX, &header->abi))
        return false;
    /* A later version may describe its device differently. */
    const bool device = read_text(object, "device", header->device, sizeof header->device) &&
                        read_text(object, "kind", header->kind, sizeof header->kind);
    read_text(object, "driver", header->driver, sizeof header->driver);
    return device || header->version != CF_RECORD_FORMAT;
}

static bool crc_is_right(const char *line, size_t length) {
    if (length <= COVERED_AT || memcmp(line, before_crc, CRC_AT) != 0 || line[COVERED_AT - 2] != '"' ||
        line[COVERED_AT - 1] != ',')
        return false;
    char digits[CRC_DIGITS + 1];
    const uLong crc = crc32(0, (const Bytef *)line + COVERED_AT, (uInt)(length - COVERED_AT));
    snprintf(digits, sizeof digits, "%08lx", crc);
    return memcmp(line + CRC_AT, digits, CRC_DIGITS) == 0;
}

cf_line_kind cf_line_read(const char *line, size_t length, cf_fingerprint *header, cf_record *record) {
    if (length > 0 && line[length - 1] == '\r')
        --length;
    if (length == 0)
        return CF_LINE_BLANK;
    if (length >= CF_LINE_BYTES || !crc_is_right(line, length))
        return CF_LINE_DAMAGED;
    json_error_t error;
    json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    cf_line_kind kind = CF_LINE_UNKNOWN;
    if (json_object_get(object, "format"))
        kind = read_header(object, header) ? CF_LINE_HEADER : CF_LINE_UNKNOWN;
    else if (object && read_record(object, record))
        kind = CF_LINE_RECORD;
    json_decref(object);
    return kind;
}

/* ---- writing */

/* Write the object as a line, and release it. */
static conv_fft_status write_line(json_t *object, char *line) {
    const int start = snprintf(line, CF_LINE_BYTES, "%s00000000\",", before_crc);
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(object);
    if (!text)
        return cf_fail_memory(CF_LINE_BYTES, "the text of a tuning record");
    const size_t length = strlen(text) - 1, capacity = CF_LINE_BYTES - (size_t)start - 2;
    if (length > capacity) {
        free(text);
        return cf_fail(CONV_FFT_INTERNAL_ERROR, "a tuning record takes %zu bytes; at most %zu are allowed", length,
                       capacity);
    }
    memcpy(line + start, text + 1, length); /* without its opening brace */
    memcpy(line + start + length, "\n", 2);
    free(text);
    char digits[CRC_DIGITS + 1];
    snprintf(digits, sizeof digits, "%08lx", crc32(0, (const Bytef *)line + COVERED_AT, (uInt)length));
    memcpy(line + CRC_AT, digits, CRC_DIGITS);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_header_format(const cf_fingerprint *h, char *line) {
    return write_line(json_pack("{s:s, s:I, s:I, s:s, s:s, s:s}", "format", format_name, "version",
                                (json_int_t)h->version, "abi", (json_int_t)h->abi, "device", h->device, "kind", h->kind,
                                "driver", h->driver),
                      line);
}

conv_fft_status cf_record_format(const cf_record *r, char *line) {
    json_t *strategies = json_array();
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (r->key.passes & 1 << pass)
            json_array_append_new(strategies, json_string(r->strategy[pass]));
    }
    json_t *object =
        json_pack("{s:s, s:i, s:i, s:I, s:o, s:f, s:f, s:I, s:I, s:i, s:I}", "problem", r->key.problem, "passes",
                  r->key.passes, "keep", r->key.keep, "workspace_class", (json_int_t)r->key.workspace_class, "strategy",
                  strategies, "ms", r->ms, "predicted_ms", r->predicted_ms, "workspace", (json_int_t)r->workspace_bytes,
                  "candidates", (json_int_t)r->candidates, "mode", (int)r->mode, "written", (json_int_t)r->written);
    if (object && r->decided != r->written)
        json_object_set_new(object, "decided", json_integer((json_int_t)r->decided));
    if (object && r->direct_ms >= 0.0)
        json_object_set_new(object, "direct_ms", json_real(r->direct_ms));
    if (object && r->model_ms > 0.0)
        json_object_set_new(object, "model_ms", json_real(r->model_ms));
    if (object && r->fastest_ms > 0.0)
        json_object_set_new(object, "fastest_ms", json_real(r->fastest_ms));
    if (object && r->processors > 0.0)
        json_object_set_new(object, "processors", json_real(r->processors));
    if (object && r->library[0])
        json_object_set_new(object, "library", json_string(r->library));
    return write_line(object, line);
}
