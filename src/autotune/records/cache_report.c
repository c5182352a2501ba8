/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/records/cache_report.h"

#include "autotune/records/record_cache.h"
#include "cuda/jit/cubin_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct walk {
    cf_cache_folder folder;
    DIR *files;
    cf_text *text;
    int64_t damaged;
    /* of the file that is being read */
    const char *name;
    int64_t records, headers, bad;
    bool other_version; /* some header is of another version */
    char device[160];
} walk;

static conv_fft_status open_walk(const char *directory, walk *w) {
    cf_cache_folder_open(&w->folder, directory, false);
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

static void close_walk(walk *w) {
    closedir(w->files);
    cf_cache_folder_close(&w->folder);
}

static conv_fft_status count_line(const cf_file_line *line, void *user) {
    walk *w = user;
    if (line->kind == CF_LINE_HEADER) {
        ++w->headers;
        w->other_version =
            w->other_version || line->header->version != CF_RECORD_FORMAT || line->header->abi > CONV_FFT_ABI;
        memcpy(w->device, line->header->device, sizeof w->device);
    }
    const bool bad = line->kind == CF_LINE_DAMAGED || line->kind == CF_LINE_UNKNOWN;
    w->records += line->kind == CF_LINE_RECORD;
    w->bad += bad;
    if (bad && w->text)
        cf_text_add(w->text, "  %s:%lld: %s\n", w->name, (long long)line->number,
                    line->kind == CF_LINE_DAMAGED ? "its CRC is wrong: the line is incomplete or was altered"
                                                  : "its CRC is right, but this version does not understand it");
    return CONV_FFT_SUCCESS;
}

static conv_fft_status read_file(walk *w, const char *name) {
    w->name = name;
    w->records = w->headers = w->bad = 0;
    w->other_version = false;
    w->device[0] = '\0';
    return cf_record_file_scan(w->folder.descriptor, name, NULL, count_line, w);
}

conv_fft_status cf_cache_report(const char *directory, cf_text *text, int64_t *damaged) {
    walk w = {.text = text};
    CF_FORWARD(open_walk(directory, &w));
    conv_fft_status status = CONV_FFT_SUCCESS;
    cf_text_add(text, "%s\n", w.folder.path);
    for (const struct dirent *item; status == CONV_FFT_SUCCESS && (item = readdir(w.files)) != NULL;) {
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
        cf_text_add(text, "  %s: %lld record%s, %s%s%s\n", item->d_name, (long long)w.records,
                    w.records == 1 ? "" : "s", w.device[0] ? w.device : "no device",
                    w.bad ? ", with lines that cannot be verified" : "", w.other_version ? ", of another version" : "");
    }
    const cf_cache_usage kernels = cf_cache_folder_trim(&w.folder, -1);
    cf_text_add(text, "  %lld compiled kernel%s, %lld bytes\n", (long long)kernels.files, kernels.files == 1 ? "" : "s",
                (long long)kernels.bytes);
    close_walk(&w);
    *damaged = w.damaged;
    return status;
}

/* Whether the file has records of this version only. An empty file also counts: its writer was killed early. */
static bool is_ours(walk *w, const char *name) {
    struct stat status;
    if (fstatat(w->folder.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
        status.st_size == 0)
        return true;
    return read_file(w, name) == CONV_FFT_SUCCESS && w->headers > 0 && !w->other_version;
}

/* Removes under the lock of the records, so that no writer appends to a file that is being removed. */
conv_fft_status cf_cache_clear(const char *directory, int64_t *removed) {
    walk w = {.text = NULL};
    CF_FORWARD(open_walk(directory, &w));
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
        if (records && !is_ours(&w, item->d_name))
            continue;
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
