/* SPDX-License-Identifier: Apache-2.0 */
#include "support/records.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

static void need(bool condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "%s: %s\n", what, conv_fft_last_error());
    abort();
}

cf_fingerprint test_fingerprint(const char *device) {
    cf_fingerprint f = {.version = CF_RECORD_FORMAT, .abi = CONV_FFT_ABI};
    snprintf(f.device, sizeof f.device, "%s", device);
    snprintf(f.kind, sizeof f.kind, "gpu, compute 9.0, multiprocessors 132");
    snprintf(f.driver, sizeof f.driver, "CUDA 13.0");
    return f;
}

cf_record test_record(int number, double ms, int64_t written) {
    cf_record r;
    memset(&r, 0, sizeof r);
    snprintf(r.key.problem, sizeof r.key.problem, "in=1x1x%d out=1 kernel=3", 10 + number);
    r.key.passes = CONV_FFT_FORWARD;
    snprintf(r.strategy[CF_PASS_FORWARD], sizeof r.strategy[0], "staged basis=%d", 16 + number);
    r.ms = ms;
    r.predicted_ms = 2.0 * ms;
    r.direct_ms = -1.0;
    r.workspace_bytes = 4096;
    r.candidates = 8;
    r.mode = CONV_FFT_TUNE_MEASURE;
    r.written = r.decided = written;
    return r;
}

char *test_file_text(const char *device, int count) {
    char *text = malloc((size_t)(count + 1) * CF_LINE_BYTES);
    need(text != NULL, "malloc");
    const cf_fingerprint f = test_fingerprint(device);
    need(cf_header_format(&f, text) == CONV_FFT_SUCCESS, "header");
    for (int i = 0; i < count; ++i) {
        const cf_record r = test_record(i, 1.0, 1 + i);
        need(cf_record_format(&r, text + strlen(text)) == CONV_FFT_SUCCESS, "record");
    }
    return text;
}

size_t test_sealed_line(const char *content, char line[CF_LINE_BYTES]) {
    const int length = snprintf(line, CF_LINE_BYTES, "{\"crc\":\"00000000\",%s", content);
    char digits[9];
    snprintf(digits, sizeof digits, "%08lx", crc32(0, (const Bytef *)line + 18, (uInt)length - 18));
    memcpy(line + 8, digits, 8);
    return (size_t)length;
}

size_t records_in_file(const char *path, const char *device, cf_file_counts *counts) {
    cf_file_counts ignored;
    cf_records records = {0};
    const cf_fingerprint f = test_fingerprint(device);
    cf_record_file_read(AT_FDCWD, path, &f, false, CF_RANK_CACHE, &records, counts ? counts : &ignored);
    const size_t count = records.count;
    cf_records_clear(&records);
    return count;
}

cf_record_cache test_cache(const char *directory, const char *device) {
    cf_record_cache cache;
    const cf_fingerprint f = test_fingerprint(device);
    need(cf_record_cache_init(&cache, directory, &f, CONV_FFT_LOG_WARNING) == CONV_FFT_SUCCESS, "cache");
    return cache;
}

size_t records_in_cache(const char *directory, const char *device, int64_t *corrupt) {
    int64_t ignored = 0;
    cf_records records = {0};
    cf_record_cache cache = test_cache(directory, device);
    need(cf_record_cache_read(&cache, &records, corrupt ? corrupt : &ignored) == CONV_FFT_SUCCESS, "read");
    const size_t count = records.count;
    cf_records_clear(&records);
    cf_record_cache_clear(&cache);
    return count;
}
