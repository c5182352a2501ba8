/* SPDX-License-Identifier: Apache-2.0 */
/* The problem line: reading and writing. */
#include "conv/problem/parse.h"
#include "conv/problem/layer.h"

#include "core/arith.h"
#include "core/closest.h"
#include "core/dtype.h"
#include "core/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cf_text_word(const char *const *words, const char *value) {
    for (int i = 0; words[i]; ++i) {
        if (strcmp(words[i], value) == 0)
            return i;
    }
    return -1;
}

/* The end of the whole number at `at`. NULL if there is none; errno is ERANGE if it is one that does not fit. */
static const char *read_number(const char *at, int64_t *number) {
    char *end;
    errno = 0;
    if (*at != '-' && (*at < '0' || *at > '9'))
        return NULL;
    *number = strtoll(at, &end, 10);
    return end == at || errno == ERANGE ? NULL : end;
}

/* The failure after read_number() returned NULL, or after other text followed the number. */
static conv_fft_status not_numbers(const char *key, const char *value, const char *wanted) {
    CF_REQUIRE(errno != ERANGE, "%s is \"%s\"; a number in it is out of range: it must fit 63 bits", key, value);
    return cf_fail(CONV_FFT_INVALID_ARGUMENT, "%s is \"%s\"; it must be %s", key, value, wanted);
}

conv_fft_status cf_text_numbers(const char *key, const char *value, int max_count, int64_t *numbers, int *count) {
    const char *at = value;
    for (*count = 0; *count < max_count;) {
        const char *end = read_number(at, &numbers[*count]);
        if (!end)
            break;
        ++*count;
        if (*end == '\0')
            return CONV_FFT_SUCCESS;
        if (*end != 'x')
            break;
        at = end + 1;
    }
    char wanted[64] = "a whole number";
    if (max_count > 1)
        snprintf(wanted, sizeof wanted, "1 to %d whole numbers joined by x", max_count);
    return not_numbers(key, value, wanted);
}

/* "zeros, circular" */
static void list_words(const char *const *words, char *list, size_t bytes) {
    cf_text t = {list, bytes, 0};
    for (int i = 0; words[i]; ++i)
        cf_text_add(&t, "%s%s", i ? ", " : "", words[i]);
}

static conv_fft_status read_word(const char *key, const char *value, const char *const *words, int *result) {
    const int found = cf_text_word(words, value);
    if (found >= 0) {
        *result = found;
        return CONV_FFT_SUCCESS;
    }
    char list[128];
    list_words(words, list, sizeof list);
    return cf_fail(CONV_FFT_INVALID_ARGUMENT, "%s is \"%s\"; it must be one of %s", key, value, list);
}

/* One number for all axes, or one per axis. */
static conv_fft_status spread(const char *key, const char *value, int rank, int count, int64_t *numbers) {
    CF_REQUIRE(count == 1 || count == rank, "%s is \"%s\"; it must have one number, or one for each of the %d axes",
               key, value, rank);
    for (int a = count; a < rank; ++a)
        numbers[a] = numbers[0];
    return CONV_FFT_SUCCESS;
}

static conv_fft_status read_axes(const char *key, const char *value, int rank, int64_t *axes) {
    int count;
    CF_FORWARD(cf_text_numbers(key, value, CONV_FFT_MAX_RANK, axes, &count));
    return spread(key, value, rank, count, axes);
}

/* pad=2, pad=1x2, pad=3:0, pad=1:2x0:3. */
static conv_fft_status read_pad(const char *value, conv_fft_problem *p) {
    int count = 0;
    for (const char *at = value, *end; at; at = *end ? end + 1 : NULL, ++count) {
        CF_REQUIRE(count < p->rank, "pad is \"%s\"; it must have one entry, or one for each of the %d axes", value,
                   p->rank);
        end = read_number(at, &p->pad_before[count]);
        p->pad_after[count] = p->pad_before[count];
        if (end && *end == ':')
            end = read_number(end + 1, &p->pad_after[count]);
        if (!end || (*end && *end != 'x'))
            return not_numbers("pad", value, "same, or entries joined by x: one whole number, or two joined by ':'");
    }
    CF_FORWARD(spread("pad", value, p->rank, count, p->pad_before));
    return spread("pad", value, p->rank, count, p->pad_after);
}

