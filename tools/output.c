/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include "message.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *pass_word(int set) {
    switch (set) {
#define PASS_CASE(name, value, text) \
    case CONV_FFT_##name:            \
        return text;
        CONV_FFT_PASS_LIST(PASS_CASE)
#undef PASS_CASE
    default:
        return "some passes";
    }
}

const char *size_text(uint64_t bytes, char text[16]) {
    static const char suffixes[] = "KMGT";
    double size = (double)bytes;
    int shifts = 0;
    for (; size >= (shifts ? 999.95 : 10000.0) && suffixes[shifts]; ++shifts)
        size /= 1024;
    if (shifts == 0)
        snprintf(text, 16, "%" PRIu64, bytes);
    else
        snprintf(text, 16, "%.1f%c", size, suffixes[shifts - 1]);
    return text;
}

conv_fft_status read_strategies(const conv_fft_plan *plan, conv_fft_pass pass, char text[STRATEGY_BYTES]) {
    conv_fft_description d = {.strategy = ""}, data = d;
    conv_fft_status status = conv_fft_plan_describe(plan, pass, &d);
    if (status == CONV_FFT_SUCCESS && pass == CONV_FFT_BACKWARD)
        status = conv_fft_plan_describe(plan, CONV_FFT_BACKWARD_DATA, &data);
    if (status == CONV_FFT_SUCCESS)
        snprintf(text, STRATEGY_BYTES, "%s%s%s", data.strategy, data.strategy[0] ? "; " : "", d.strategy);
    return status;
}

/* The strategy line at *at, and its length. *at moves to the next one. NULL: there is none. */
static const char *next_strategy(const char **at, int *length) {
    const char *const line = *at, *const end = strstr(line, "; ");
    if (!*line)
        return NULL;
    *length = end ? (int)(end - line) : (int)strlen(line);
    *at = end ? end + 2 : line + *length;
    return line;
}

const char *family_names(const char *strategies, char text[64]) {
    int length;
    text[0] = '\0';
    for (const char *line; (line = next_strategy(&strategies, &length)) != NULL;) {
        char family[32];
        snprintf(family, sizeof family, "%.*s", (int)strcspn(line, " ;"), line);
        if (strcmp(family, text) != 0)
            snprintf(text + strlen(text), 64 - strlen(text), "%s%s", text[0] ? ", " : "", family);
    }
    return text;
}

/* The length of the first `words` words of a line. */
static int first_words(const char *line, int length, int words) {
    for (int i = 0; i < length; ++i)
        if (line[i] == ' ' && --words == 0)
            return i;
    return length;
}

bool begin_alike(const char *a, const char *b, int words) {
    int length_a, length_b;
    for (;;) {
        const char *const line_a = next_strategy(&a, &length_a), *const line_b = next_strategy(&b, &length_b);
        if (!line_a || !line_b)
            return !line_a && !line_b;
        const int begin = first_words(line_a, length_a, words);
        if (begin != first_words(line_b, length_b, words) || strncmp(line_a, line_b, (size_t)begin) != 0)
            return false;
    }
}

/* Print the words of a line from `at` on that are not words of the other line. */
static void print_other_words(const char *line, int length, int at, const char *other, int other_length) {
    while (at < length) {
        const int word = first_words(line + at, length - at, 1);
        bool found = false;
        for (int i = 0; i < other_length && !found; i += 1 + first_words(other + i, other_length - i, 1))
            found =
                word == first_words(other + i, other_length - i, 1) && strncmp(line + at, other + i, (size_t)word) == 0;
        if (!found)
            printf(" %.*s", word, line + at);
        at += word + 1;
    }
}

void print_strategies(const char *strategies, int first_indent, int indent, int words, const char *beside) {
    int length, other_length = 0;
    for (const char *line; (line = next_strategy(&strategies, &length)) != NULL; first_indent = indent) {
        const char *const other = beside ? next_strategy(&beside, &other_length) : NULL;
        const int begin = words ? first_words(line, length, words) : length;
        printf("%*s%.*s", first_indent, "", begin, line);
        if (other)
            print_other_words(line, length, begin + 1, other, other_length);
        putchar('\n');
    }
}

void print_wrapped(const char *text, int at, int indent) {
    for (const char *word = text; *word; word += strspn(word, " ")) {
        const int length = (int)strcspn(word, " ");
        const bool first = word == text;
        if (!first && at + 1 + length > OUTPUT_COLUMNS) {
            printf("\n%*s", indent, "");
            at = indent;
        } else if (!first) {
            putchar(' ');
            ++at;
        }
        printf("%.*s", length, word);
        at += length;
        word += length;
    }
    putchar('\n');
}

/* ---- JSON */

json_t *json_begin(const char *command, const conv_fft_context *context) {
    json_t *document =
        json_pack("{s:i, s:s, s:s}", "schema", 1, "command", command, "library", conv_fft_version_string());
    if (context)
        json_object_set_new(document, "device", json_string(conv_fft_context_description(context)));
    return document;
}

json_t *json_begin_layers(const char *command, const conv_fft_context *context) {
    json_t *document = json_begin(command, context);
    json_object_set_new(document, "layers", json_array());
    return document;
}

json_t *json_layer(json_t *document, const layer_line *layer) {
    json_t *object = json_pack("{s:s, s:s}", "name", layer->name, "problem", layer->text);
    json_append(document, "layers", object);
    return object;
}

int json_end(json_t *document) {
    const int failed = json_dumpf(document, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(document);
    if (!failed)
        return 0;
    fprintf(stderr, "%s: the JSON text could not be made\n", program_name);
    return 1;
}

json_t *json_ms(double ms) { return ms >= 0 ? json_real(ms) : json_null(); }

json_t *json_strategies(const char *strategies) {
    json_t *list = json_array();
    int length;
    for (const char *line; (line = next_strategy(&strategies, &length)) != NULL;)
        json_array_append_new(list, json_stringn(line, (size_t)length));
    return list;
}

void json_append(json_t *object, const char *key, json_t *value) {
    if (!json_object_get(object, key))
        json_object_set_new(object, key, json_array());
    json_array_append_new(json_object_get(object, key), value);
}

void json_lines(json_t *document, char *text) {
    char *rest = NULL;
    json_object_set_new(document, "lines", json_array());
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        json_append(document, "lines", json_string(line + strspn(line, " ")));
}
