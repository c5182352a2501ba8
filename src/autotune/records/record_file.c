/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/records/record_file.h"

#include "cuda/jit/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RECORDS_OF_A_HEADER = 32 /* records between two headers of a file that is written whole */
};

static conv_fft_status fail_errno(const char *what, const char *name) {
    return cf_fail(CONV_FFT_IO_ERROR, "the tuning records %s cannot be %s: %s", name, what, strerror(errno));
}

/* ---- reading */

/* O_NONBLOCK: opening a pipe must not block. */
static conv_fft_status open_to_read(int directory, const char *name, int *file, int64_t *bytes) {
    *file = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*file < 0)
        return fail_errno("opened", name);
    struct stat status;
    if (fstat(*file, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(*file);
        return cf_fail(CONV_FFT_IO_ERROR, "the tuning records %s are not a regular file", name);
    }
    if (status.st_size > CF_RECORD_FILE_MAX_BYTES) {
        close(*file);
        return cf_fail(CONV_FFT_IO_ERROR, "the tuning records %s have %lld bytes; at most %d are read", name,
                       (long long)status.st_size, (int)CF_RECORD_FILE_MAX_BYTES);
    }
    *bytes = status.st_size;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_record_text_scan(const char *text, size_t bytes, const cf_fingerprint *device, cf_file_visit visit,
                                    void *user) {
    cf_fingerprint header;
    cf_record record;
    cf_file_line line = {0};
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        const size_t length = end ? (size_t)(end - text) - at : bytes - at;
        cf_fingerprint found;
        ++line.number;
        line.kind = cf_line_read(text + at, length, &found, &record);
        at += length + 1;
        if (line.kind == CF_LINE_HEADER) {
            header = found;
            line.header = &header;
        }
        line.ours = line.kind == CF_LINE_RECORD && device && line.header && cf_fingerprint_reads(device, line.header);
        line.record = line.kind == CF_LINE_RECORD ? &record : NULL;
        line.text = text + at - length - 1;
        line.length = length;
        CF_FORWARD(visit(&line, user));
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_record_file_scan(int directory, const char *name, const cf_fingerprint *device, cf_file_visit visit,
                                    void *user) {
    int file = -1;
    int64_t bytes = 0;
    CF_FORWARD(open_to_read(directory, name, &file, &bytes));
    char *text = malloc((size_t)bytes + 1);
    conv_fft_status status = text ? CONV_FFT_SUCCESS : cf_fail_memory((size_t)bytes + 1, "a file of tuning records");
    /* Lines that are appended meanwhile are not read. */
    if (status == CONV_FFT_SUCCESS && !cf_read_all(file, text, (size_t)bytes))
        status = errno ? fail_errno("read", name)
                       : cf_fail(CONV_FFT_IO_ERROR, "the tuning records %s cannot be read: they became shorter", name);
    if (status == CONV_FFT_SUCCESS)
        status = cf_record_text_scan(text, (size_t)bytes, device, visit, user);
    free(text);
    close(file);
    return status;
}

typedef struct reading {
    cf_records *records;
    bool named;
    int rank;
    cf_file_counts *counts;
} reading;

static conv_fft_status take_line(const cf_file_line *line, void *user) {
    const reading *r = user;
    cf_file_counts *counts = r->counts;
    counts->headers += line->kind == CF_LINE_HEADER;
    counts->damaged += line->kind == CF_LINE_DAMAGED;
    counts->unknown += line->kind == CF_LINE_UNKNOWN;
    const bool ours = line->ours || (r->named && line->kind == CF_LINE_RECORD && !line->header);
    counts->foreign += line->kind == CF_LINE_RECORD && !ours;
    if (!ours)
        return CONV_FFT_SUCCESS;
    cf_record record = *line->record;
    record.rank = r->rank;
    const conv_fft_status status = cf_records_add(r->records, &record, CF_KEEP_LATEST, NULL);
    if (status == CONV_FFT_NOT_SUPPORTED) { /* full */
        ++counts->unknown;
        return CONV_FFT_SUCCESS;
    }
    ++counts->records;
    return status;
}

conv_fft_status cf_record_file_read(int directory, const char *name, const cf_fingerprint *device, bool named, int rank,
                                    cf_records *records, cf_file_counts *counts) {
    reading r = {records, named, rank, counts};
    *counts = (cf_file_counts){0};
    return cf_record_file_scan(directory, name, device, take_line, &r);
}

typedef struct hint_reading {
    const cf_fingerprint *device;
    cf_records *hints;
} hint_reading;

static conv_fft_status take_hint(const cf_file_line *line, void *user) {
    const hint_reading *r = user;
    int own;
    const int threads =
        line->kind == CF_LINE_RECORD && line->header ? cf_fingerprint_other_threads(r->device, line->header, &own) : 0;
    if (threads == 0)
        return CONV_FFT_SUCCESS;
    cf_record hint = *line->record;
    hint.rank = -2 * abs(threads - own) - (threads > own); /* of two equally near numbers the lower one counts */
    const conv_fft_status status = cf_records_add(r->hints, &hint, CF_KEEP_LATEST, NULL);
    return status == CONV_FFT_NOT_SUPPORTED ? CONV_FFT_SUCCESS : status; /* full */
}

conv_fft_status cf_record_file_read_hints(int directory, const char *name, const cf_fingerprint *device,
                                          cf_records *hints) {
    hint_reading r = {device, hints};
    return cf_record_file_scan(directory, name, NULL, take_hint, &r);
}

/* ---- writing */

typedef enum first_line {
    FIRST_HEADER, /* of any version and device */
    FIRST_TORN,   /* an incomplete line, or a line with a wrong CRC: its writer was killed */
    FIRST_OTHER
} first_line;

static first_line read_first_line(int file, cf_fingerprint *header) {
    static const char beginning[] = "{\"crc\":\"";
    char text[CF_LINE_BYTES];
    cf_record record;
    const ssize_t got = pread(file, text, sizeof text, 0);
    const char *end = got > 0 ? memchr(text, '\n', (size_t)got) : NULL;
    const size_t length = end ? (size_t)(end - text) : got > 0 ? (size_t)got : 0;
    const cf_line_kind kind = cf_line_read(text, length, header, &record);
    if (kind == CF_LINE_HEADER)
        return FIRST_HEADER;
    const size_t compared = length < sizeof beginning - 1 ? length : sizeof beginning - 1;
    return kind == CF_LINE_DAMAGED && memcmp(text, beginning, compared) == 0 ? FIRST_TORN : FIRST_OTHER;
}

/* A file with other contents must not be replaced. */
static conv_fft_status check_replaceable(const char *path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return errno == ENOENT ? CONV_FFT_SUCCESS : fail_errno("replaced", path);
    struct stat status;
    cf_fingerprint header;
    const bool ours =
        fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
        (status.st_size == 0 || (read_first_line(file, &header) == FIRST_HEADER && header.version == CF_RECORD_FORMAT));
    close(file);
    if (ours)
        return CONV_FFT_SUCCESS;
    return cf_fail(CONV_FFT_IO_ERROR,
                   "%s exists and is not a file of tuning records of this version; it is not replaced", path);
}

static conv_fft_status write_lines(int file, const char *path, const cf_fingerprint *device, cf_record *const *records,
                                   size_t count) {
    char header[CF_LINE_BYTES], line[CF_LINE_BYTES];
    CF_FORWARD(cf_header_format(device, header));
    if (!cf_write_all(file, header, strlen(header)))
        return fail_errno("written", path);
    for (size_t i = 0, written = 0; i < count; ++i) {
        if (!records[i])
            continue;
        CF_FORWARD(cf_record_format(records[i], line));
        if ((written > 0 && written % RECORDS_OF_A_HEADER == 0 && !cf_write_all(file, header, strlen(header))) ||
            !cf_write_all(file, line, strlen(line)))
            return fail_errno("written", path);
        ++written;
    }
    return fsync(file) == 0 ? CONV_FFT_SUCCESS : fail_errno("written", path);
}

conv_fft_status cf_record_file_write(const char *path, const cf_fingerprint *device, cf_record *const *records,
                                     size_t count) {
    char temporary[4096];
    CF_FORWARD(check_replaceable(path));
    const int length = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    CF_REQUIRE(length > 0 && (size_t)length < sizeof temporary, "path has %zu bytes; at most %zu are allowed",
               strlen(path), sizeof temporary - 8);
    const int file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0)
        return fail_errno("written", path);
    conv_fft_status status = write_lines(file, path, device, records, count);
    fchmod(file, 0644); /* other users may read exported records */
    if (close(file) != 0 && status == CONV_FFT_SUCCESS)
        status = fail_errno("written", path);
    if (status == CONV_FFT_SUCCESS && rename(temporary, path) != 0)
        status = fail_errno("written", path);
    if (status != CONV_FFT_SUCCESS)
        unlink(temporary);
    return status;
}

/* Append the text. If it cannot be written completely, cut the file to its old length. */
static conv_fft_status put_at_end(int file, const char *name, const char *text, size_t bytes, off_t end) {
    if (cf_write_all(file, text, bytes))
        return CONV_FFT_SUCCESS;
    const int error = errno;
    if (ftruncate(file, end) != 0)
        return cf_fail(CONV_FFT_IO_ERROR,
                       "the tuning records %s cannot be written; a part of a line is left at its end: %s", name,
                       strerror(error));
    errno = error;
    return fail_errno("written", name);
}

static conv_fft_status append_to(int file, const char *name, const cf_fingerprint *device, const cf_record *record) {
    char text[2 * CF_LINE_BYTES + 1];
    size_t length = 0;
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        return cf_fail(CONV_FFT_IO_ERROR, "the tuning records %s are not a regular file", name);
    cf_fingerprint header;
    const first_line first = status.st_size > 0 ? read_first_line(file, &header) : FIRST_TORN;
    if (first == FIRST_OTHER || (first == FIRST_HEADER && !cf_fingerprint_equal(&header, device)))
        return cf_fail(CONV_FFT_IO_ERROR,
                       "the tuning records %s begin with a line that this version does not understand; nothing is "
                       "appended",
                       name);
    char last = '\n';
    if (status.st_size > 0 && pread(file, &last, 1, status.st_size - 1) == 1 && last != '\n')
        text[length++] = '\n';
    if (first == FIRST_TORN) {
        CF_FORWARD(cf_header_format(device, text + length));
        length += strlen(text + length);
    }
    CF_FORWARD(cf_record_format(record, text + length));
    length += strlen(text + length);
    if (status.st_size + (off_t)length > CF_RECORD_FILE_MAX_BYTES)
        return cf_fail(CONV_FFT_IO_ERROR, "the tuning records %s have %lld bytes; with one more they would not be read",
                       name, (long long)status.st_size);
    return put_at_end(file, name, text, length, status.st_size);
}

conv_fft_status cf_record_file_append(int directory, const char *name, const cf_fingerprint *device,
                                      const cf_record *record) {
    const int file = openat(directory, name, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (file < 0)
        return fail_errno("written", name);
    conv_fft_status status = append_to(file, name, device, record);
    if (close(file) != 0 && status == CONV_FFT_SUCCESS)
        status = fail_errno("written", name);
    return status;
}
