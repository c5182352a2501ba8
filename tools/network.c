/* SPDX-License-Identifier: Apache-2.0 */
/* For a bad line, a message is written, and the line is skipped. */
#include "network.h"

#include "data_file.h"
#include "message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add(network *n, const layer_line *layer) {
    if (n->count == n->capacity) {
        const int64_t capacity = n->capacity ? 2 * n->capacity : 64;
        layer_line *grown = realloc(n->layers, (size_t)capacity * sizeof *grown);
        if (!grown) {
            fprintf(stderr, "%s: out of memory for the lines of %s\n", program_name, layer->file);
            return 1;
        }
        n->layers = grown;
        n->capacity = capacity;
    }
    n->layers[n->count++] = *layer;
    return 0;
}

static int fail_byte(unsigned byte, const layer_line *layer) {
    char place[32] = "";
    if (layer->file)
        snprintf(place, sizeof place, ":%ld", layer->line);
    fprintf(stderr, "%s: %s%s: there is a byte 0x%02x, which is not of a plain text\n", program_name,
            layer->file ? layer->file : "the problem", place, byte);
    return 1;
}

int layer_error(const layer_line *layer) {
    if (!layer->file)
        return library_error(layer->name[0] ? layer->name : "the problem");
    fprintf(stderr, "%s: %s:%ld: %s\n", program_name, layer->file, layer->line, conv_fft_last_error());
    return 1;
}

/* Names and messages go to terminals, so only comments may have other bytes than plain text. */
static int check_bytes(const char *text, size_t length, const layer_line *layer) {
    for (size_t i = 0; i < length; ++i) {
        const unsigned char byte = (unsigned char)text[i];
        const int plain = (byte >= ' ' && byte <= '~') || strchr("\t\n\v\f\r", byte) != NULL;
        if (byte == '#')
            return memchr(text + i, '\0', length - i) ? fail_byte(0, layer) : 0;
        if (byte == '\0' || !plain)
            return fail_byte(byte, layer);
    }
    return 0;
}

int layer_read(const char *text, size_t length, layer_line *layer) {
    if (check_bytes(text, length, layer) != 0)
        return 1;
    if (conv_fft_problem_parse(text, &layer->problem, layer->name, sizeof layer->name) != CONV_FFT_SUCCESS)
        return layer_error(layer);
    if (layer->problem.rank == 0)
        return 0;
    return conv_fft_problem_format(&layer->problem, layer->text, sizeof layer->text) == CONV_FFT_SUCCESS
               ? 0
               : layer_error(layer);
}

static int is_there(const network *n, const layer_line *layer) {
    for (int64_t i = 0; i < n->count; ++i) {
        if (strcmp(n->layers[i].text, layer->text) == 0 &&
            (!layer->name[0] || strcmp(n->layers[i].name, layer->name) == 0))
            return 1;
    }
    return 0;
}

static int read_file(const char *file, network *n) {
    FILE *stream = data_file_open(file);
    if (!stream)
        return read_error(file);
    char *text = NULL;
    size_t bytes = 0;
    layer_line layer = {.file = file};
    int failed = 0;
    for (ssize_t length; !failed && (length = getline(&text, &bytes, stream)) >= 0;) {
        ++layer.line;
        if (layer_read(text, (size_t)length, &layer) != 0) {
            ++n->bad;
            continue;
        }
        if (layer.problem.rank == 0 || is_there(n, &layer))
            continue;
        if (!layer.name[0])
            snprintf(layer.name, sizeof layer.name, "line-%ld", layer.line);
        failed = add(n, &layer);
    }
    if (!failed && !feof(stream))
        failed = read_error(file);
    free(text);
    fclose(stream);
    return failed;
}

int network_read_all(char *const *files, int count, int64_t max_layers, network *n) {
    *n = (network){0};
    int failed = 0;
    for (int i = 0; i < count; ++i) {
        const int status = read_file(files[i], n);
        failed = failed ? failed : status;
    }
    if (!failed && n->count == 0 && n->bad == 0) {
        fprintf(stderr, "%s: %s%s: there is no problem line\n", program_name, files[0],
                count > 1 ? " and the others" : "");
        failed = 1;
    }
    if (max_layers > 0 && n->count > max_layers)
        n->count = max_layers;
    return failed;
}

void network_free(network *n) { free(n->layers); }
