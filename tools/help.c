/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft help, man and completion: texts made of the tables. */
#include "commands.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXT_COLUMN = 26 /* of summaries and texts of options */
};

static bool is_action_of(const command *c, const char *group) {
    const size_t length = strlen(group);
    return strncmp(c->name, group, length) == 0 && c->name[length] == ' ';
}

/* The next paragraph of a text. Returns the place after it, or NULL. */
static const char *next_paragraph(const char *text, char paragraph[2048]) {
    if (!*text)
        return NULL;
    const char *const end = strstr(text, "\n\n");
    const int length = end ? (int)(end - text) : (int)strlen(text);
    snprintf(paragraph, 2048, "%.*s", length, text);
    return end ? end + 2 : text + length;
}

static void print_text(const char *text) {
    char paragraph[2048];
    while ((text = next_paragraph(text, paragraph)) != NULL) {
        putchar('\n');
        if (paragraph[0] == ' ')
            puts(paragraph);
        else
            print_wrapped(paragraph, 0, 0);
    }
}

/* A left column, and a text beside it, or below it if it is long. */
static void print_entry(const char *left, const char *text) {
    const int length = printf("  %s", left);
    if (length >= TEXT_COLUMN)
        printf("\n%*s", TEXT_COLUMN, "");
    else
        printf("%*s", TEXT_COLUMN - length, "");
    print_wrapped(text, TEXT_COLUMN, TEXT_COLUMN);
}

static void print_option(const option_entry *entry) {
    char left[96];
    snprintf(left, sizeof left, "--%s%s%s", entry->rule.name, entry->value ? " " : "",
             entry->value ? entry->value : "");
    print_entry(left, entry->text);
}

static void print_options(const char *letters) {
    bool any = false;
    for (const option_entry *entry = option_entries; entry->rule.letter; ++entry) {
        if (!strchr(letters, entry->rule.letter))
            continue;
        if (!any)
            puts("\noptions:");
        any = true;
        print_option(entry);
    }
}

static void print_summary(const command *c) {
    char left[96];
    snprintf(left, sizeof left, "%s%s%s", c->name, c->arguments[0] ? " " : "", c->arguments);
    print_entry(left, c->summary);
}

/* The help of one command, with its actions. */
static void print_command(const command *c) {
    printf("usage: conv-fft %s%s%s%s\n\n", c->name, c->takes[0] ? " [OPTION]..." : "", c->arguments[0] ? " " : "",
           c->arguments);
    char summary[256];
    snprintf(summary, sizeof summary, "%c%s.", toupper((unsigned char)c->summary[0]), c->summary + 1);
    print_wrapped(summary, 0, 0);
    print_text(c->text);
    for (const command *action = commands; action->name && !c->run; ++action) {
        if (action == c)
            puts("\nactions:");
        if (is_action_of(action, c->name))
            print_summary(action);
    }
    print_options(c->takes);
    if (strstr(c->arguments, "PROBLEM"))
        print_text(topics[0].text);
}

static void print_overview(void) {
    printf("usage: conv-fft COMMAND [OPTION]...\n\n%s\n\ncommands:\n", program_summary);
    for (const command *c = commands; c->name; ++c)
        print_summary(c);
    puts("\noptions:");
    print_entry("-h, --help", "show this text, or that of the command");
    print_entry("--version", "print the version of the library");
    puts("\n`conv-fft COMMAND --help` shows the options of a command.");
    for (const topic *t = topics; t->title; ++t) {
        printf("\n%s:", t->title);
        print_text(t->text);
    }
}

/* The first one or two words name a command. The others are its arguments. */
int help_command(const options *o, char **words, int count) {
    (void)o;
    char name[64];
    for (int used = count > 1 ? 2 : count; used > 0; --used) {
        snprintf(name, sizeof name, "%.30s%s%.30s", words[0], used > 1 ? " " : "", used > 1 ? words[1] : "");
        for (const command *c = commands; c->name; ++c) {
            if (strcmp(c->name, name) != 0)
                continue;
            if (c->run == help_command)
                return help_command(o, words + 1, count - 1);
            print_command(c);
            return 0;
        }
    }
    if (count > 0)
        return unknown_command("", words[0]);
    print_overview();
    return 0;
}

/* ---- the manual page */

/* Text for troff: no line begins with a dot, and "-" is a hyphen-minus, as people copy options. */
static void print_troff(const char *text) {
    for (const char *at = text; *at; ++at) {
        if ((at == text || at[-1] == '\n') && (*at == '.' || *at == '\''))
            fputs("\\&", stdout);
        if (*at == '\\')
            fputs("\\e", stdout);
        else if (*at == '-')
            fputs("\\-", stdout);
        else
            putchar(*at);
    }
    putchar('\n');
}

static void print_troff_text(const char *text) {
    char paragraph[2048];
    while ((text = next_paragraph(text, paragraph)) != NULL) {
        const bool verbatim = paragraph[0] == ' ';
        puts(verbatim ? ".PP\n.nf" : ".PP");
        print_troff(paragraph);
        if (verbatim)
            puts(".fi");
    }
}

static void print_troff_command(const command *c) {
    char line[512] = "";
    printf(".SS ");
    snprintf(line, sizeof line, "\"%s%s%s\"", c->name, c->arguments[0] ? " " : "", c->arguments);
    print_troff(line);
    snprintf(line, sizeof line, "%c%s.", toupper((unsigned char)c->summary[0]), c->summary + 1);
    print_troff(line);
    print_troff_text(c->text);
    if (!c->takes[0])
        return;
    snprintf(line, sizeof line, "Options:");
    for (const option_entry *entry = option_entries; entry->rule.letter; ++entry)
        if (strchr(c->takes, entry->rule.letter))
            snprintf(line + strlen(line), sizeof line - strlen(line), " --%s", entry->rule.name);
    puts(".PP");
    print_troff(line);
}

