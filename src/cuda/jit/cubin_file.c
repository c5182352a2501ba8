/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/jit/cubin_file.h"

#include "core/clock.h"
#include "cuda/jit/cache_dir.h"
#include "cuda/jit/files.h"
#include "cuda/jit/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* ---- key and name */

static void add_line(cf_cubin_key *key, const char *line) {
    const size_t bytes = strlen(line);
    key->hash = cf_hash_on(cf_hash_on(key->hash, line, bytes), "\n", 1);
    key->crc = (uint32_t)crc32_z(crc32_z(key->crc, (const unsigned char *)line, bytes), (const unsigned char *)"\n", 1);
    key->bytes += bytes + 1;
}

/* Keys of headers that were seen before, by address: a header never changes. Headers that do not fit are hashed each
 * time. */
static cf_cubin_key key_of_header(const char *header) {
    enum {
        CAPACITY = 32
    };
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        const char *header;
        cf_cubin_key key;
    } known[CAPACITY];
    static int count;
    pthread_mutex_lock(&mutex);
    int i = 0;
    while (i < count && known[i].header != header)
        ++i;
    cf_cubin_key key = {.hash = CF_HASH_START};
    if (i < count) {
        key = known[i].key;
    } else {
        add_line(&key, header);
        if (count < CAPACITY) {
            known[count].header = header;
            known[count++].key = key;
        }
    }
    pthread_mutex_unlock(&mutex);
    return key;
}

static void add_header(cf_cubin_key *key, const char *header) {
    const cf_cubin_key own = key_of_header(header);
    char line[64];
    snprintf(line, sizeof line, "%016" PRIx64 "-%08" PRIx32 "-%zu", own.hash, own.crc, own.bytes);
    add_line(key, line);
}

/* Hash these lines: architecture, each option, the key of each header, an empty line, the text. */
cf_cubin_key cf_cubin_key_of(const char *architecture, const cf_source *source) {
    cf_cubin_key key = {.hash = CF_HASH_START};
    add_line(&key, architecture);
    for (const char *const *option = cf_jit_options; *option; ++option)
        add_line(&key, *option);
    for (int i = 0; i < CF_SOURCE_MAX_OPTIONS && source->options[i]; ++i)
        add_line(&key, source->options[i]);
    for (int i = 0; i < CF_SOURCE_MAX_HEADERS && source->headers[i]; ++i)
        add_header(&key, source->headers[i]);
    add_line(&key, "");
    add_line(&key, source->text);
    return key;
}

bool cf_cubin_key_equal(const cf_cubin_key *a, const cf_cubin_key *b) {
    return a->hash == b->hash && a->crc == b->crc && a->bytes == b->bytes;
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
    VERSION = 2, /* of the format */
    HEADER_BYTES = 160,
    MAX_BYTES = 64 << 20 /* bytes of a file, and of machine code */
};

typedef struct header {
    char nvrtc[16];
    cf_cubin_key key;
    size_t cubin_bytes;
} header;

/* The line without its CRC. */
static int format_header(const header *h, char *line) {
    return snprintf(line, HEADER_BYTES, "conv_fft cubin %d nvrtc=%s key=%016" PRIx64 "-%08" PRIx32 "-%zu cubin=%zu",
                    VERSION, h->nvrtc, h->key.hash, h->key.crc, h->key.bytes, h->cubin_bytes);
}

/* The end of the line: a checksum of its beginning and of all that follows it. */
static size_t format_checksum(const char *line, size_t length, const void *body, size_t bytes, char end[24]) {
    const unsigned long crc = crc32_z(0, (const unsigned char *)line, length);
    return (size_t)snprintf(end, 24, " crc=%08lx\n", crc32_z(crc, body, bytes));
}

/* Read the line at the start of a file, and check that format_header() and format_checksum() would write the same.
 * Returns where the body begins; 0: it is another line. */
static size_t read_header(const char *file, size_t bytes, header *h) {
    char start[HEADER_BYTES], line[HEADER_BYTES], end[24];
    snprintf(start, sizeof start, "%.*s", (int)(bytes < sizeof start ? bytes : sizeof start - 1), file);
    if (sscanf(start, "conv_fft cubin %*9d nvrtc=%15s key=%" SCNx64 "-%" SCNx32 "-%zu cubin=%zu", h->nvrtc,
               &h->key.hash, &h->key.crc, &h->key.bytes, &h->cubin_bytes) != 5)
        return 0;
    const size_t length = (size_t)format_header(h, line), body = length + strlen(" crc=01234567\n");
    if (body > bytes || h->cubin_bytes == 0 || h->cubin_bytes > MAX_BYTES)
        return 0;
    const size_t rest = format_checksum(line, length, file + body, bytes - body, end);
    return memcmp(file, line, length) == 0 && memcmp(file + length, end, rest) == 0 ? body : 0;
}

/* ---- reading */

