/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One compiled kernel in a file of the cache directory.
 *
 *     conv_fft cubin 1 nvrtc=13.0 key=BYTES cubin=BYTES crc=HEX\n     key     cubin
 *
 * The name of the file is a hash of the key; the key itself, everything that the compilation depends on, is inside and is
 * compared, so no collision gives a wrong kernel. The CRC-32 covers all bytes but itself.
 */
#ifndef CF_DEVICE_CUBIN_FILE_H
#define CF_DEVICE_CUBIN_FILE_H

#include "device/jit.h"

#include <stdint.h>

/* Architecture, options and text. */
typedef struct cf_cubin_key {
    char *text;
    size_t bytes;
    uint64_t hash;
} cf_cubin_key;

conv_fft_status cf_cubin_key_make(const char *architecture, const cf_source *source, cf_cubin_key *key);
void cf_cubin_key_clear(cf_cubin_key *key);

#define CF_CUBIN_NAME_BYTES 24
void cf_cubin_name(const cf_cubin_key *key, char name[CF_CUBIN_NAME_BYTES]);
bool cf_cubin_is_name(const char *name);
bool cf_cubin_is_temporary(const char *name);

typedef enum cf_cubin_found {
    CF_CUBIN_FOUND,
    CF_CUBIN_ABSENT,
    CF_CUBIN_DAMAGED, /* truncated, altered, of another key or of another format */
    CF_CUBIN_REFUSED, /* `why` says: others can write it, for instance */
} cf_cubin_found;

/* Read the kernel of `key` from the directory, and note its use. */
cf_cubin_found cf_cubin_file_read(int directory, const cf_cubin_key *key, cf_cubin *cubin, const char **why);

/* Whether a file of that name is whole, and would be read as the kernel of its key. */
bool cf_cubin_file_is_whole(int directory, const char *name);

/* Write it: to a temporary file, then renamed, so that readers see all of it or nothing. `serial` differs between calls of
 * one process. False with errno. */
bool cf_cubin_file_write(int directory, const cf_cubin_key *key, const cf_cubin *cubin, const char *nvrtc_version,
                         unsigned serial);

#endif
