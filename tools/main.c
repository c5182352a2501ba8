/* SPDX-License-Identifier: Apache-2.0 */
/* The program conv-fft: its options and commands; `devices`. */
#include "main.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help_text[] =
    "usage: conv-fft COMMAND [OPTION]...\n"
    "\n"
    "Convolution layers for CNN training through small batched FFTs.\n"
    "\n"
    "commands:\n"
    "  devices                 what is found to compute on, which libraries from which files, and what is missing\n"
    "  explain PROBLEM         the strategy and who has chosen it, bytes, operations and time of each stage of each "
    "pass\n"
    "  explain --file FILE     the same for each problem line of a file (a network)\n"
    "  explain fft BASIS       the kernels of a batched FFT on a GPU, why these, and what bytes and operations allow\n"
    "  tune FILE...            time strategies for every layer of a network, keep the fastest, and show them beside "
    "the\n"
    "                          direct algorithms of cuDNN, where it is found; after an interruption it goes on\n"
    "  bench FILE...           run every pass of every layer and show the median times (bench_conv, built beside the\n"
    "                          library, compares them with other libraries)\n"
    "  cache list              the files of tuning records and how many compiled kernels there are\n"
    "  cache show              the records of this device\n"
    "  cache merge FILE...     add records from files, for good\n"
    "  cache export FILE [NETWORK...]  write all records to a file, or those of networks\n"
    "  cache clear             remove all records and kernels, but no file of another version\n"
    "  cache verify            list, and fail if a line or a kernel cannot be verified\n"
    "\n"
    "A problem is one argument or several, a name and key=value fields:\n"
    "  conv-fft explain L2 in=128x64x64x64 out=64 kernel=9x9\n"
    "Fields: in=BATCHxCHANNELSxD1[xD2[xD3]], out, kernel, stride, dilation, pad (2, 1x2, 3:0, same), groups,\n"
    "mode=zeros|circular|reflect|replicate, layout=first|last, wlayout=first|last, dtype=fp32|fp16|bf16|fp64,\n"
    "gw=same|fp32|fp16|bf16|fp64, math=fp32|tf32|half|fp64. What is omitted has its default.\n"
    "Networks are files of such lines; # starts a comment. CONV_FFT_RECORD names a file that collects the lines of\n"
    "layers for which a program found no record.\n"
    "\n"
    "A basis is 1 to 3 axes joined by x, behind it key=value fields:\n"
    "  conv-fft explain --facts h200.txt fft 64x64 from=9x9 channels=16 order=frequency-major\n"
    "Fields: kind=r2c|c2r|c2c|c2c-inverse, from (points that hold data or are wanted, the others being zero), "
    "channels,\n"
    "order=natural|transposed|frequency-major, dtype=fp32|fp16|bf16|fp64, layout=first|last, batch, and the window of "
    "a\n"
    "larger signal: size, offset, step (one number, or one for each axis), mode=zeros|circular|reflect|replicate.\n"
    "\n"
    "options:\n"
    "  --device auto|cpu|N     where to plan (default auto)\n"
    "  --facts FILE            explain fft: a GPU that need not be here, its facts as `devices` prints them\n"
    "  --threads N             CPU threads (default: all that OpenMP gives)\n"
    "  --file FILE             problem lines, # comments\n"
    "  --measure N             run each pass N times (1..1000) on random data and show the median times\n"
    "  --workspace-limit BYTES bytes that no pass may exceed (default: no limit; tune: records for programs with such "
    "a\n"
    "                          limit)\n"
    "  --candidates N          explain: the N best candidates of each set of passes that is tuned together (default "
    "10\n"
    "                          for a PROBLEM, none for a file)\n"
    "  --mode measure|exhaustive  time the best few, or all that are not hopeless (tune: default measure; explain: "
    "times\n"
    "                          the candidates)\n"
    "  --milliseconds N        for the measurements of one layer (default 10000 for measure, no bound for exhaustive)\n"
    "  --again                 tune: also layers that have a record\n"
    "  --count N               tune, bench: the first N layers only\n"
    "  --quality               tune: keep nothing, but compare the cost model and mode measure with mode exhaustive\n"
    "  --policy fastest|newest|mine|theirs  cache merge: which record stays where both have one (default fastest)\n"
    "  --help                  this text\n"
    "  --version               version of the library\n"
    "\n"
    "exit status: 0 success, 1 the library refused, a file or a line was bad or the output could not be written, 2 "
    "wrong\n"
    "usage\n";

