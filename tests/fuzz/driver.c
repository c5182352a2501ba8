/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver SECONDS SEED: random mutations for compilers without libFuzzer. Inputs begin with an odd byte (CRCs are made right) or an even
 * one, behind it a file of records, of which bytes, words and lines are changed, repeated, removed or swapped.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum {
    MOST = 1 << 16
};

static const char seed_text[] =
    "{\"crc\":\"00000000\",\"format\":\"conv_fft "
    "records\",\"version\":1,\"abi\":1,\"device\":\"A\",\"kind\":\"B\",\"driver\":\"\"}\n"
    "{\"crc\":\"00000000\",\"problem\":\"in=2x4x12x13 out=6 kernel=3x4 stride=1x1 dilation=1x1 pad=1x1 groups=2 "
    "mode=zeros "
    "layout=first dtype=fp32 math=fp32\",\"passes\":6,\"keep\":0,\"workspace_class\":268435456,\"strategy\":[\"staged "
    "basis=15x16 tiles=1x1 dilation=step overlap=save product=blas spectrum=fp32 chunk=2 groups=2 keep=none\",\"staged "
    "basis=15x16 tiles=1x1 dilation=step overlap=save product=loop spectrum=fp32 chunk=2 groups=2 "
    "keep=none\"],\"ms\":0.25,"
    "\"predicted_ms\":0.5,\"workspace\":4096,\"candidates\":8,\"mode\":2,\"written\":1764000000000000,\"direct_ms\":0."
    "75,"
    "\"library\":\"cudnn 9.19.0\"}\n";

static const char *const words[] = {"{",
                                    "}",
                                    "[",
                                    "]",
                                    "\"",
                                    "\\u0000",
                                    "\\",
                                    ":",
                                    ",",
                                    "null",
                                    "1e9",
                                    "-1",
                                    "99999999999999999999",
                                    "\n",
                                    "\r\n",
                                    "true",
                                    "crc",
                                    "strategy",
                                    "passes",
                                    "problem",
                                    "x",
                                    "=",
                                    "#",
                                    "direct ",
                                    "basis=9x9",
                                    "\xff",
                                    "in=0x0x0",
                                    "pad=same",
                                    "64x64x64"};

static uint64_t state;

static size_t below(size_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return limit ? (size_t)(state >> 33) % limit : 0;
}

static size_t insert(uint8_t *data, size_t bytes, size_t at, const void *added, size_t count) {
    if (bytes + count > MOST)
        return bytes;
    memmove(data + at + count, data + at, bytes - at);
    memcpy(data + at, added, count);
    return bytes + count;
}

static size_t mutate(uint8_t *data, size_t bytes) {
    const size_t at = 1 + below(bytes - 1), rest = bytes - at;
    const size_t count = rest < 64 ? rest : below(64);
    uint8_t copy[64];
    switch (below(6)) {
    case 0:
        data[at < bytes ? at : 0] ^= (uint8_t)(1 << below(8));
        return bytes;
    case 1:
        data[at < bytes ? at : 0] = (uint8_t)below(256);
        return bytes;
    case 2:
        memmove(data + at, data + at + count, rest - count);
        return bytes - count > 1 ? bytes - count : 2;
    case 3:
        memcpy(copy, data + at, count);
        return insert(data, bytes, 1 + below(bytes - 1), copy, count);
    case 4: {
        const char *word = words[below(sizeof words / sizeof words[0])];
        return insert(data, bytes, at, word, strlen(word));
    }
    default: { /* in the place of as many bytes */
        const char *word = words[below(sizeof words / sizeof words[0])];
        const size_t length = strlen(word) < rest ? strlen(word) : rest;
        memcpy(data + at, word, length);
        return bytes;
    }
    }
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 10.0;
    static uint8_t data[MOST + 64];
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)state);
    const time_t end = time(NULL) + (time_t)(seconds + 0.5);
    long runs = 0;
    for (; time(NULL) < end; ++runs) {
        data[0] = (uint8_t)below(2);
        size_t bytes = insert(data, 1, 1, seed_text, sizeof seed_text - 1);
        for (size_t i = below(12); i > 0; --i)
            bytes = mutate(data, bytes);
        LLVMFuzzerTestOneInput(data, bytes);
    }
    printf("%ld inputs\n", runs);
    return runs > 0 ? 0 : 1;
}
