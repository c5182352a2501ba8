/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/plan/strategy.h"

#include "conv/plan/family.h"
#include "conv/problem/parse.h"
#include "core/words.h"

#include <string.h>

static const char *const dilation_words[] = {"step", "shift", NULL};
static const char *const overlap_words[] = {"save", "add", NULL};
static const char *const product_words[] = {"blas", "loop", "tensor", NULL};
static const char *const keep_words[] = {"none", "x", "w", "xw", NULL};

/* A line must have every field of its family. Only CF_FIELD_SEGMENTS may be left out. It stands for 1 then. */
static const struct {
    const char *key;
    const char *const *words; /* NULL: numbers */
} fields[CF_FIELD_COUNT] = {
    [CF_FIELD_BASIS] = {"basis", NULL},
    [CF_FIELD_TILES] = {"tiles", NULL},
    [CF_FIELD_SEGMENTS] = {"segments", NULL},
    [CF_FIELD_DILATION] = {"dilation", dilation_words},
    [CF_FIELD_OVERLAP] = {"overlap", overlap_words},
    [CF_FIELD_PRODUCT] = {"product", product_words},
    [CF_FIELD_SPECTRUM] = {"spectrum", cf_dtype_words},
    [CF_FIELD_CHUNK] = {"chunk", NULL},
    [CF_FIELD_GROUPS] = {"groups", NULL},
    [CF_FIELD_KEEP] = {"keep", keep_words},
    [CF_FIELD_ALGORITHM] = {"algorithm", NULL},
};

static int word_of(const cf_strategy *s, int field) {
    switch (field) {
    case CF_FIELD_DILATION:
        return s->shift_dilation;
    case CF_FIELD_OVERLAP:
        return s->overlap_add;
    case CF_FIELD_PRODUCT:
        return s->product;
    case CF_FIELD_SPECTRUM:
        return s->spectrum;
    default:
        return s->keep;
    }
}

static bool has_segments(const cf_strategy *s) {
    return s->segments[0] > 1 || s->segments[1] > 1 || s->segments[2] > 1;
}

static const int64_t *axes_of(const cf_strategy *s, int field) {
    return field == CF_FIELD_BASIS ? s->basis : field == CF_FIELD_TILES ? s->tiles : s->segments;
}

void cf_strategy_format(const cf_strategy *s, int rank, char *text, size_t bytes) {
    cf_text t = {text, bytes, 0};
    cf_text_add(&t, "%s", s->family->name);
    for (int field = 0; field < CF_FIELD_COUNT; ++field) {
        if (!(s->family->fields & 1u << field) || (field == CF_FIELD_SEGMENTS && !has_segments(s)))
            continue;
        if (field == CF_FIELD_BASIS || field == CF_FIELD_TILES || field == CF_FIELD_SEGMENTS)
            cf_text_axes(&t, fields[field].key, rank, axes_of(s, field) + 3 - rank);
        else if (field == CF_FIELD_ALGORITHM)
            cf_text_add(&t, " algorithm=%s", s->algorithm);
        else if (fields[field].words)
            cf_text_add(&t, " %s=%s", fields[field].key, fields[field].words[word_of(s, field)]);
        else
            cf_text_add(&t, " %s=%lld", fields[field].key, (long long)(field == CF_FIELD_CHUNK ? s->chunk : s->groups));
    }
}

