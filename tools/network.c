/* SPDX-License-Identifier: Apache-2.0 */
/* Network descriptions: files of problem lines. A bad line is reported and passed over. */
#include "conv-fft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add(network *n, const layer_line *layer) {
    if (n->count == n->room) {
        const int64_t room = n->room ? 2 * n->room : 64;
        layer_line *grown = realloc(n->layers, (size_t)room * sizeof *grown);
        if (!grown) {
            fprintf(stderr, "conv-fft: out of memory for the lines of %s\n", layer->file);
            return 1;
        }
        n->layers = grown;
        n->room = room;
    }
    n->layers[n->count++] = *layer;
    return 0;
}

int network_read(const char *file, network *n) {
    FILE *stream = fopen(file, "r");
    if (!stream)
        return read_error(file);
    char *text = NULL;
    size_t bytes = 0;
    layer_line layer = {.file = file};
    int failed = 0;
    while (!failed && getline(&text, &bytes, stream) >= 0) {
        ++layer.line;
        if (conv_fft_problem_parse(text, &layer.problem, layer.name, sizeof layer.name) != CONV_FFT_SUCCESS) {
            fprintf(stderr, "conv-fft: %s:%ld: %s\n", file, layer.line, conv_fft_last_error());
            ++n->bad;
        } else if (layer.problem.rank > 0) {
            if (!layer.name[0])
                snprintf(layer.name, sizeof layer.name, "line-%ld", layer.line);
            failed = add(n, &layer);
        }
    }
    if (!failed && !feof(stream))
        failed = read_error(file);
    free(text);
    fclose(stream);
    return failed;
}

int network_read_all(char **files, int count, int64_t most, network *n) {
    *n = (network){0};
    int failed = 0;
    for (int i = 0; i < count && !failed; ++i)
        failed = network_read(files[i], n);
    if (most > 0 && n->count > most)
        n->count = most;
    return failed;
}

void network_free(network *n) { free(n->layers); }