int usage_error(const char *what, const char *value) {
    fprintf(stderr, "conv-fft: %s%s%s; see conv-fft --help\n", what, value ? ": " : "", value ? value : "");
    return 2;
}

int library_error(const char *what) {
    fprintf(stderr, "conv-fft: %s: %s\n", what, conv_fft_last_error());
    return 1;
}

int read_error(const char *file) {
    fprintf(stderr, "conv-fft: cannot read %s: %s\n", file, strerror(errno));
    return 1;
}

static int read_number(const char *text, long long low, long long high, long long *number) {
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    return errno == 0 && *text != '\0' && *end == '\0' && *number >= low && *number <= high;
}

int open_context(const options *o, conv_fft_context **context) {
    conv_fft_context_options co;
    conv_fft_context_options_init(&co);
    co.device = o->device;
    co.threads = o->threads;
    return conv_fft_context_create(&co, context) == CONV_FFT_SUCCESS ? 0 : library_error("no context");
}

static int devices(const options *o) {
    conv_fft_context *context;
    const int failed = open_context(o, &context);
    if (failed)
        return failed;
    printf("libconv_fft %s\n%s\n", conv_fft_version_string(), conv_fft_context_description(context));
    conv_fft_context_destroy(context);
    char report[32768];
    if (conv_fft_devices_report(report, sizeof report, NULL) != CONV_FFT_SUCCESS)
        return library_error("no report");
    fputs(report, stdout);
    return 0;
}

/* ---- options */

/* Letters of the options, and those that each command takes. */
static const struct option long_options[] = {
    {"device", required_argument, NULL, 'd'},  {"threads", required_argument, NULL, 't'},
    {"file", required_argument, NULL, 'f'},    {"facts", required_argument, NULL, 'g'},
    {"measure", required_argument, NULL, 'm'}, {"workspace-limit", required_argument, NULL, 'w'},
    {"mode", required_argument, NULL, 'M'},    {"milliseconds", required_argument, NULL, 'T'},
    {"again", no_argument, NULL, 'a'},         {"count", required_argument, NULL, 'n'},
    {"quality", no_argument, NULL, 'q'},       {"candidates", required_argument, NULL, 'c'},
    {"policy", required_argument, NULL, 'p'},  {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'v'},       {NULL, 0, NULL, 0},
};

static const struct {
    const char *name, *takes;
    int (*run)(const options *o, char **words, int count);
} commands[] = {
    {"devices", "dt", NULL},          {"explain", "dtfgmwcMT", explain_command}, {"tune", "dtwMTanq", tune_command},
    {"bench", "dtmn", bench_command}, {"cache", "dtp", cache_command},
};

static int read_choice(const char *text, const char *const *words, int *choice) {
    for (*choice = 0; words[*choice]; ++*choice) {
        if (strcmp(text, words[*choice]) == 0)
            return 1;
    }
    return 0;
}

static int read_device(options *o) {
    long long number;
    if (strcmp(optarg, "auto") == 0)
        o->device = CONV_FFT_DEVICE_AUTO;
    else if (strcmp(optarg, "cpu") == 0)
        o->device = CONV_FFT_DEVICE_CPU;
    else if (read_number(optarg, 0, 1023, &number))
        o->device = (int)number;
    else
        return usage_error("--device must be auto, cpu or a number from 0 on", optarg);
    return 0;
}