static conv_fft_status read_axes(const char *key, const char *value, int rank, int64_t *axes) {
    int count;
    int64_t numbers[3];
    CF_FORWARD(cf_text_numbers(key, value, 3, numbers, &count));
    CF_REQUIRE(count == rank, "strategy: %s is \"%s\"; it must have %d number%s", key, value, rank,
               rank == 1 ? "" : "s");
    for (int a = 0; a < 3; ++a)
        axes[a] = 1;
    for (int a = 0; a < rank; ++a) {
        CF_REQUIRE(numbers[a] >= 1, "strategy: %s is \"%s\"; its numbers must be at least 1", key, value);
        axes[3 - rank + a] = numbers[a];
    }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status read_count(const char *key, const char *value, int64_t *number) {
    int count;
    CF_FORWARD(cf_text_numbers(key, value, 1, number, &count));
    CF_REQUIRE(*number >= 0, "strategy: %s is %lld; it must be at least 0", key, (long long)*number);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status read_field(int field, const char *value, int rank, cf_strategy *s) {
    int word = 0;
    if (fields[field].words) {
        word = cf_text_word(fields[field].words, value);
        CF_REQUIRE(word >= 0, "strategy: \"%s\" is not a value of %s", value, fields[field].key);
    }
    switch (field) {
    case CF_FIELD_BASIS:
        return read_axes("basis", value, rank, s->basis);
    case CF_FIELD_TILES:
        return read_axes("tiles", value, rank, s->tiles);
    case CF_FIELD_SEGMENTS:
        return read_axes("segments", value, rank, s->segments);
    case CF_FIELD_DILATION:
        s->shift_dilation = word;
        break;
    case CF_FIELD_OVERLAP:
        s->overlap_add = word;
        break;
    case CF_FIELD_PRODUCT:
        s->product = (cf_cgemm_variant)word;
        break;
    case CF_FIELD_SPECTRUM:
        s->spectrum = (conv_fft_dtype)word;
        break;
    case CF_FIELD_CHUNK:
        return read_count("chunk", value, &s->chunk);
    case CF_FIELD_GROUPS:
        return read_count("groups", value, &s->groups);
    case CF_FIELD_KEEP:
        s->keep = word;
        break;
    case CF_FIELD_ALGORITHM:
        CF_REQUIRE(*value && strlen(value) < sizeof s->algorithm,
                   "strategy: algorithm has %zu bytes; it must have 1 to %zu", strlen(value), sizeof s->algorithm - 1);
        strcpy(s->algorithm, value);
        break;
    }
    return CONV_FFT_SUCCESS;
}

cf_strategy cf_family_strategy(const cf_family *family) {
    return (cf_strategy){.family = family, .basis = {1, 1, 1}, .tiles = {1, 1, 1}};
}

const cf_family *cf_family_named(const char *name) {
    for (int i = 0; cf_families[i]; ++i)
        if (strcmp(name, cf_families[i]->name) == 0 ||
            (cf_families[i]->old_name && strcmp(name, cf_families[i]->old_name) == 0))
            return cf_families[i];
    return NULL;
}

static conv_fft_status fail_family(const char *word) {
    char names[128];
    cf_text t = {names, sizeof names, 0};
    for (int i = 0; cf_families[i]; ++i)
        cf_text_add(&t, "%s%s", i == 0 ? "" : cf_families[i + 1] ? ", " : " or ", cf_families[i]->name);
    return cf_fail(CONV_FFT_INVALID_ARGUMENT, "strategy: \"%s\" is not a family; it must be %s", word, names);
}

conv_fft_status cf_strategy_parse(const char *line, int rank, cf_strategy *strategy) {
    char text[256];
    CF_REQUIRE(strlen(line) < sizeof text, "strategy: the line has %zu bytes; at most %zu are allowed", strlen(line),
               sizeof text - 1);
    strcpy(text, line);
    cf_strategy s;
    memset(&s, 0, sizeof s);
    for (int a = 0; a < 3; ++a)
        s.basis[a] = s.tiles[a] = s.segments[a] = 1;
    char *next = text + strspn(text, " ");
    for (int field = -1; field < CF_FIELD_COUNT; ++field) {
        if (field >= 0 && !(s.family->fields & 1u << field))
            continue;
        if (field == CF_FIELD_SEGMENTS && strncmp(next, "segments=", 9) != 0)
            continue;
        char *word = next;
        next += strcspn(next, " ");
        if (*next)
            *next++ = '\0';
        next += strspn(next, " ");
        if (field < 0) {
            s.family = cf_family_named(word);
            if (!s.family)
                return fail_family(word);
            continue;
        }
        CF_REQUIRE(*word, "strategy: the line ends where %s= is expected", fields[field].key);
        const size_t length = strlen(fields[field].key);
        CF_REQUIRE(strncmp(word, fields[field].key, length) == 0 && word[length] == '=',
                   "strategy: \"%s\" stands where %s= is expected", word, fields[field].key);
        CF_FORWARD(read_field(field, word + length + 1, rank, &s));
    }
    CF_REQUIRE(*next == '\0', "strategy: \"%s\" follows the last field", next);
    *strategy = s;
    return CONV_FFT_SUCCESS;
}

void cf_strategy_resolve(const cf_layer *layer, int pass, cf_strategy *s) {
    const char *why;
    for (int i = 0; cf_families[i]; ++i)
        if (cf_families[i]->replaces && strcmp(cf_families[i]->replaces, s->family->name) == 0 &&
            cf_families[i]->feasible(layer, pass, s, &why)) {
            s->family = cf_families[i];
            return;
        }
}