static conv_fft_status pad_same(conv_fft_problem *p) {
    for (int a = 0; a < p->rank; ++a) {
        int64_t total = p->kernel[a] - 1;
        CF_REQUIRE(total >= 0 && p->dilation[a] >= 1 && cf_multiply(&total, p->dilation[a]),
                   "pad=same needs kernel[%d] (%lld) and dilation[%d] (%lld) to be at least 1, and their product to "
                   "fit 63 bits",
                   a, (long long)p->kernel[a], a, (long long)p->dilation[a]);
        p->pad_before[a] = total / 2;
        p->pad_after[a] = total - total / 2;
    }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status read_input(const char *value, conv_fft_problem *p) {
    int64_t numbers[2 + CONV_FFT_MAX_RANK];
    int count;
    CF_REQUIRE(value, "the field in=BATCHxCHANNELSxD1.. is missing");
    CF_FORWARD(cf_text_numbers("in", value, 2 + CONV_FFT_MAX_RANK, numbers, &count));
    CF_REQUIRE(count >= 3, "in is \"%s\"; it must be batch, channels and 1 to 3 axes joined by x", value);
    cf_problem_defaults(p, count - 2);
    p->batch = numbers[0];
    p->in_channels = p->out_channels = numbers[1];
    for (int a = 0; a < p->rank; ++a)
        p->input[a] = numbers[2 + a];
    return CONV_FFT_SUCCESS;
}

/*
 * The order in which fields are read, wherever they stand: `in` gives the rank, pad=same needs the kernel and its
 * dilation, and `wlayout` overrules `layout`.
 */
enum {
    IN,
    OUT,
    KERNEL,
    STRIDE,
    DILATION,
    PAD,
    GROUPS,
    MODE,
    LAYOUT,
    WLAYOUT,
    DTYPE,
    W,
    GW,
    MATH,
    FIELD_COUNT
};
static const char *const field_words[FIELD_COUNT + 1] = {
    [IN] = "in",       [OUT] = "out",       [KERNEL] = "kernel", [STRIDE] = "stride", [DILATION] = "dilation",
    [PAD] = "pad",     [GROUPS] = "groups", [MODE] = "mode",     [LAYOUT] = "layout", [WLAYOUT] = "wlayout",
    [DTYPE] = "dtype", [W] = "w",           [GW] = "gw",         [MATH] = "math"};

static conv_fft_status read_number_field(int field, const char *value, conv_fft_problem *p) {
    const char *key = field_words[field];
    int count;
    switch (field) {
    case OUT:
        return cf_text_numbers(key, value, 1, &p->out_channels, &count);
    case KERNEL:
        return read_axes(key, value, p->rank, p->kernel);
    case STRIDE:
        return read_axes(key, value, p->rank, p->stride);
    case DILATION:
        return read_axes(key, value, p->rank, p->dilation);
    case PAD:
        return strcmp(value, "same") == 0 ? pad_same(p) : read_pad(value, p);
    default: /* GROUPS */
        return cf_text_numbers(key, value, 1, &p->groups, &count);
    }
}

static conv_fft_status set_weight_dtype(int dtype, conv_fft_problem *p) {
    const bool same = dtype == CONV_FFT_DTYPE_SAME || dtype == (int)p->dtype;
    const bool half = cf_dtype_is_16_bit(p->dtype);
    CF_REQUIRE(same || (half && dtype == CONV_FFT_FP32), "w is \"%s\" for %s tensors; it must be same, %s%s",
               cf_dtype_words[dtype], cf_dtype_names[p->dtype], cf_dtype_words[p->dtype], half ? " or fp32" : "");
    p->fp32_weights = !same;
    return CONV_FFT_SUCCESS;
}

static conv_fft_status read_word_field(int field, const char *value, conv_fft_problem *p) {
    static const char *const *const words[FIELD_COUNT] = {
        [MODE] = cf_padding_words, [LAYOUT] = cf_layout_words, [WLAYOUT] = cf_layout_words, [DTYPE] = cf_dtype_words,
        [W] = cf_dtype_words,      [GW] = cf_dtype_words,      [MATH] = cf_math_words};
    int word = CONV_FFT_DTYPE_SAME;
    if ((field != W && field != GW) || strcmp(value, "same") != 0)
        CF_FORWARD(read_word(field_words[field], value, words[field], &word));
    switch (field) {
    case MODE:
        p->padding = (conv_fft_padding)word;
        break;
    case LAYOUT:
        p->tensor_layout = p->weight_layout = (conv_fft_layout)word;
        break;
    case WLAYOUT:
        p->weight_layout = (conv_fft_layout)word;
        break;
    case DTYPE:
        p->dtype = (conv_fft_dtype)word;
        break;
    case W:
        return set_weight_dtype(word, p);
    case GW:
        p->weight_grad_dtype = (conv_fft_dtype)word;
        break;
    case MATH:
        p->math = (conv_fft_math)word;
        break;
    }
    return CONV_FFT_SUCCESS;
}

/* One word of the line: notes the value of its field. */
static conv_fft_status note_field(char *word, char *equals, const char **values) {
    *equals = '\0';
    const int field = cf_text_word(field_words, word);
    char list[128];
    list_words(field_words, list, sizeof list);
    const char *const meant = field < 0 ? cf_closest(word, field_words) : NULL;
    CF_REQUIRE(!meant, "unknown field \"%s\"; did you mean %s? Fields are %s", word, meant, list);
    CF_REQUIRE(field >= 0, "unknown field \"%s\"; fields are %s", word, list);
    CF_REQUIRE(!values[field], "the field %s is given twice", word);
    values[field] = equals + 1;
    return CONV_FFT_SUCCESS;
}

static conv_fft_status read_fields(const char *const *values, conv_fft_problem *p) {
    CF_FORWARD(read_input(values[IN], p));
    for (int i = OUT; i < FIELD_COUNT; ++i) {
        if (values[i])
            CF_FORWARD(i < MODE ? read_number_field(i, values[i], p) : read_word_field(i, values[i], p));
    }
    cf_layer layer;
    return cf_layer_make(p, &layer);
}

conv_fft_status cf_problem_parse(const char *line, conv_fft_problem *result, char *name, size_t name_bytes) {
    char text[1024];
    const size_t length = strcspn(line, "#\r\n");
    CF_REQUIRE(length < sizeof text, "the problem line has %zu bytes; at most %zu are allowed", length,
               sizeof text - 1);
    memcpy(text, line, length);
    text[length] = '\0';

    const char *values[FIELD_COUNT] = {NULL};
    const char *title = "";
    char *const start = text + strspn(text, " \t");
    for (char *at = start; *at;) {
        char *word = at;
        at += strcspn(at, " \t");
        if (*at)
            *at++ = '\0';
        at += strspn(at, " \t");
        char *equals = strchr(word, '=');
        if (!equals) {
            CF_REQUIRE(word == start, "\"%s\" is neither a name at the line's beginning nor key=value", word);
            title = word;
            continue;
        }
        CF_FORWARD(note_field(word, equals, values));
    }
    CF_REQUIRE(!name || strlen(title) < name_bytes, "the name \"%s\" needs %zu bytes; name_bytes is %zu", title,
               strlen(title) + 1, name_bytes);

    conv_fft_problem p;
    memset(&p, 0, sizeof p);
    if (*start)
        CF_FORWARD(read_fields(values, &p));
    *result = p;
    if (name)
        strcpy(name, title);
    return CONV_FFT_SUCCESS;
}

void cf_text_axes(cf_text *t, const char *key, int rank, const int64_t *axes) {
    cf_text_add(t, "%s%s=", t->length ? " " : "", key);
    for (int a = 0; a < rank; ++a)
        cf_text_add(t, "%s%lld", a ? "x" : "", (long long)axes[a]);
}

conv_fft_status cf_problem_format(const cf_layer *layer, char *text, size_t bytes) {
    const conv_fft_problem *p = &layer->problem;
    char line[1024];
    cf_text t = {line, sizeof line, 0};
    cf_text_add(&t, "in=%lldx%lld", (long long)p->batch, (long long)p->in_channels);
    for (int a = 0; a < p->rank; ++a)
        cf_text_add(&t, "x%lld", (long long)p->input[a]);
    cf_text_add(&t, " out=%lld", (long long)p->out_channels);
    cf_text_axes(&t, "kernel", p->rank, p->kernel);
    cf_text_axes(&t, "stride", p->rank, p->stride);
    cf_text_axes(&t, "dilation", p->rank, p->dilation);
    for (int a = 0; a < p->rank; ++a) {
        cf_text_add(&t, a ? "x%lld" : " pad=%lld", (long long)p->pad_before[a]);
        if (p->pad_after[a] != p->pad_before[a])
            cf_text_add(&t, ":%lld", (long long)p->pad_after[a]);
    }
    cf_text_add(&t, " groups=%lld mode=%s layout=%s", (long long)p->groups, cf_padding_words[p->padding],
                cf_layout_words[p->tensor_layout]);
    if (p->weight_layout != p->tensor_layout)
        cf_text_add(&t, " wlayout=%s", cf_layout_words[p->weight_layout]);
    cf_text_add(&t, " dtype=%s", cf_dtype_words[p->dtype]);
    if (p->fp32_weights)
        cf_text_add(&t, " w=%s", cf_dtype_words[CONV_FFT_FP32]);
    if (p->weight_grad_dtype != cf_problem_weight_dtype(p))
        cf_text_add(&t, " gw=%s", cf_dtype_words[p->weight_grad_dtype]);
    cf_text_add(&t, " math=%s", cf_math_words[p->math]);
    CF_REQUIRE(t.length < bytes, "bytes is %zu; this problem line needs %zu", bytes, t.length + 1);
    memcpy(text, line, t.length + 1);
    return CONV_FFT_SUCCESS;
}
