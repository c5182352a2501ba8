/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_COLUMNS = 20 /* a longer name has a line of its own */
};

void table_head(const conv_fft_context *context, table_kind kind) {
    printf("# ");
    print_wrapped(conv_fft_context_description(context), 2, 2);
    printf("%-*s %-16s %10s", NAME_COLUMNS, "layer", "pass", "ms");
    if (kind == TABLE_TUNE)
        printf(" %10s %11s", "model ms", "baseline ms");
    printf(" %9s  %s\n", "workspace", "family");
    fflush(stdout);
}

static void print_ms(int width, double ms, const char *otherwise) {
    if (ms >= 0)
        printf(" %*.4f", width, ms);
    else
        printf(" %*s", width, otherwise);
}

static void print_row(const table_row *row, table_kind kind, bool verbose) {
    const char *const name = row->layer->name;
    const bool fits = strlen(name) <= NAME_COLUMNS;
    char size[16], families[64];
    if (!fits)
        printf("%s\n", name);
    printf("%-*s %-16s", NAME_COLUMNS, fits ? name : "", pass_word(row->pass));
    print_ms(10, row->ms, "not tuned");
    if (kind == TABLE_TUNE) {
        print_ms(10, row->model_ms, "-");
        print_ms(11, row->baseline_ms, "-");
    }
    printf(" %9s  %s\n", size_text(row->workspace_bytes, size), family_names(row->strategies, families));
    if (verbose)
        print_strategies(row->strategies, 4, 4, 0, NULL);
}

/* The object of a layer: the last one of the document, or a new one. */
static json_t *layer_object(json_t *document, const layer_line *layer) {
    json_t *const layers = json_object_get(document, "layers");
    json_t *const last = json_array_get(layers, json_array_size(layers) - 1);
    if (last && strcmp(json_string_value(json_object_get(last, "name")), layer->name) == 0 &&
        strcmp(json_string_value(json_object_get(last, "problem")), layer->text) == 0)
        return last;
    return json_layer(document, layer);
}

static void add_row(const table_row *row, table_kind kind, json_t *document) {
    json_t *const object =
        json_pack("{s:s, s:s, s:o, s:o, s:I}", "pass", pass_word(row->pass), "chosen_by",
                  row->by_record ? "record" : "model", "strategies", json_strategies(row->strategies), "ms",
                  json_ms(row->ms), "workspace_bytes", (json_int_t)row->workspace_bytes);
    if (kind == TABLE_TUNE) {
        json_object_set_new(object, "model_ms", json_ms(row->model_ms));
        json_object_set_new(object, "baseline_ms", json_ms(row->baseline_ms));
    }
    json_append(layer_object(document, row->layer), "passes", object);
}

void table_show(const table_row *row, table_kind kind, bool verbose, json_t *document) {
    if (document)
        add_row(row, kind, document);
    else
        print_row(row, kind, verbose);
}
