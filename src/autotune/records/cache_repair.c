/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/records/cache_repair.h"

#include "autotune/records/record_cache.h"
#include "core/log.h"
#include "cuda/jit/cubin_file.h"
#include "cuda/jit/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char temporary[] = "tuning.repaired"; /* only one process repairs at a time: it holds the lock */

/* What is known of a file. */
typedef struct repair {
    const char *name;
    int64_t headers, records, bad;
    bool headless; /* records stand before the first header */
    bool other_version;
    bool has_header;       /* the next member is set */
    cf_fingerprint header; /* of the device whose name the file has */
    /* The lines that stay. */
    char *text;
    size_t bytes, capacity;
} repair;

static bool is_named_after(const char *name, const cf_fingerprint *device) {
    char stem[CF_STEM_BYTES];
    cf_fingerprint_stem(device, stem);
    const size_t length = strlen(stem);
    return strncmp(name, stem, length) == 0 && name[length] == '.';
}

static void note_header(repair *r, const cf_fingerprint *header) {
    if (r->has_header || !is_named_after(r->name, header))
        return;
    r->header = *header;
    r->has_header = true;
}

static conv_fft_status add_text(repair *r, const char *text, size_t length) {
    if (r->bytes + length > r->capacity) {
        const size_t capacity = 2 * (r->bytes + length);
        char *grown = realloc(r->text, capacity);
        if (!grown)
            return cf_fail_memory(capacity, "a file of tuning records");
        r->text = grown;
        r->capacity = capacity;
    }
    memcpy(r->text + r->bytes, text, length);
    r->bytes += length;
    return CONV_FFT_SUCCESS;
}

static conv_fft_status take_line(const cf_file_line *line, void *user) {
    repair *r = user;
    if (line->kind == CF_LINE_DAMAGED || line->kind == CF_LINE_UNKNOWN)
        ++r->bad;
    if (line->kind == CF_LINE_HEADER) {
        ++r->headers;
        r->other_version =
            r->other_version || line->header->version != CF_RECORD_FORMAT || line->header->abi > CONV_FFT_ABI;
        note_header(r, line->header);
    }
    if (line->kind == CF_LINE_RECORD) {
        ++r->records;
        r->headless = r->headless || !line->header;
    }
    if (line->kind != CF_LINE_HEADER && line->kind != CF_LINE_RECORD)
        return CONV_FFT_SUCCESS;
    CF_FORWARD(add_text(r, line->text, line->length));
    return add_text(r, "\n", 1);
}

static conv_fft_status fail_write(const char *name) {
    return cf_fail(CONV_FFT_IO_ERROR, "the tuning records %s cannot be written: %s", name, strerror(errno));
}

/* Replace the file by the lines that stay. */
static conv_fft_status replace(int folder, const repair *r) {
    char header[CF_LINE_BYTES] = "";
    if (r->headless)
        CF_FORWARD(cf_header_format(&r->header, header));
    unlinkat(folder, temporary, 0); /* of a process that was killed */
    const int file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return fail_write(r->name);
    bool good = cf_write_all(file, header, strlen(header)) && cf_write_all(file, r->text, r->bytes) && fsync(file) == 0;
    good = close(file) == 0 && good;
    if (good && renameat(folder, temporary, folder, r->name) == 0)
        return CONV_FFT_SUCCESS;
    const conv_fft_status status = fail_write(r->name);
    unlinkat(folder, temporary, 0);
    return status;
}

/* Returns NULL, or why a file with bad lines is not repaired. */
static const char *why_not(const repair *r) {
    if (r->other_version)
        return "it has records of another version";
    if (r->headers + r->records == 0)
        return "none of its lines can be verified, so it may be no file of records; remove it yourself";
    if (r->headless && !r->has_header)
        return "the line that names its device is missing or damaged, and it is not of this device; repair it with the "
               "options --device and --threads of the program that wrote it";
    return NULL;
}

static void say_kept(const char *name, const char *why) {
    cf_log(cf_log_level(CONV_FFT_LOG_DEFAULT), CONV_FFT_LOG_WARNING, "%s stays as it is: %s", name, why);
}

static conv_fft_status repair_file(int folder, const char *name, const cf_fingerprint *device, int64_t *removed) {
    repair r = {.name = name};
    conv_fft_status status = cf_record_file_scan(folder, name, NULL, take_line, &r);
    cf_fingerprint own = *device;
    for (own.abi = 1; own.abi <= device->abi; ++own.abi)
        note_header(&r, &own);
    if (status == CONV_FFT_IO_ERROR) {
        say_kept(name, conv_fft_last_error());
        status = CONV_FFT_SUCCESS;
    } else if (status == CONV_FFT_SUCCESS && (r.bad > 0 || r.headless)) {
        const char *why = why_not(&r);
        if (why)
            say_kept(name, why);
        else if ((status = replace(folder, &r)) == CONV_FFT_SUCCESS)
            *removed += r.bad;
    }
    free(r.text);
    return status;
}

static conv_fft_status repair_item(int folder, const char *name, const cf_fingerprint *device, int64_t *removed) {
    if (cf_record_cache_is_name(name))
        return repair_file(folder, name, device, removed);
    if (!cf_cubin_is_name(name) || cf_cubin_file_is_whole(folder, name))
        return CONV_FFT_SUCCESS;
    if (unlinkat(folder, name, 0) != 0)
        return cf_fail(CONV_FFT_IO_ERROR, "the kernel %s cannot be removed: %s", name, strerror(errno));
    ++*removed;
    return CONV_FFT_SUCCESS;
}

/* Repairs under the lock of the records, so that no writer appends to a file that is being replaced. */
conv_fft_status cf_cache_repair(const char *directory, const cf_fingerprint *device, int64_t *removed) {
    cf_cache_folder folder;
    cf_cache_folder_open(&folder, directory, false);
    if (folder.descriptor < 0)
        return cf_fail(CONV_FFT_IO_ERROR, "%s", folder.problem);
    const int descriptor = openat(folder.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *files = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    const int lock = files ? cf_record_cache_lock(&folder) : -1;
    conv_fft_status status = CONV_FFT_SUCCESS;
    if (!files)
        status = cf_fail(CONV_FFT_IO_ERROR, "the cache directory %s cannot be read: %s", folder.path, strerror(errno));
    else if (lock < 0)
        status = cf_fail(CONV_FFT_IO_ERROR,
                         "the records in %s cannot be repaired: the directory cannot be written, or another process "
                         "holds their lock",
                         folder.path);
    for (const struct dirent *item; status == CONV_FFT_SUCCESS && (item = readdir(files)) != NULL;)
        status = repair_item(folder.descriptor, item->d_name, device, removed);
    if (lock >= 0)
        cf_record_cache_unlock(lock);
    if (files)
        closedir(files);
    else if (descriptor >= 0)
        close(descriptor);
    cf_cache_folder_close(&folder);
    return status;
}
