/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cubin_file.h"

#include "core/clock.h"
#include "device/cache_folder.h"
#include "device/files.h"
#include "device/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* ---- key and name */

static size_t put_line(char *to, const char *line) {
    const size_t length = strlen(line);
    if (to) {
        memcpy(to, line, length);
        to[length] = '\n';
    }
    return length + 1;
}

/* Lines: architecture, each option, an empty one, the text. */
static size_t write_key(const char *architecture, const cf_source *source, char *to) {
    size_t bytes = put_line(to, architecture);
    for (const char *const *option = cf_jit_options; *option; ++option)
        bytes += put_line(to ? to + bytes : NULL, *option);
    for (int i = 0; i < CF_SOURCE_MAX_OPTIONS && source->options[i]; ++i)
        bytes += put_line(to ? to + bytes : NULL, source->options[i]);
    bytes += put_line(to ? to + bytes : NULL, "");
    return bytes + put_line(to ? to + bytes : NULL, source->text);
}

conv_fft_status cf_cubin_key_make(const char *architecture, const cf_source *source, cf_cubin_key *key) {
    const size_t bytes = write_key(architecture, source, NULL);
    char *const text = malloc(bytes);
    if (!text)
        return cf_fail_memory(bytes, "the key of a kernel");
    write_key(architecture, source, text);
    *key = (cf_cubin_key){.text = text, .bytes = bytes, .hash = cf_hash(text, bytes)};
    return CONV_FFT_SUCCESS;
}

void cf_cubin_key_clear(cf_cubin_key *key) {
    free(key->text);
    *key = (cf_cubin_key){0};
}

static const char suffix[] = ".cubin", temporary_prefix[] = ".cubin-";

void cf_cubin_name(const cf_cubin_key *key, char name[CF_CUBIN_NAME_BYTES]) {
    snprintf(name, CF_CUBIN_NAME_BYTES, "%016" PRIx64 "%s", key->hash, suffix);
}

bool cf_cubin_is_name(const char *name) {
    return strspn(name, "0123456789abcdef") == 16 && strcmp(name + 16, suffix) == 0;
}

bool cf_cubin_is_temporary(const char *name) { return strncmp(name, temporary_prefix, strlen(temporary_prefix)) == 0; }

/* ---- format */

enum {
    HEADER_BYTES = 160,
    LARGEST_FILE = 64 << 20
};

typedef struct header {
    char nvrtc[16];
    size_t key_bytes, cubin_bytes;
} header;

/* The line without its CRC. */
static int format_header(const header *h, char *line) {
    return snprintf(line, HEADER_BYTES, "conv_fft cubin 1 nvrtc=%s key=%zu cubin=%zu", h->nvrtc, h->key_bytes,
                    h->cubin_bytes);
}

static unsigned long checksum(const char *line, size_t length, const void *key, size_t key_bytes, const void *cubin,
                              size_t cubin_bytes) {
    unsigned long crc = crc32(0, (const unsigned char *)line, (unsigned)length);
    crc = crc32(crc, key, (unsigned)key_bytes);
    return crc32(crc, cubin, (unsigned)cubin_bytes);
}

/* Where things are in the content of a file. */
typedef struct parts {
    const char *key, *cubin;
    size_t key_bytes, cubin_bytes;
} parts;

/* Reads the line at the start of a file and checks that it is what format_header() and the CRC would write. */
static bool find_parts(const char *file, size_t bytes, parts *p) {
    header h;
    char start[HEADER_BYTES], line[HEADER_BYTES], crc[24];
    snprintf(start, sizeof start, "%.*s", (int)(bytes < sizeof start ? bytes : sizeof start - 1), file);
    if (sscanf(start, "conv_fft cubin 1 nvrtc=%15s key=%zu cubin=%zu", h.nvrtc, &h.key_bytes, &h.cubin_bytes) != 3)
        return false;
    const size_t length = (size_t)format_header(&h, line), line_bytes = length + strlen(" crc=01234567\n");
    if (line_bytes > bytes || h.key_bytes > bytes - line_bytes)
        return false;
    if (h.cubin_bytes != bytes - line_bytes - h.key_bytes || h.cubin_bytes == 0)
        return false;
    const char *const body = file + line_bytes;
    snprintf(crc, sizeof crc, " crc=%08lx\n",
             checksum(line, length, body, h.key_bytes, body + h.key_bytes, h.cubin_bytes));
    *p = (parts){body, body + h.key_bytes, h.key_bytes, h.cubin_bytes};
    return memcmp(file, line, length) == 0 && memcmp(file + length, crc, strlen(crc)) == 0;
}

