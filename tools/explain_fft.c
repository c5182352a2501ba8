/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft explain fft: from words to a transform, and what the library says about it. */
#include "core/closest.h"
#include "fbfft.h"
#include "main.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words of the enumerations, at their values. */
static const char *const kinds[] = {"r2c", "c2r", "c2c", "c2c-inverse", NULL};
static const char *const orders[] = {"natural", "transposed", "frequency-major", NULL};
static const char *const dtypes[] = {"fp32", "fp16", "bf16", "fp64", NULL};
static const char *const layouts[] = {"first", "last", NULL};
static const char *const spectra[] = {"fp32", "fp16", NULL};
static const char *const arithmetics[] = {"default", "fp32", "split", "fp16", NULL};
static const char *const modes[] = {"zeros", "circular", "reflect", "replicate", NULL};

static int refuse(const char *key, const char *value, const char *wanted) {
    fprintf(stderr, "conv-fft: %s is \"%s\"; it must be %s; see conv-fft explain fft --help\n", key, value, wanted);
    return 2;
}

/* Read 1 to max_count whole numbers joined by x. Returns their number; 0: the text is something else. */
static int read_numbers(const char *value, int max_count, int64_t *numbers) {
    for (int count = 0; count < max_count; value++) {
        char *end;
        errno = 0;
        numbers[count++] = strtoll(value, &end, 10);
        if ((*value != '-' && (*value < '0' || *value > '9')) || errno == ERANGE)
            return 0;
        if (*end == '\0')
            return count;
        if (*end != 'x')
            return 0;
        value = end;
    }
    return 0;
}

static int read_number(const char *key, const char *value, int64_t *number) {
    return read_numbers(value, 1, number) ? 0 : refuse(key, value, "a whole number below 2^63");
}

/* Read one number for all axes, or one for each axis. */
static int read_axes(const char *key, const char *value, int rank, int64_t *axes) {
    const int count = read_numbers(value, rank, axes);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "one whole number, or %d joined by x", rank);
    if (count != 1 && count != rank)
        return refuse(key, value, rank == 1 ? "a whole number" : wanted);
    for (int a = count; a < rank; a++)
        axes[a] = axes[0];
    return 0;
}

/* The index of the word. Negative: it is none of them; a message has been written. */
static int read_word(const char *key, const char *value, const char *const *words) {
    char wanted[96] = "one of ";
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], value) == 0)
            return i;
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%s%s", i ? ", " : "", words[i]);
    }
    refuse(key, value, wanted);
    return -1;
}

/* Read the field `from`, the extent of the data. */
static int read_from(const char *value, fbfft_desc *d) {
    const int failed = read_axes("from", value, d->rank, d->extent);
    for (int a = 0; a < d->rank && !failed; a++) {
        char wanted[96];
        snprintf(wanted, sizeof wanted, "1 to %" PRId64 ", the basis, along axis %d", d->basis[a], a);
        if (d->extent[a] < 1 || d->extent[a] > d->basis[a])
            return refuse("from", value, wanted);
    }
    return failed;
}

static int unknown_field(const char *key) {
    static const char *const fields[] = {"from",  "size",  "offset", "step", "channels", "batch",      "kind",
                                         "order", "dtype", "layout", "mode", "spectrum", "arithmetic", NULL};
    const char *const meant = cf_closest(key, fields);
    char what[160];
    snprintf(what, sizeof what, "%s is not a field of an fft%s%s%s", key, meant ? "; did you mean " : "",
             meant ? meant : "", meant ? "?" : "");
    return usage_error(what, NULL);
}

