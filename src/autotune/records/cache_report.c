/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/records/cache_report.h"

#include "autotune/records/record_cache.h"
#include "core/log.h"
#include "cuda/jit/cubin_file.h"
#include "cuda/jit/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_DEVICES = 64 /* that are listed for one file; the others count as the last one */
};

/* The records of one device in a file. Records before the first header have a device without a name. */
typedef struct device_records {
    cf_fingerprint header;
    uint64_t *keys; /* hashes of the keys of its records */
    size_t count, capacity;
    char libraries[256]; /* that its strategies need, joined by commas */
} device_records;

typedef struct walk {
    cf_cache_folder folder;
    DIR *files;
    cf_text *text;
    int64_t damaged;
    /* of the file that is being read */
    const char *name;
    int64_t headers, bad;
    bool other_version; /* some header is of another version */
    device_records devices[MAX_DEVICES];
    int device_count;
} walk;

/* A directory that does not exist has no files: w->files is NULL. */
static conv_fft_status open_walk(const char *directory, walk *w) {
    cf_cache_folder_open(&w->folder, directory, false);
    if (w->folder.absent)
        return CONV_FFT_SUCCESS;
    if (w->folder.descriptor < 0)
        return cf_fail(CONV_FFT_IO_ERROR, "%s", w->folder.problem);
    const int descriptor = openat(w->folder.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w->files = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    if (w->files)
        return CONV_FFT_SUCCESS;
    const int error = errno;
    if (descriptor >= 0)
        close(descriptor);
    cf_cache_folder_close(&w->folder);
    return cf_fail(CONV_FFT_IO_ERROR, "the cache directory %s cannot be read: %s", w->folder.path, strerror(error));
}

static void forget_devices(walk *w) {
    for (int i = 0; i < w->device_count; ++i)
        free(w->devices[i].keys);
    w->device_count = 0;
}

static void close_walk(walk *w) {
    forget_devices(w);
    if (w->files)
        closedir(w->files);
    cf_cache_folder_close(&w->folder);
}

/* The device of a header (NULL: none), which is added if it is new. */
static device_records *device_of(walk *w, const cf_fingerprint *header) {
    static const cf_fingerprint unknown;
    const cf_fingerprint *wanted = header ? header : &unknown;
    for (int i = 0; i < w->device_count; ++i)
        if (cf_fingerprint_equal(&w->devices[i].header, wanted))
            return &w->devices[i];
    if (w->device_count == MAX_DEVICES)
        return &w->devices[MAX_DEVICES - 1];
    w->devices[w->device_count] = (device_records){.header = *wanted};
    return &w->devices[w->device_count++];
}

/* Add a record's library to the list, unless it is there. */
static void note_library(device_records *d, const char *library) {
    const size_t used = strlen(d->libraries);
    if (library[0] && !strstr(d->libraries, library) && used + strlen(library) + 3 <= sizeof d->libraries)
        snprintf(d->libraries + used, sizeof d->libraries - used, ", %s", library);
}

static conv_fft_status note_record(device_records *d, const cf_record *record) {
    if (d->count == d->capacity) {
        const size_t capacity = 2 * d->capacity + 64;
        uint64_t *grown = realloc(d->keys, capacity * sizeof *grown);
        if (!grown)
            return cf_fail_memory(capacity * sizeof *grown, "a list of tuning records");
        d->keys = grown;
        d->capacity = capacity;
    }
    char key[CF_RECORD_PROBLEM_BYTES + CF_RECORD_LIBRARY_BYTES + 96];
    const int length = snprintf(key, sizeof key, "%s|%d|%d|%llu|%s", record->key.problem, record->key.passes,
                                record->key.keep, (unsigned long long)record->key.workspace_class, record->library);
    d->keys[d->count++] = cf_hash(key, (size_t)length);
    note_library(d, record->library);
    return CONV_FFT_SUCCESS;
}

static int compare_keys(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The number of records with different keys. A record that replaced another is a second line with its key. */
static int64_t distinct(device_records *d) {
    int64_t count = 0;
    if (d->count > 0)
        qsort(d->keys, d->count, sizeof *d->keys, compare_keys);
    for (size_t i = 0; i < d->count; ++i)
        count += i == 0 || d->keys[i] != d->keys[i - 1];
    return count;
}

static conv_fft_status count_line(const cf_file_line *line, void *user) {
    walk *w = user;
    if (line->kind == CF_LINE_HEADER) {
        ++w->headers;
        w->other_version =
            w->other_version || line->header->version != CF_RECORD_FORMAT || line->header->abi > CONV_FFT_ABI;
        device_of(w, line->header);
    }
    if (line->kind == CF_LINE_RECORD)
        CF_FORWARD(note_record(device_of(w, line->header), line->record));
    const bool bad = line->kind == CF_LINE_DAMAGED || line->kind == CF_LINE_UNKNOWN;
    w->bad += bad;
    if (bad && w->text)
        cf_text_add(w->text, "  %s:%lld: %s\n", w->name, (long long)line->number,
                    line->kind == CF_LINE_DAMAGED ? "its CRC is wrong: the line is incomplete or was altered"
                                                  : "its CRC is right, but this version does not understand it");
    return CONV_FFT_SUCCESS;
}

static conv_fft_status read_file(walk *w, const char *name) {
    forget_devices(w);
    w->name = name;
    w->headers = w->bad = 0;
    w->other_version = false;
    return cf_record_file_scan(w->folder.descriptor, name, NULL, count_line, w);
}

/* Write "6 records, NVIDIA H200 (gpu, compute 9.0, ...), interface 1, CUDA 13.0, cudnn 9.19.0". */
static void add_device(cf_text *text, device_records *d) {
    const int64_t count = distinct(d);
    cf_text_add(text, "%lld record%s, ", (long long)count, count == 1 ? "" : "s");
    if (d->header.device[0])
        cf_text_add(text, "%s (%s), interface %lld%s%s%s", d->header.device, d->header.kind, (long long)d->header.abi,
                    d->header.driver[0] ? ", " : "", d->header.driver, d->libraries);
    else
        cf_text_add(text, "no device: the line that names it is missing or damaged");
}

static void add_file(walk *w) {
    const bool one = w->device_count <= 1;
    cf_text_add(w->text, "  %s: ", w->name);
    if (w->device_count == 0)
        cf_text_add(w->text, "0 records, no device");
    else if (one)
        add_device(w->text, &w->devices[0]);
    else
        cf_text_add(w->text, "%d devices", w->device_count);
    cf_text_add(w->text, "%s%s\n", w->bad ? ", with lines that cannot be verified" : "",
                w->other_version ? ", of another version" : "");
    for (int i = 0; i < w->device_count && !one; ++i) {
        cf_text_add(w->text, "    ");
        add_device(w->text, &w->devices[i]);
        cf_text_add(w->text, "\n");
    }
}

conv_fft_status cf_cache_report(const char *directory, cf_text *text, int64_t *damaged) {
    walk w = {.text = text};
    CF_FORWARD(open_walk(directory, &w));
    conv_fft_status status = CONV_FFT_SUCCESS;
    cf_text_add(text, "%s\n", w.folder.path);
    for (const struct dirent *item; w.files && status == CONV_FFT_SUCCESS && (item = readdir(w.files)) != NULL;) {
        if (cf_cubin_is_name(item->d_name) && !cf_cubin_file_is_whole(w.folder.descriptor, item->d_name)) {
            cf_text_add(text, "  %s: a kernel that is damaged or not trusted\n", item->d_name);
            ++w.damaged;
        }
        if (!cf_record_cache_is_name(item->d_name))
            continue;
        status = read_file(&w, item->d_name);
        if (status == CONV_FFT_IO_ERROR) {
            cf_text_add(text, "  %s\n", conv_fft_last_error());
            ++w.damaged;
            status = CONV_FFT_SUCCESS;
            continue;
        }
        w.damaged += w.bad;
        if (status == CONV_FFT_SUCCESS)
            add_file(&w);
    }
    const cf_cache_usage kernels = w.files ? cf_cache_folder_trim(&w.folder, -1) : (cf_cache_usage){0};
    cf_text_add(text, "  %lld compiled kernel%s, %lld bytes\n", (long long)kernels.files, kernels.files == 1 ? "" : "s",
                (long long)kernels.bytes);
    close_walk(&w);
    *damaged = w.damaged;
    return status;
}

/* Returns NULL if the file has records of this version only, else why it stays. An empty file also counts: its writer
 * was killed early. */
static const char *why_kept(walk *w, const char *name) {
    struct stat status;
    if (fstatat(w->folder.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
        status.st_size == 0)
        return NULL;
    if (read_file(w, name) != CONV_FFT_SUCCESS)
        return conv_fft_last_error();
    if (w->headers == 0)
        return "the line that names its device and version is missing or damaged; \"conv-fft cache repair\" may mend "
               "it";
    return w->other_version ? "it has records of another version" : NULL;
}

/* Removes under the lock of the records, so that no writer appends to a file that is being removed. */
conv_fft_status cf_cache_clear(const char *directory, int64_t *removed) {
    walk w = {.text = NULL};
    CF_FORWARD(open_walk(directory, &w));
    *removed = 0;
    if (!w.files)
        return CONV_FFT_SUCCESS;
    const int lock = cf_record_cache_lock(&w.folder);
    if (lock < 0) {
        close_walk(&w);
        return cf_fail(CONV_FFT_IO_ERROR, "the records in %s cannot be removed: another process holds their lock",
                       w.folder.path);
    }
    int64_t count = 0;
    int error = 0;
    for (const struct dirent *item; (item = readdir(w.files)) != NULL;) {
        const bool records = cf_record_cache_is_name(item->d_name);
        if (!records && !cf_cubin_is_name(item->d_name) && !cf_cubin_is_temporary(item->d_name))
            continue;
        const char *why = records ? why_kept(&w, item->d_name) : NULL;
        if (why) {
            cf_log(cf_log_level(CONV_FFT_LOG_DEFAULT), CONV_FFT_LOG_WARNING, "%s stays: %s", item->d_name, why);
            continue;
        }
        if (unlinkat(w.folder.descriptor, item->d_name, 0) == 0)
            ++count;
        else
            error = errno;
    }
    cf_record_cache_unlock(lock);
    close_walk(&w);
    *removed = count;
    if (error)
        return cf_fail(CONV_FFT_IO_ERROR, "not all files in %s could be removed: %s", w.folder.path, strerror(error));
    return CONV_FFT_SUCCESS;
}