static int read_option(int letter, options *o) {
    static const char *const modes[] = {"measure", "exhaustive", NULL};
    static const char *const policies[] = {"fastest", "newest", "mine", "theirs", NULL}; /* as conv_fft_tune_policy */
    static const struct {
        char letter;
        long long low, high;
        const char *problem;
    } numbers[] = {
        {'t', 1, 4096, "--threads must be 1 to 4096"},
        {'m', 1, 1000, "--measure must be 1 to 1000"},
        {'w', 1, INT64_MAX, "--workspace-limit must be 1 to 9223372036854775807"},
        {'T', 1, 1000000000, "--milliseconds must be 1 to 1000000000"},
        {'n', 1, 1000000000, "--count must be 1 to 1000000000"},
        {'c', 1, 1000000, "--candidates must be 1 to 1000000"},
    };
    long long number = 0;
    int choice;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        if (letter == numbers[i].letter && !read_number(optarg, numbers[i].low, numbers[i].high, &number))
            return usage_error(numbers[i].problem, optarg);
    }
    switch (letter) {
    case 'd':
        return read_device(o);
    case 't':
        o->threads = (int)number;
        break;
    case 'm':
        o->measure = (int)number;
        break;
    case 'w':
        o->workspace_limit = (uint64_t)number;
        break;
    case 'T':
        o->milliseconds = number;
        break;
    case 'n':
        o->count = number;
        break;
    case 'c':
        o->candidates = (int)number;
        break;
    case 'f':
        o->file = optarg;
        break;
    case 'g':
        o->facts = optarg;
        break;
    case 'a':
        o->again = 1;
        break;
    case 'q':
        o->quality = 1;
        break;
    case 'M':
        if (!read_choice(optarg, modes, &choice))
            return usage_error("--mode must be measure or exhaustive", optarg);
        o->mode = choice ? CONV_FFT_TUNE_EXHAUSTIVE : CONV_FFT_TUNE_MEASURE;
        break;
    case 'p':
        if (!read_choice(optarg, policies, &choice))
            return usage_error("--policy must be fastest, newest, mine or theirs", optarg);
        o->policy = (conv_fft_tune_policy)choice;
        break;
    default:
        return usage_error("wrong usage", NULL);
    }
    return 0;
}

static const char *option_name(char letter) {
    int i = 0;
    while (long_options[i].val != letter)
        ++i;
    return long_options[i].name;
}

int check_given(const options *o, const char *name, const char *takes) {
    const char letter = o->given[strspn(o->given, takes)];
    if (!letter)
        return 0;
    char what[64];
    snprintf(what, sizeof what, "%s takes no --%s", name, option_name(letter));
    return usage_error(what, NULL);
}

static int run(int argc, char **argv) {
    options o = {.device = CONV_FFT_DEVICE_AUTO, .mode = CONV_FFT_TUNE_OFF, .policy = CONV_FFT_KEEP_FASTEST};
    size_t given_count = 0;
    for (int c; (c = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        if (c == 'h') {
            fputs(help_text, stdout);
            return 0;
        }
        if (c == 'v') {
            printf("conv-fft %s\n", conv_fft_version_string());
            return 0;
        }
        const int failed = read_option(c, &o);
        if (!failed && c == 'M' && !o.candidates)
            o.candidates = 20;
        if (failed)
            return failed;
        if (!strchr(o.given, c))
            o.given[given_count++] = (char)c;
    }
    if (optind == argc)
        return usage_error("a command is needed", NULL);
    const char *name = argv[optind++];
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; ++i) {
        if (strcmp(name, commands[i].name) != 0)
            continue;
        const int failed = check_given(&o, name, commands[i].takes);
        if (failed)
            return failed;
        if (commands[i].run)
            return commands[i].run(&o, argv + optind, argc - optind);
        return optind == argc ? devices(&o) : usage_error("devices takes no argument", argv[optind]);
    }
    return usage_error("unknown command", name);
}

int main(int argc, char **argv) {
    const int status = run(argc, argv);
    /* Also what was printed and did not get through, to a full disk say. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("conv-fft: cannot write the output\n", stderr);
        return status ? status : 1;
    }
    return status;
}
