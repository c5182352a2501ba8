/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One compiled kernel in a file of the cache directory.
 *
 *     conv_fft cubin 2 nvrtc=13.0 key=HASH-CRC-BYTES cubin=BYTES crc=HEX\n     the machine code, by zlib
 *
 * The key is made of everything that the compilation depends on, a text of some 200 KB. It has the text's FNV-1a hash
 * with 64 bits, which is also the name of the file, its CRC-32 and its length. Different texts do not get equal keys by
 * accident, and files that others can write are not read. The CRC-32 at the end of the line covers all bytes of the
 * file but itself.
 */
#ifndef CF_DEVICE_CUBIN_FILE_H
#define CF_DEVICE_CUBIN_FILE_H

#include "cuda/jit/nvrtc.h"

#include <stdint.h>

typedef struct cf_cubin_key {
    uint64_t hash;
    uint32_t crc;
    size_t bytes;
} cf_cubin_key;

/* Make the key of the architecture, the options that every kernel has, the source's own options, and its text. */
cf_cubin_key cf_cubin_key_of(const char *architecture, const cf_source *source);
bool cf_cubin_key_equal(const cf_cubin_key *a, const cf_cubin_key *b);

#define CF_CUBIN_NAME_BYTES 24
void cf_cubin_name(const cf_cubin_key *key, char name[CF_CUBIN_NAME_BYTES]);
bool cf_cubin_is_name(const char *name);
bool cf_cubin_is_temporary(const char *name);

typedef enum cf_cubin_found {
    CF_CUBIN_FOUND,
    CF_CUBIN_ABSENT,  /* or the file has another version of the format, or there is no memory to read it */
    CF_CUBIN_DAMAGED, /* truncated, altered, or of another key */
    CF_CUBIN_REFUSED, /* `why` has the reason, for instance that others can write the file */
} cf_cubin_found;

/* Read the kernel of `key` from the directory, and mark it as used. */
cf_cubin_found cf_cubin_file_read(int directory, const cf_cubin_key *key, cf_cubin *cubin, const char **why);

/* Whether a file of that name is whole, and would be read as the kernel of its key. True if there is no such file of
 * this version. */
bool cf_cubin_file_is_whole(int directory, const char *name);

/* Write the kernel to a temporary file and rename it, so that readers see all of it or nothing. `serial` differs
 * between calls of one process. Returns false and sets errno. */
bool cf_cubin_file_write(int directory, const cf_cubin_key *key, const cf_cubin *cubin, const char *nvrtc_version,
                         unsigned serial);

#endif
