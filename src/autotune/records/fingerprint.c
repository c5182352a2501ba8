/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/records/fingerprint.h"

#include "cuda/jit/hash.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Leave printable ASCII only, as in records. Runs of blanks become one blank. */
static void clean(char *text) {
    char *to = text;
    for (const char *from = text; *from; ++from) {
        const char c = *from > ' ' && *from <= '~' ? *from : ' ';
        if (c != ' ' || (to > text && to[-1] != ' '))
            *to++ = c;
    }
    while (to > text && to[-1] == ' ')
        --to;
    *to = '\0';
}

/* Read "model name : ..." of /proc/cpuinfo. Without it, processors differ by their number of threads only. */
static void processor_name(char *name, size_t bytes) {
    snprintf(name, bytes, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        snprintf(name, bytes, "%s", colon + 1);
        break;
    }
    if (file)
        fclose(file);
    clean(name);
}

cf_fingerprint cf_fingerprint_of(const conv_fft_context *context) {
    cf_fingerprint f;
    memset(&f, 0, sizeof f);
    f.version = CF_RECORD_FORMAT;
    f.abi = CONV_FFT_ABI;
    const cf_gpu *gpu = context->gpu;
    if (!gpu) {
        processor_name(f.device, sizeof f.device);
        snprintf(f.kind, sizeof f.kind, "cpu, threads %d, %s", context->device->threads,
                 context->device->has_blas ? "blas" : "no blas");
        return f;
    }
    snprintf(f.device, sizeof f.device, "%s", gpu->properties.name);
    clean(f.device);
    snprintf(f.kind, sizeof f.kind, "gpu, compute %lld.%lld, multiprocessors %lld",
             (long long)gpu->properties.compute_major, (long long)gpu->properties.compute_minor,
             (long long)gpu->properties.multiprocessors);
    snprintf(f.driver, sizeof f.driver, "CUDA %d.%d", gpu->driver.version / 1000, gpu->driver.version % 1000 / 10);
    return f;
}

void cf_fingerprint_stem(const cf_fingerprint *f, char stem[CF_STEM_BYTES]) {
    char all[sizeof f->device + sizeof f->kind + 48], name[40];
    const int length =
        snprintf(all, sizeof all, "%s|%s|%lld|%lld", f->device, f->kind, (long long)f->version, (long long)f->abi);
    size_t used = 0;
    for (const char *at = f->device; *at && used + 1 < sizeof name; ++at) {
        const bool plain = isalnum((unsigned char)*at);
        if (plain || (used > 0 && name[used - 1] != '-'))
            name[used++] = plain ? (char)tolower((unsigned char)*at) : '-';
    }
    name[used] = '\0';
    snprintf(stem, CF_STEM_BYTES, "tuning-%s-%08x", name, (unsigned)(cf_hash(all, (size_t)length) & 0xffffffffu));
}
