/* SPDX-License-Identifier: Apache-2.0 */
/* The program conv-fft: from the command line to a command. */
#include "commands.h"
#include "core/closest.h"

#include <stdio.h>
#include <string.h>

const char program_name[] = "conv-fft";

int open_context(const options *o, conv_fft_context **context) {
    conv_fft_context_options co;
    conv_fft_context_options_init(&co);
    co.device = o->device;
    co.threads = (int)o->threads;
    return conv_fft_context_create(&co, context) == CONV_FFT_SUCCESS ? 0 : library_error("no context");
}

/* The command that the words begin with. *used: the number of its words. NULL: there is none. */
static const command *find_command(char **words, int count, int *used) {
    char both[64];
    snprintf(both, sizeof both, "%.30s %.30s", words[0], count > 1 ? words[1] : "");
    for (*used = count > 1 ? 2 : 1; *used > 0; --*used)
        for (const command *c = commands; c->name; ++c)
            if (strcmp(c->name, *used == 2 ? both : words[0]) == 0)
                return c;
    return NULL;
}

int unknown_command(const char *group, const char *word) {
    const char *names[32];
    const size_t length = strlen(group);
    char what[256], list[128] = "";
    int count = 0;
    for (const command *c = commands; c->name; ++c) {
        if (strncmp(c->name, group, length) != 0 || strchr(c->name + length, ' '))
            continue;
        names[count++] = c->name + length;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", list[0] ? ", " : "", c->name + length);
    }
    names[count] = NULL;
    const char *const meant = word ? cf_closest(word, names) : NULL;
    if (!word)
        snprintf(what, sizeof what, "%s one of %s", group[0] ? "cache needs" : "a command is needed:", list);
    else if (meant)
        snprintf(what, sizeof what, "unknown command %s%.64s; did you mean %s%s?", group, word, group, meant);
    else
        snprintf(what, sizeof what, "unknown command %s%.64s; there are %s", group, word, list);
    return usage_error(what, NULL);
}

static int check_given(const options *o, const command *c) {
    const char letter = o->given[strspn(o->given, c->takes)];
    if (!letter)
        return 0;
    const option_entry *entry = option_entries;
    while (entry->rule.letter != letter)
        ++entry;
    char what[128];
    snprintf(what, sizeof what, "%s takes no --%s", c->name, entry->rule.name);
    return usage_error(what, NULL);
}

static int run(int argc, char **argv) {
    options o = {.device = CONV_FFT_DEVICE_AUTO, .mode = CONV_FFT_TUNE_OFF, .policy = CONV_FFT_KEEP_FASTEST};
    option_rule rules[OPTIONS_MAX + 1];
    char version[64];
    int first, used, i = 0;
    do
        rules[i] = option_entries[i].rule;
    while (rules[i++].letter);
    /* The command may stand behind options. Messages about options name it. */
    for (int k = 1; k < argc; ++k) {
        const command *named = find_command(argv + k, argc - k, &used);
        if (named) {
            usage_of(named->name);
            break;
        }
    }
    snprintf(version, sizeof version, "conv-fft %s\n", conv_fft_version_string());
    const options_result result = options_read(rules, NULL, version, argc, argv, &o, o.given, &first);
    char **words = argv + first;
    int count = argc - first;
    if (result == OPTIONS_SHOWN || result == OPTIONS_WRONG)
        return result == OPTIONS_SHOWN ? 0 : 2;
    if (result == OPTIONS_HELP)
        return help_command(&o, words, count);
    if (count == 0)
        return unknown_command("", NULL);
    const command *c = find_command(words, count, &used);
    if (!c)
        return unknown_command("", words[0]);
    words += used;
    count -= used;
    if (!c->run)
        return unknown_command("cache ", count ? words[0] : NULL);
    const int failed = check_given(&o, c);
    if (failed)
        return failed;
    if (count > 0 && c->arguments[0] == '\0')
        return usage_error("this takes no further argument", words[0]);
    return c->run(&o, words, count);
}

int main(int argc, char **argv) {
    const int status = run(argc, argv);
    /* Output that could not be written, for example to a full disk, is an error too. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("conv-fft: cannot write the output\n", stderr);
        return status ? status : 1;
    }
    return status;
}
