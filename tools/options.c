/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "conv_fft.h"
#include "core/closest.h"
#include "message.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_whole(const char *text, int64_t low, int64_t high, int64_t *number) {
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    *number = value;
    return errno == 0 && *text != '\0' && *end == '\0' && value >= low && value <= high;
}

/* A whole number with the suffix K, M, G or T, in either case, or none. */
static bool read_bytes(const char *text, int64_t *number) {
    static const char suffixes[] = "KMGT";
    char digits[32];
    const size_t length = strlen(text);
    const char *const suffix = length > 0 ? strchr(suffixes, toupper((unsigned char)text[length - 1])) : NULL;
    const int shift = suffix ? 10 * (int)(suffix - suffixes + 1) : 0;
    if (length >= sizeof digits)
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)length - (suffix != NULL), text);
    if (!read_whole(digits, 1, INT64_MAX >> shift, number))
        return false;
    *number *= INT64_C(1) << shift;
    return true;
}

static bool read_positive(const char *text, double *number) {
    char *end;
    errno = 0;
    *number = strtod(text, &end);
    return end != text && *end == '\0' && errno == 0 && *number > 0 && isfinite(*number);
}

bool option_device(const char *text, int *device) {
    int64_t number = 0;
    if (strcmp(text, "auto") == 0)
        *device = CONV_FFT_DEVICE_AUTO;
    else if (strcmp(text, "cpu") == 0)
        *device = CONV_FFT_DEVICE_CPU;
    else if (read_whole(text, 0, 1023, &number))
        *device = (int)number;
    else
        return false;
    return true;
}

int option_choice(const char *text, const char *const *words) {
    for (int i = 0; words[i]; ++i)
        if (strcmp(text, words[i]) == 0)
            return i;
    return -1;
}

/* Read the value of one option. False: a message has been written. */
static bool read_value(const option_rule *rule, const char *text, void *options) {
    void *member = (char *)options + rule->offset;
    char must[128] = "be a positive number", what[192];
    bool good = true;
    switch (rule->kind) {
    case OPTION_FLAG:
        *(bool *)member = true;
        break;
    case OPTION_TEXT:
        memcpy(member, &text, sizeof text);
        break;
    case OPTION_WHOLE:
        good = read_whole(text, rule->low, rule->high, member);
        snprintf(must, sizeof must, "be %" PRId64 " to %" PRId64, rule->low, rule->high);
        break;
    case OPTION_BYTES:
        good = read_bytes(text, member);
        snprintf(must, sizeof must, "be a number of bytes from 1 on, such as 1000000, 512K, 10M or 2G (1K is 1024)");
        break;
    case OPTION_POSITIVE:
        good = read_positive(text, member);
        break;
    case OPTION_READ:
        good = rule->read(text, options);
        snprintf(must, sizeof must, "%s", rule->must);
        break;
    }
    snprintf(what, sizeof what, "--%s must %s", rule->name, must);
    if (!good)
        usage_error(what, text);
    return good;
}

/* Write what is wrong with the option that getopt_long() has refused. word: the last one that it has finished. A letter
 * in the middle of a word (-ab) leaves that word unfinished. */
static options_result refuse(const option_rule *rules, const struct option *table, int answer, const char *word) {
    const option_rule *rule = rules;
    const size_t length = strcspn(word, "=");
    char what[192], name[64];
    while (rule->letter && (rule->letter != optopt || length < 3 || strncmp(word + 2, rule->name, length - 2) != 0))
        ++rule;
    if (rule->letter) {
        snprintf(what, sizeof what, "--%s %s", rule->name, answer == ':' ? "needs a value" : "takes no value");
        usage_error(what, NULL);
        return OPTIONS_WRONG;
    }
    const char *names[OPTIONS_MAX + 3];
    int count = 0;
    for (; table[count].name; ++count)
        names[count] = table[count].name;
    names[count] = NULL;
    if (optopt)
        snprintf(name, sizeof name, "-%c", optopt);
    else
        snprintf(name, sizeof name, "%.*s", (int)length, word);
    const char *const meant = optopt ? NULL : cf_closest(name + 2, names);
    snprintf(what, sizeof what, "unknown option %s%s%s%s", name, meant ? "; did you mean --" : "", meant ? meant : "",
             meant ? "?" : "");
    usage_error(what, NULL);
    return OPTIONS_WRONG;
}

enum {
    HELP = 'h',
    VERSION = 'V'
};

options_result options_read(const option_rule *rules, const char *help, const char *version, int argc, char **argv,
                            void *options, char given[OPTIONS_MAX + 1], int *first) {
    struct option table[OPTIONS_MAX + 3];
    int count = 0, shown = 0;
    for (; rules[count].letter; ++count)
        table[count] =
            (struct option){rules[count].name, rules[count].kind == OPTION_FLAG ? no_argument : required_argument, NULL,
                            rules[count].letter};
    table[count++] = (struct option){"help", no_argument, NULL, HELP};
    if (version)
        table[count++] = (struct option){"version", no_argument, NULL, VERSION};
    table[count] = (struct option){NULL, 0, NULL, 0};
    memset(given, 0, OPTIONS_MAX + 1);
    for (int letter; (letter = getopt_long(argc, argv, ":h", table, NULL)) != -1;) {
        if (letter == HELP || letter == VERSION) {
            shown = letter;
            continue;
        }
        const option_rule *rule = rules;
        while (rule->letter && rule->letter != letter)
            ++rule;
        if (!rule->letter)
            return refuse(rules, table, letter, argv[optind - 1]);
        if (!read_value(rule, optarg, options))
            return OPTIONS_WRONG;
        if (!strchr(given, letter))
            given[strlen(given)] = (char)letter;
    }
    *first = optind;
    if (shown == HELP && !help)
        return OPTIONS_HELP;
    if (shown)
        fputs(shown == HELP ? help : version, stdout);
    return shown ? OPTIONS_SHOWN : OPTIONS_GOOD;
}
