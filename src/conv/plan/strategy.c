/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/plan/strategy.h"

#include "conv/problem/parse.h"

#include <string.h>

static const char *const family_words[CF_FAMILY_COUNT + 1] = {[CF_FAMILY_STAGED] = "staged",
                                                              [CF_FAMILY_FUSED] = "fused",
                                                              [CF_FAMILY_CUFFT] = "reference",
                                                              [CF_FAMILY_CUDNN] = "direct"};
static const char *const dilation_words[] = {"step", "shift", NULL};
static const char *const overlap_words[] = {"save", "add", NULL};
static const char *const product_words[] = {"blas", "loop", "tensor", NULL};
static const char *const spectrum_words[] = {"fp32", "fp16", "bf16", "fp64", NULL}; /* indexed by conv_fft_dtype */
static const char *const keep_words[] = {"none", "x", "w", "xw", NULL};

/* The fields in their order. A line must have every field of its family, except SEGMENTS, whose default is no
 * segments. */
enum {
    BASIS,
    TILES,
    SEGMENTS,
    DILATION,
    OVERLAP,
    PRODUCT,
    SPECTRUM,
    CHUNK,
    GROUPS,
    KEEP,
    ALGORITHM,
    FIELD_COUNT
};
static const struct {
    const char *key;
    const char *const *words; /* NULL: numbers */
} fields[FIELD_COUNT] = {
    [BASIS] = {"basis", NULL},
    [TILES] = {"tiles", NULL},
    [SEGMENTS] = {"segments", NULL},
    [DILATION] = {"dilation", dilation_words},
    [OVERLAP] = {"overlap", overlap_words},
    [PRODUCT] = {"product", product_words},
    [SPECTRUM] = {"spectrum", spectrum_words},
    [CHUNK] = {"chunk", NULL},
    [GROUPS] = {"groups", NULL},
    [KEEP] = {"keep", keep_words},
    [ALGORITHM] = {"algorithm", NULL},
};

/* Bit f: the family has field f. */
static const unsigned family_fields[CF_FAMILY_COUNT] = {
    [CF_FAMILY_STAGED] = (1u << (KEEP + 1)) - 1,
    [CF_FAMILY_FUSED] = 1u << BASIS | 1u << TILES | 1u << DILATION | 1u << SPECTRUM,
    [CF_FAMILY_CUFFT] = 1u << BASIS | 1u << CHUNK,
    [CF_FAMILY_CUDNN] = 1u << ALGORITHM,
};

static int word_of(const cf_strategy *s, int field) {
    switch (field) {
    case DILATION:
        return s->shift_dilation;
    case OVERLAP:
        return s->overlap_add;
    case PRODUCT:
        return s->product;
    case SPECTRUM:
        return s->spectrum;
    default:
        return s->keep;
    }
}

static bool has_segments(const cf_strategy *s) {
    return s->segments[0] > 1 || s->segments[1] > 1 || s->segments[2] > 1;
}

static const int64_t *axes_of(const cf_strategy *s, int field) {
    return field == BASIS ? s->basis : field == TILES ? s->tiles : s->segments;
}

void cf_strategy_format(const cf_strategy *s, int rank, char *text, size_t bytes) {
    cf_text t = {text, bytes, 0};
    cf_text_add(&t, "%s", family_words[s->family]);
    for (int field = 0; field < FIELD_COUNT; ++field) {
        if (!(family_fields[s->family] & 1u << field) || (field == SEGMENTS && !has_segments(s)))
            continue;
        if (field == BASIS || field == TILES || field == SEGMENTS)
            cf_text_axes(&t, fields[field].key, rank, axes_of(s, field) + 3 - rank);
        else if (field == ALGORITHM)
            cf_text_add(&t, " algorithm=%s", s->algorithm);
        else if (fields[field].words)
            cf_text_add(&t, " %s=%s", fields[field].key, fields[field].words[word_of(s, field)]);
        else
            cf_text_add(&t, " %s=%lld", fields[field].key, (long long)(field == CHUNK ? s->chunk : s->groups));
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
    case BASIS:
        return read_axes("basis", value, rank, s->basis);
    case TILES:
        return read_axes("tiles", value, rank, s->tiles);
    case SEGMENTS:
        return read_axes("segments", value, rank, s->segments);
    case DILATION:
        s->shift_dilation = word;
        break;
    case OVERLAP:
        s->overlap_add = word;
        break;
    case PRODUCT:
        s->product = (cf_cgemm_variant)word;
        break;
    case SPECTRUM:
        s->spectrum = (conv_fft_dtype)word;
        break;
    case CHUNK:
        return read_count("chunk", value, &s->chunk);
    case GROUPS:
        return read_count("groups", value, &s->groups);
    case KEEP:
        s->keep = word;
        break;
    case ALGORITHM:
        CF_REQUIRE(*value && strlen(value) < sizeof s->algorithm,
                   "strategy: algorithm has %zu bytes; it must have 1 to %zu", strlen(value), sizeof s->algorithm - 1);
        strcpy(s->algorithm, value);
        break;
    }
    return CONV_FFT_SUCCESS;
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
    for (int field = -1; field < FIELD_COUNT; ++field) {
        if (field >= 0 && !(family_fields[s.family] & 1u << field))
            continue;
        if (field == SEGMENTS && strncmp(next, "segments=", 9) != 0)
            continue;
        char *word = next;
        next += strcspn(next, " ");
        if (*next)
            *next++ = '\0';
        next += strspn(next, " ");
        if (field < 0) {
            const int family = cf_text_word(family_words, word);
            CF_REQUIRE(family >= 0, "strategy: \"%s\" is not a family; it must be staged, fused, reference or direct",
                       word);
            s.family = (cf_family_id)family;
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