static int read_field(const char *key, const char *value, fbfft_desc *d, int64_t *batch) {
    static const char *const names[] = {"kind", "order", "dtype", "layout", "mode", "spectrum", "arithmetic", NULL};
    static const char *const *const words[] = {kinds, orders, dtypes, layouts, modes, spectra, arithmetics};
    if (strcmp(key, "from") == 0)
        return read_from(value, d);
    if (strcmp(key, "size") == 0)
        return read_axes(key, value, d->rank, d->size);
    if (strcmp(key, "offset") == 0)
        return read_axes(key, value, d->rank, d->offset);
    if (strcmp(key, "step") == 0)
        return read_axes(key, value, d->rank, d->step);
    if (strcmp(key, "channels") == 0)
        return read_number(key, value, &d->channels);
    if (strcmp(key, "batch") == 0) {
        const int failed = read_number(key, value, batch);
        return failed || *batch >= 1 ? failed : refuse(key, value, "at least 1");
    }
    int field = 0;
    while (names[field] && strcmp(names[field], key) != 0)
        field++;
    if (!names[field])
        return unknown_field(key);
    const int word = read_word(key, value, words[field]);
    if (word < 0)
        return 2;
    if (field == 0)
        d->kind = (fbfft_kind)word;
    else if (field == 1)
        d->order = (fbfft_order)word;
    else if (field == 2)
        d->dtype = (conv_fft_dtype)word;
    else if (field == 3)
        d->layout = (conv_fft_layout)word;
    else if (field == 4)
        d->padding = (conv_fft_padding)word;
    else if (field == 5)
        d->spectrum = (conv_fft_dtype)word;
    else
        d->arithmetic = (fbfft_arithmetic)word;
    return 0;
}

static int read_words(char **words, int count, fbfft_desc *d, int64_t *batch) {
    int64_t basis[CONV_FFT_MAX_RANK];
    if (count == 0)
        return usage_error("explain fft needs a basis, for example 64x64", NULL);
    const int rank = read_numbers(words[0], CONV_FFT_MAX_RANK, basis);
    if (rank == 0)
        return refuse("the basis", words[0], "1 to 3 whole numbers joined by x");
    fbfft_desc_init(d, rank, FBFFT_R2C);
    memcpy(d->basis, basis, (size_t)rank * sizeof *basis);
    for (int i = 1; i < count; i++) {
        char key[32];
        const char *const equals = strchr(words[i], '=');
        if (!equals || equals == words[i] || (size_t)(equals - words[i]) >= sizeof key)
            return usage_error("not a key=value field of an fft", words[i]);
        snprintf(key, sizeof key, "%.*s", (int)(equals - words[i]), words[i]);
        for (int before = 1; before < i; before++)
            if (strncmp(words[before], words[i], strlen(key) + 1) == 0)
                return usage_error("the field is given twice", key);
        const int failed = read_field(key, equals + 1, d, batch);
        if (failed)
            return failed;
    }
    return 0;
}

/* Explain for the GPU of the context, or of the file of properties. */
static int print(const options *o, const conv_fft_context *context, const fbfft_desc *d, int64_t batch) {
    char text[16384];
    size_t needed;
    if (fbfft_explain(context, context ? NULL : o->properties, d, batch, text, sizeof text, &needed) !=
        CONV_FFT_SUCCESS)
        return library_error("explain fft");
    if (o->json) {
        json_t *document = json_begin("explain fft", context);
        json_lines(document, text);
        return json_end(document);
    }
    fputs(text, stdout);
    return 0;
}

int explain_fft(const options *o, char **words, int count) {
    fbfft_desc d;
    int64_t batch = 0;
    if (o->properties && o->device != CONV_FFT_DEVICE_AUTO)
        return usage_error("explain fft takes --device or --facts, not both", NULL);
    int failed = read_words(words, count, &d, &batch);
    if (failed)
        return failed;
    if (o->properties)
        return print(o, NULL, &d, batch);
    conv_fft_context *context;
    failed = open_context(o, &context);
    if (failed)
        return failed;
    if (conv_fft_context_device(context) == CONV_FFT_DEVICE_CPU)
        failed = usage_error("explain fft needs a GPU; name a usable one with --device, or a file with --facts", NULL);
    else
        failed = print(o, context, &d, batch);
    conv_fft_context_destroy(context);
    return failed;
}