/* Whether the file begins as such files do, but with another number than VERSION. */
static bool is_of_another_version(const char *file, size_t bytes) {
    char start[32], after;
    int version;
    snprintf(start, sizeof start, "%.*s", (int)(bytes < sizeof start ? bytes : sizeof start - 1), file);
    return sscanf(start, "conv_fft cubin %9d%c", &version, &after) == 2 && after == ' ' && version != VERSION;
}

/* If it is found, the caller frees the machine code. */
static cf_cubin_found unpack(const char *content, size_t bytes, cf_cubin_key *key, cf_cubin *cubin) {
    header h;
    const size_t body = read_header(content, bytes, &h);
    if (body == 0)
        return is_of_another_version(content, bytes) ? CF_CUBIN_ABSENT : CF_CUBIN_DAMAGED;
    uLongf got = (uLongf)h.cubin_bytes;
    void *const code = malloc(h.cubin_bytes);
    if (!code)
        return CF_CUBIN_ABSENT;
    const int result = uncompress(code, &got, (const Bytef *)content + body, (uLong)(bytes - body));
    if (result != Z_OK || got != h.cubin_bytes) {
        free(code);
        return result == Z_MEM_ERROR ? CF_CUBIN_ABSENT : CF_CUBIN_DAMAGED;
    }
    *key = h.key;
    *cubin = (cf_cubin){.data = code, .bytes = h.cubin_bytes};
    return CF_CUBIN_FOUND;
}

static cf_cubin_found read_content(int file, const struct stat *status, cf_cubin_key *key, cf_cubin *cubin) {
    if (status->st_size <= 0 || status->st_size > MAX_BYTES)
        return CF_CUBIN_DAMAGED;
    const size_t bytes = (size_t)status->st_size;
    char *const content = malloc(bytes);
    if (!content)
        return CF_CUBIN_ABSENT;
    const cf_cubin_found found =
        cf_read_all(file, content, bytes) ? unpack(content, bytes, key, cubin) : CF_CUBIN_DAMAGED;
    free(content);
    return found;
}

/* NONBLOCK: a pipe of that name must not block the process. */
static cf_cubin_found read_file(int directory, const char *name, bool use, cf_cubin_key *key, cf_cubin *cubin,
                                const char **why) {
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
        found = read_content(file, &status, key, cubin);
    if (found == CF_CUBIN_FOUND && use)
        futimens(file, NULL); /* fails in a read-only directory, from which nothing is removed either */
    close(file);
    return found;
}

cf_cubin_found cf_cubin_file_read(int directory, const cf_cubin_key *key, cf_cubin *cubin, const char **why) {
    char name[CF_CUBIN_NAME_BYTES];
    cf_cubin_key own;
    cf_cubin_name(key, name);
    const cf_cubin_found found = read_file(directory, name, true, &own, cubin, why);
    if (found != CF_CUBIN_FOUND || cf_cubin_key_equal(&own, key))
        return found;
    cf_cubin_clear(cubin);
    return CF_CUBIN_DAMAGED;
}

bool cf_cubin_file_is_whole(int directory, const char *name) {
    char own_name[CF_CUBIN_NAME_BYTES];
    const char *why;
    cf_cubin_key key;
    cf_cubin cubin;
    const cf_cubin_found found = read_file(directory, name, false, &key, &cubin, &why);
    if (found != CF_CUBIN_FOUND)
        return found == CF_CUBIN_ABSENT;
    cf_cubin_clear(&cubin);
    cf_cubin_name(&key, own_name);
    return strcmp(own_name, name) == 0;
}

/* ---- writing */

static bool write_content(int file, const cf_cubin_key *key, const cf_cubin *cubin, const char *nvrtc_version) {
    header h = {.key = *key, .cubin_bytes = cubin->bytes};
    if (cubin->bytes == 0 || cubin->bytes > MAX_BYTES) {
        errno = EFBIG;
        return false;
    }
    snprintf(h.nvrtc, sizeof h.nvrtc, "%s", nvrtc_version);
    uLongf bytes = compressBound((uLong)cubin->bytes);
    unsigned char *const body = malloc(bytes);
    if (!body || compress(body, &bytes, cubin->data, (uLong)cubin->bytes) != Z_OK) {
        free(body);
        errno = ENOMEM;
        return false;
    }
    char line[HEADER_BYTES], end[24];
    const size_t length = (size_t)format_header(&h, line), rest = format_checksum(line, length, body, bytes, end);
    const bool written =
        cf_write_all(file, line, length) && cf_write_all(file, end, rest) && cf_write_all(file, body, bytes);
    const int error = errno;
    free(body);
    errno = error;
    return written;
}

bool cf_cubin_file_write(int directory, const cf_cubin_key *key, const cf_cubin *cubin, const char *nvrtc_version,
                         unsigned serial) {
    char name[CF_CUBIN_NAME_BYTES], temporary[96];
    cf_cubin_name(key, name);
    /* The clock is part of the name because processes of several hosts or containers may share the directory. */
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
