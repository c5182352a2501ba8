/* SPDX-License-Identifier: Apache-2.0 */
/* The problem line: reading and writing. */
#include "conv/layer.h"
#include "conv/text.h"

#include "core/arith.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words of the enumerations, at their values. */
static const char *const padding_words[] = {"zeros", "circular", "reflect", "replicate", NULL};
static const char *const layout_words[] = {"first", "last", NULL};
static const char *const dtype_words[] = {"fp32", "fp16", "bf16", "fp64", NULL};
static const char *const math_words[] = {"default", "fp32", "tf32", "half", "fp64", NULL};

int cf_text_word(const char *const *words, const char *value) {
    for (int i = 0; words[i]; ++i) {
        if (strcmp(words[i], value) == 0)
            return i;
    }
    return -1;
}

conv_fft_status cf_text_numbers(const char *key, const char *value, int most, int64_t *numbers, int *count) {
    const char *at = value;
    for (*count = 0; *count < most;) {
        char *end;
        errno = 0;
        numbers[*count] = strtoll(at, &end, 10);
        if (end == at || *at == ' ' || *at == '+' || errno)
            break;
        ++*count;
        if (*end == '\0')
            return CONV_FFT_SUCCESS;
        if (*end != 'x')
            break;
        at = end + 1;
    }
    return cf_fail(CONV_FFT_INVALID_ARGUMENT, "%s is \"%s\"; it must be 1 to %d whole numbers joined by x", key, value,
                   most);
}