/* ---- reading */

/* The content is the caller's to free, whatever is found but CF_CUBIN_ABSENT. */
static cf_cubin_found read_content(int file, const struct stat *status, char **content, parts *p) {
    if (status->st_size <= 0 || status->st_size > LARGEST_FILE)
        return CF_CUBIN_DAMAGED;
    const size_t bytes = (size_t)status->st_size;
    *content = malloc(bytes);
    if (!*content)
        return CF_CUBIN_ABSENT;
    return cf_read_all(file, *content, bytes) && find_parts(*content, bytes, p) ? CF_CUBIN_FOUND : CF_CUBIN_DAMAGED;
}

/* NONBLOCK: a pipe of that name must not stop us. */
static cf_cubin_found read_file(int directory, const char *name, bool use, char **content, parts *p, const char **why) {
    const int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        if (errno == ENOENT)
            return CF_CUBIN_ABSENT;
        *why = strerror(errno);
        return CF_CUBIN_REFUSED;
    }
    struct stat status;
    cf_cubin_found found = CF_CUBIN_REFUSED;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        *why = "it is not a regular file";
    else if ((*why = cf_distrust(&status)) == NULL)
        found = read_content(file, &status, content, p);
    if (found == CF_CUBIN_FOUND && use)
        futimens(file, NULL); /* fails in a read-only directory, where nothing is removed either */
    close(file);
    return found;
}

cf_cubin_found cf_cubin_file_read(int directory, const cf_cubin_key *key, cf_cubin *cubin, const char **why) {
    char name[CF_CUBIN_NAME_BYTES], *content = NULL;
    parts p;
    cf_cubin_name(key, name);
    cf_cubin_found found = read_file(directory, name, true, &content, &p, why);
    if (found == CF_CUBIN_FOUND && (p.key_bytes != key->bytes || memcmp(p.key, key->text, key->bytes) != 0))
        found = CF_CUBIN_DAMAGED;
    if (found != CF_CUBIN_FOUND) {
        free(content);
        return found;
    }
    memmove(content, p.cubin, p.cubin_bytes);
    *cubin = (cf_cubin){.data = content, .bytes = p.cubin_bytes};
    return found;
}

bool cf_cubin_file_is_whole(int directory, const char *name) {
    char own_name[CF_CUBIN_NAME_BYTES], *content = NULL;
    const char *why;
    parts p;
    bool whole = read_file(directory, name, false, &content, &p, &why) == CF_CUBIN_FOUND;
    if (whole) {
        cf_cubin_name(&(cf_cubin_key){.hash = cf_hash(p.key, p.key_bytes)}, own_name);
        whole = strcmp(own_name, name) == 0;
    }
    free(content);
    return whole;
}

/* ---- writing */

static bool write_content(int file, const cf_cubin_key *key, const cf_cubin *cubin, const char *nvrtc_version) {
    header h = {.key_bytes = key->bytes, .cubin_bytes = cubin->bytes};
    snprintf(h.nvrtc, sizeof h.nvrtc, "%s", nvrtc_version);
    char line[HEADER_BYTES];
    const size_t length = (size_t)format_header(&h, line);
    const unsigned long crc = checksum(line, length, key->text, key->bytes, cubin->data, cubin->bytes);
    snprintf(line + length, sizeof line - length, " crc=%08lx\n", crc);
    return cf_write_all(file, line, strlen(line)) && cf_write_all(file, key->text, key->bytes) &&
           cf_write_all(file, cubin->data, cubin->bytes);
}

bool cf_cubin_file_write(int directory, const cf_cubin_key *key, const cf_cubin *cubin, const char *nvrtc_version,
                         unsigned serial) {
    char name[CF_CUBIN_NAME_BYTES], temporary[96];
    cf_cubin_name(key, name);
    /* Processes of several hosts or containers may share the directory, hence the clock. */
    snprintf(temporary, sizeof temporary, "%s%ld-%u-%016" PRIx64, temporary_prefix, (long)getpid(), serial,
             (uint64_t)(cf_clock_seconds() * 1e9));
    const int file = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    bool written = write_content(file, key, cubin, nvrtc_version);
    int error = errno;
    if (close(file) != 0 && written) {
        written = false;
        error = errno;
    }
    if (written && renameat(directory, temporary, directory, name) == 0)
        return true;
    if (written)
        error = errno;
    unlinkat(directory, temporary, 0);
    errno = error;
    return false;
}