static void print_troff_option(const char *name, const char *value, const char *text) {
    printf(".TP\n.B ");
    char left[128];
    snprintf(left, sizeof left, "%s%s%s", name, value ? " " : "", value ? value : "");
    print_troff(left);
    print_troff(text);
}

int man_command(const options *o, char **words, int count) {
    (void)o;
    (void)words;
    (void)count;
    printf(".TH CONV\\-FFT 1 \"\" \"conv_fft %s\" \"User Commands\"\n.SH NAME\nconv\\-fft \\- ",
           conv_fft_version_string());
    print_troff("convolution layers through small batched FFTs: explain, check, tune and measure them");
    puts(".SH SYNOPSIS\n.B conv\\-fft\nCOMMAND [OPTION]...\n.SH DESCRIPTION");
    print_troff(program_summary);
    puts(".SH COMMANDS");
    for (const command *c = commands; c->name; ++c)
        print_troff_command(c);
    puts(".SH OPTIONS");
    for (const option_entry *entry = option_entries; entry->rule.letter; ++entry) {
        char name[64];
        snprintf(name, sizeof name, "--%s", entry->rule.name);
        print_troff_option(name, entry->value, entry->text);
    }
    print_troff_option("-h, --help", NULL, "show the help of the program or of the command");
    print_troff_option("--version", NULL, "print the version of the library");
    for (const topic *t = topics; t->title; ++t) {
        printf(".SH ");
        for (const char *at = t->title; *at; ++at)
            putchar(toupper((unsigned char)*at));
        putchar('\n');
        print_troff_text(t->text);
    }
    puts(".SH SEE ALSO");
    print_troff("docs/program.md, docs/tuning.md and docs/troubleshooting.md of conv_fft");
    return 0;
}

/* ---- completion */

/* The words that a value may be: those without upper-case letters of "auto|cpu|N". */
static void print_choices(const char *value) {
    for (const char *at = value; *at; at += strcspn(at, "|"), at += *at == '|') {
        const int length = (int)strcspn(at, "|");
        if (islower((unsigned char)*at))
            printf(" %.*s", length, at);
    }
}

/* The first words of all commands, or the actions of a group. */
static void print_names(const char *group) {
    const size_t length = strlen(group);
    for (const command *c = commands; c->name; ++c)
        if (strncmp(c->name, group, length) == 0 && !strchr(c->name + length, ' '))
            printf(" %s", c->name + length);
}

static void print_completion_of(const command *c) {
    char group[64];
    snprintf(group, sizeof group, "%s ", c->name);
    printf("    '%s') options='--help", c->name);
    for (const option_entry *entry = option_entries; entry->rule.letter; ++entry)
        if (strchr(c->takes, entry->rule.letter))
            printf(" --%s", entry->rule.name);
    printf("' words='");
    if (strstr(c->arguments, "PROBLEM"))
        for (int i = 0; problem_fields[i]; ++i)
            printf(" %s=", problem_fields[i]);
    if (strstr(c->arguments, "COMMAND"))
        print_names("");
    print_names(group);
    printf("' files=%d ;;\n", strstr(c->arguments, "FILE") && !strstr(c->arguments, "PROBLEM"));
}

int completion_command(const options *o, char **words, int count) {
    (void)o;
    (void)words;
    (void)count;
    puts("# completion of conv-fft for bash, and for zsh after bashcompinit; printed by `conv-fft completion`\n"
         "_conv_fft() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= options words "
         "files=0\n"
         "  local word\n"
         "  # bash divides --device=cpu and in=1x1x9 at the equals sign.\n"
         "  if [ \"$current\" = = ]; then current=\n"
         "  elif [ \"$previous\" = = ]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
         "  case $previous in");
    for (const option_entry *entry = option_entries; entry->rule.letter; ++entry) {
        if (!entry->value)
            continue;
        const bool file = strcmp(entry->value, "FILE") == 0;
        printf("    --%s) ", entry->rule.name);
        if (file) {
            printf("compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$current\"))");
        } else {
            printf("COMPREPLY=($(compgen -W '");
            print_choices(entry->value);
            printf("' -- \"$current\"))");
        }
        puts("; return ;;");
    }
    puts("  esac\n"
         "  for word in \"${COMP_WORDS[@]:1:$((COMP_CWORD-1))}\"; do\n"
         "    case $word in -*) continue ;; esac\n"
         "    case \"$command $word\" in");
    printf("      ");
    const char *separator = "";
    for (const command *c = commands; c->name; ++c) {
        printf("%s'%s%s'", separator, strchr(c->name, ' ') ? "" : " ", c->name);
        separator = "|";
    }
    puts(") command=\"${command:+$command }$word\" ;;\n"
         "      *) [ -n \"$command\" ] && break ;;\n"
         "    esac\n"
         "  done\n"
         "  case $command in");
    printf("    '') options='--help --version' words='");
    print_names("");
    puts("' ;;");
    for (const command *c = commands; c->name; ++c)
        print_completion_of(c);
    puts("  esac\n"
         "  case $current in -*) words=$options files=0 ;; esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac\n"
         "  if [ $files = 1 ]; then\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    COMPREPLY+=($(compgen -f -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -F _conv_fft conv-fft");
    return 0;
}