static conv_fft_status read_word(const char *key, const char *value, const char *const *words, int *result) {
    const int found = cf_text_word(words, value);
    if (found >= 0) {
        *result = found;
        return CONV_FFT_SUCCESS;
    }
    char list[128] = "";
    for (int i = 0; words[i]; ++i) {
        strcat(list, i ? ", " : "");
        strcat(list, words[i]);
    }
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
    char copy[128];
    CF_REQUIRE(strlen(value) < sizeof copy, "pad is \"%s\"; it is too long", value);
    strcpy(copy, value);
    int count = 0;
    for (char *part = copy, *next; part; part = next, ++count) {
        next = strchr(part, 'x');
        if (next)
            *next++ = '\0';
        CF_REQUIRE(count < p->rank, "pad is \"%s\"; it must have one entry, or one for each of the %d axes", value,
                   p->rank);
        char *after = strchr(part, ':');
        if (after)
            *after++ = '\0';
        int ignored;
        CF_FORWARD(cf_text_numbers("pad", part, 1, &p->pad_before[count], &ignored));
        p->pad_after[count] = p->pad_before[count];
        if (after)
            CF_FORWARD(cf_text_numbers("pad", after, 1, &p->pad_after[count], &ignored));
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

typedef struct field {
    char *key, *value;
} field;

/* `in` decides the rank, so it is read before the others. */
static conv_fft_status read_input(const field *fields, int count, conv_fft_problem *p) {
    for (int i = 0; i < count; ++i) {
        if (strcmp(fields[i].key, "in") != 0)
            continue;
        int64_t numbers[2 + CONV_FFT_MAX_RANK];
        int found;
        CF_FORWARD(cf_text_numbers("in", fields[i].value, 2 + CONV_FFT_MAX_RANK, numbers, &found));
        CF_REQUIRE(found >= 3, "in is \"%s\"; it must be batch, channels and 1 to 3 axes joined by x", fields[i].value);
        cf_problem_defaults(p, found - 2);
        p->batch = numbers[0];
        p->in_channels = p->out_channels = numbers[1];
        for (int a = 0; a < p->rank; ++a)
            p->input[a] = numbers[2 + a];
        return CONV_FFT_SUCCESS;
    }
    return cf_fail(CONV_FFT_INVALID_ARGUMENT, "the field in=BATCHxCHANNELSxD1.. is missing");
}

static conv_fft_status read_field(const char *key, const char *value, conv_fft_problem *p, bool *same) {
    int count, word;
    if (strcmp(key, "in") == 0)
        return CONV_FFT_SUCCESS;
    if (strcmp(key, "out") == 0)
        return cf_text_numbers(key, value, 1, &p->out_channels, &count);
    if (strcmp(key, "groups") == 0)
        return cf_text_numbers(key, value, 1, &p->groups, &count);
    if (strcmp(key, "kernel") == 0)
        return read_axes(key, value, p->rank, p->kernel);
    if (strcmp(key, "stride") == 0)
        return read_axes(key, value, p->rank, p->stride);
    if (strcmp(key, "dilation") == 0)
        return read_axes(key, value, p->rank, p->dilation);
    if (strcmp(key, "pad") == 0) {
        *same = strcmp(value, "same") == 0;
        return *same ? CONV_FFT_SUCCESS : read_pad(value, p);
    }
    if (strcmp(key, "mode") == 0) {
        CF_FORWARD(read_word(key, value, padding_words, &word));
        p->padding = (conv_fft_padding)word;
        return CONV_FFT_SUCCESS;
    }
    if (strcmp(key, "layout") == 0 || strcmp(key, "wlayout") == 0) {
        CF_FORWARD(read_word(key, value, layout_words, &word));
        p->weight_layout = (conv_fft_layout)word;
        if (key[0] == 'l')
            p->tensor_layout = p->weight_layout;
        return CONV_FFT_SUCCESS;
    }
    if (strcmp(key, "dtype") == 0) {
        CF_FORWARD(read_word(key, value, dtype_words, &word));
        p->dtype = (conv_fft_dtype)word;
        return CONV_FFT_SUCCESS;
    }
    if (strcmp(key, "gw") == 0) {
        word = CONV_FFT_DTYPE_SAME;
        if (strcmp(value, "same") != 0)
            CF_FORWARD(read_word(key, value, dtype_words, &word));
        p->weight_grad_dtype = (conv_fft_dtype)word;
        return CONV_FFT_SUCCESS;
    }
    if (strcmp(key, "math") == 0) {
        CF_FORWARD(read_word(key, value, math_words, &word));
        p->math = (conv_fft_math)word;
        return CONV_FFT_SUCCESS;
    }
    return cf_fail(CONV_FFT_INVALID_ARGUMENT,
                   "unknown field \"%s\"; fields are in, out, kernel, stride, dilation, pad, groups, mode, layout, "
                   "wlayout, dtype, gw, math",
                   key);
}

conv_fft_status cf_problem_parse(const char *line, conv_fft_problem *result, char *name, size_t name_bytes) {
    enum {
        MOST_FIELDS = 16,
        MOST_BYTES = 1024
    };
    char text[MOST_BYTES];
    const size_t length = strcspn(line, "#\r\n");
    CF_REQUIRE(length < sizeof text, "the problem line has %zu bytes; at most %d are allowed", length, MOST_BYTES - 1);
    memcpy(text, line, length);
    text[length] = '\0';

    field fields[MOST_FIELDS];
    int count = 0;
    const char *title = "";
    for (char *at = text + strspn(text, " \t"); *at;) {
        char *word = at;
        at += strcspn(at, " \t");
        if (*at)
            *at++ = '\0';
        at += strspn(at, " \t");
        char *equals = strchr(word, '=');
        if (!equals) {
            CF_REQUIRE(word == text + strspn(text, " \t"),
                       "\"%s\" is neither a name at the line's beginning nor key=value", word);
            title = word;
            continue;
        }
        *equals = '\0';
        for (int i = 0; i < count; ++i)
            CF_REQUIRE(strcmp(fields[i].key, word) != 0, "the field %s stands twice", word);
        CF_REQUIRE(count < MOST_FIELDS, "the problem line has more than %d fields", MOST_FIELDS);
        fields[count++] = (field){word, equals + 1};
    }
    CF_REQUIRE(!name || strlen(title) < name_bytes, "the name \"%s\" needs %zu bytes; name_bytes is %zu", title,
               strlen(title) + 1, name_bytes);

    conv_fft_problem p;
    memset(&p, 0, sizeof p);
    if (count > 0 || *title) {
        bool same = false;
        CF_FORWARD(read_input(fields, count, &p));
        for (int i = 0; i < count; ++i)
            CF_FORWARD(read_field(fields[i].key, fields[i].value, &p, &same));
        /* wlayout overrules layout wherever it stands. */
        for (int i = 0; i < count; ++i) {
            if (strcmp(fields[i].key, "wlayout") == 0)
                CF_FORWARD(read_field("wlayout", fields[i].value, &p, &same));
        }
        cf_layer layer;
        if (same) {
            CF_FORWARD(pad_same(&p));
        }
        CF_FORWARD(cf_layer_make(&p, &layer));
    }
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
    cf_text_add(&t, " groups=%lld mode=%s layout=%s", (long long)p->groups, padding_words[p->padding],
                layout_words[p->tensor_layout]);
    if (p->weight_layout != p->tensor_layout)
        cf_text_add(&t, " wlayout=%s", layout_words[p->weight_layout]);
    cf_text_add(&t, " dtype=%s", dtype_words[p->dtype]);
    if (p->weight_grad_dtype != p->dtype)
        cf_text_add(&t, " gw=%s", dtype_words[p->weight_grad_dtype]);
    cf_text_add(&t, " math=%s", math_words[p->math]);
    CF_REQUIRE(t.length < bytes, "bytes is %zu; this problem line needs %zu", bytes, t.length + 1);
    memcpy(text, line, t.length + 1);
    return CONV_FFT_SUCCESS;
}
