/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands print: words, sizes, strategies, wrapped text, and JSON. */
#ifndef CONV_FFT_PROGRAM_OUTPUT_H
#define CONV_FFT_PROGRAM_OUTPUT_H

#include "conv_fft.h"
#include "network.h"

#include <jansson.h>
#include <stdbool.h>

enum {
    STRATEGY_BYTES = 800, /* of the strategies of a set of passes */
    OUTPUT_COLUMNS = 100  /* that tables and texts have at most */
};

/* The word of a pass or a set of passes: "backward data". */
const char *pass_word(int set);

/* "512", "1.7M": with K, M, G or T from 10,000 bytes on. 1K is 1024 bytes. */
const char *size_text(uint64_t bytes, char text[16]);

/* The strategy lines of a pass, or of both gradients, joined by "; ". */
conv_fft_status read_strategies(const conv_fft_plan *plan, conv_fft_pass pass, char text[STRATEGY_BYTES]);

/* "staged", "staged, fused": the families of strategy lines joined by "; ". */
const char *family_names(const char *strategies, char text[64]);

/* Print a line for each strategy, or for its first `words` words (0: all), behind so many blanks. beside: NULL, or
 * strategies whose first words are the same; further words that are different there are also printed. */
void print_strategies(const char *strategies, int first_indent, int indent, int words, const char *beside);

/* Whether all lines of a and b begin with the same `words` words. */
bool begin_alike(const char *a, const char *b, int words);

/* Print a text in lines of at most OUTPUT_COLUMNS, divided between words. The cursor is at column `at`; further lines
 * have the indent. */
void print_wrapped(const char *text, int at, int indent);

/* ---- JSON. docs/program.md describes the documents. */

/* The beginning of a document. context may be NULL. */
json_t *json_begin(const char *command, const conv_fft_context *context);

/* The same with an empty list of layers. */
json_t *json_begin_layers(const char *command, const conv_fft_context *context);

/* Add a layer to the document. Returns its object. */
json_t *json_layer(json_t *document, const layer_line *layer);

/* Print a document to standard output, and release it. Returns an exit status. */
int json_end(json_t *document);

/* null for a negative number. */
json_t *json_ms(double ms);

/* An array of the strategy lines that are joined by "; ". */
json_t *json_strategies(const char *strategies);

/* Append to the array `key` of an object, which is made if it is not there. */
void json_append(json_t *object, const char *key, json_t *value);

/* Set the array `lines` to the lines of a text, without blanks at their beginning. The text is changed. */
void json_lines(json_t *document, char *text);

#endif
