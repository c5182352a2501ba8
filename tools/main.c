/* SPDX-License-Identifier: Apache-2.0 */
/* The program conv-fft: its options and commands; `devices`. */
#include "main.h"

#include <stdio.h>
#include <string.h>

const char program_name[] = "conv-fft";

/* In two parts: C compilers need not take longer strings. */
static const char help_of_commands[] =
    "usage: conv-fft COMMAND [OPTION]...\n"
    "\n"
    "Convolution layers for CNN training through small batched FFTs.\n"
    "\n"
    "commands:\n"
    "  devices                 show the devices, the files of the libraries that are found, and what is missing\n"
    "  explain PROBLEM         show the strategy of each pass and who chose it, and bytes, operations and time of\n"
    "                          each stage\n"
    "  explain --file FILE     the same for each problem line of a file\n"
    "  explain fft BASIS       show the kernels of a batched FFT on a GPU, the reasons for them, and the shortest\n"
    "                          time that bytes and operations allow\n"
    "  tune FILE...            time strategies for each layer of a network and keep the fastest. The table shows\n"
    "                          them beside the algorithms of cuDNN, if found. It can be interrupted and run again\n"
    "  bench FILE...           run every pass of every layer and show the median times (see also bench_conv)\n"
    "  cache list              list the files of tuning records, with device, versions and number of different "
    "records,\n"
    "                          and the number of compiled kernels\n"
    "  cache show              show records of this device\n"
    "  cache merge FILE...     add records to the cache\n"
    "  cache export FILE [NETWORK...]  write all records, or those of networks, to a file\n"
    "  cache clear             remove all records and kernels, but no file of another version\n"
    "  cache verify            list as above, and fail if a line or a kernel cannot be verified\n"
    "  cache repair            remove the lines and kernels that cannot be verified\n"
    "\n"
    "A problem is one argument or several, a name and key=value fields:\n"
    "  conv-fft explain L2 in=128x64x64x64 out=64 kernel=9x9\n"
    "Fields: in=BATCHxCHANNELSxD1[xD2[xD3]], out, kernel, stride, dilation, pad (2, 1x2, 3:0, same), groups,\n"
    "mode=zeros|circular|reflect|replicate, layout=first|last, wlayout=first|last, dtype=fp32|fp16|bf16|fp64,\n"
    "w=same|fp32 (weights and bias), gw=same|fp32|fp16|bf16|fp64, math=fp32|tf32|half|fp64. Fields that are left\n"
    "out have their default.\n"
    "A network is a file of such lines; # starts a comment. If CONV_FFT_RECORD names a file, programs write the\n"
    "lines of layers without a record to it.\n"
    "\n"
    "A basis is 1 to 3 axes joined by x, followed by key=value fields:\n"
    "  conv-fft explain --facts h200.txt fft 64x64 from=9x9 channels=16 order=frequency-major\n"
    "Fields: kind=r2c|c2r|c2c|c2c-inverse, from (the points that hold data or are wanted; the others are zero),\n"
    "channels, order=natural|transposed|frequency-major, dtype=fp32|fp16|bf16|fp64, layout=first|last, batch, and\n"
    "the window of a larger signal: size, offset, step (one number, or one for each axis),\n"
    "mode=zeros|circular|reflect|replicate.\n"
    "\n";

static const char help_of_options[] =
    "options:\n"
    "  --device auto|cpu|N     the device: automatic, the CPU, or the number of a GPU (default auto)\n"
    "  --facts FILE            explain fft: the properties of another GPU: the output of `devices` there\n"
    "  --threads N             CPU threads (default: all that OpenMP gives)\n"
    "  --file FILE             problem lines, # comments\n"
    "  --measure N             run each pass N times (1..1000) on random data and show the median times\n"
    "  --workspace-limit BYTES the largest workspace of a pass (default: no limit); tune: the records are for\n"
    "                          programs with this limit\n"
    "  --candidates N          explain: show the N best candidates of each set of passes that is tuned together\n"
    "                          (default 10 for a PROBLEM, none for a file)\n"
    "  --mode measure|exhaustive  tune: time the best few candidates (default), or all that may win.\n"
    "                          explain: time the candidates\n"
    "  --milliseconds N        time for the measurements of one layer, shared equally by forward and the gradients\n"
    "                          (default 10000 for measure, no limit for exhaustive)\n"
    "  --again                 tune: measure layers that have a record, too\n"
    "  --count N               tune, bench: take the first N layers only\n"
    "  --kernels               cache export: compile their kernels beside FILE\n"
    "  --policy fastest|newest|mine|theirs  cache merge: the record that stays if both have one (default fastest)\n"
    "  --help                  print this text\n"
    "  --version               print the version of the library\n"
    "\n"
    "exit status: 0 success; 1 an error of the library, a bad file or line, passes that tune did not measure, or\n"
    "output that cannot be written; 2 wrong usage\n";

int open_context(const options *o, conv_fft_context **context) {
    conv_fft_context_options co;
    conv_fft_context_options_init(&co);
    co.device = o->device;
    co.threads = (int)o->threads;
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

static bool read_device(const char *text, void *to) { return option_device(text, &((options *)to)->device); }

static bool read_mode(const char *text, void *to) {
    static const char *const modes[] = {"measure", "exhaustive", NULL};
    options *o = to;
    const int choice = option_choice(text, modes);
    o->mode = choice == 1 ? CONV_FFT_TUNE_EXHAUSTIVE : CONV_FFT_TUNE_MEASURE;
    return choice >= 0;
}

static bool read_policy(const char *text, void *to) {
    static const char *const policies[] = {"fastest", "newest", "mine", "theirs", NULL}; /* as conv_fft_tune_policy */
    options *o = to;
    const int choice = option_choice(text, policies);
    o->policy = (conv_fft_tune_policy)choice;
    return choice >= 0;
}

#define AT(member) offsetof(options, member)
static const option_rule rules[] = {
    {'d', OPTION_READ, "device", 0, 0, 0, "be auto, cpu or a number from 0 on", read_device},
    {'t', OPTION_WHOLE, "threads", AT(threads), 1, 4096, NULL, NULL},
    {'f', OPTION_TEXT, "file", AT(file), 0, 0, NULL, NULL},
    {'g', OPTION_TEXT, "facts", AT(properties), 0, 0, NULL, NULL},
    {'m', OPTION_WHOLE, "measure", AT(measure), 1, 1000, NULL, NULL},
    {'w', OPTION_WHOLE, "workspace-limit", AT(workspace_limit), 1, INT64_MAX, NULL, NULL},
    {'M', OPTION_READ, "mode", 0, 0, 0, "be measure or exhaustive", read_mode},
    {'T', OPTION_WHOLE, "milliseconds", AT(milliseconds), 1, 1000000000, NULL, NULL},
    {'a', OPTION_FLAG, "again", AT(again), 0, 0, NULL, NULL},
    {'k', OPTION_FLAG, "kernels", AT(kernels), 0, 0, NULL, NULL},
    {'n', OPTION_WHOLE, "count", AT(count), 1, 1000000000, NULL, NULL},
    {'c', OPTION_WHOLE, "candidates", AT(candidates), 1, 1000000, NULL, NULL},
    {'p', OPTION_READ, "policy", 0, 0, 0, "be fastest, newest, mine or theirs", read_policy},
    {0, OPTION_FLAG, NULL, 0, 0, 0, NULL, NULL},
};
#undef AT

/* The commands, and the letters of the options that each takes. */
static const struct {
    const char *name, *takes;
    int (*run)(const options *o, char **words, int count);
} commands[] = {
    {"devices", "dt", NULL},          {"explain", "dtfgmwcMT", explain_command}, {"tune", "dtwMTan", tune_command},
    {"bench", "dtmn", bench_command}, {"cache", "dtpk", cache_command},
};

int check_given(const options *o, const char *name, const char *takes) {
    const char letter = o->given[strspn(o->given, takes)];
    if (!letter)
        return 0;
    const option_rule *rule = rules;
    while (rule->letter != letter)
        ++rule;
    char what[64];
    snprintf(what, sizeof what, "%s takes no --%s", name, rule->name);
    return usage_error(what, NULL);
}

static int run(int argc, char **argv) {
    options o = {.device = CONV_FFT_DEVICE_AUTO, .mode = CONV_FFT_TUNE_OFF, .policy = CONV_FFT_KEEP_FASTEST};
    char version[64], help[sizeof help_of_commands + sizeof help_of_options];
    int first;
    snprintf(version, sizeof version, "conv-fft %s\n", conv_fft_version_string());
    snprintf(help, sizeof help, "%s%s", help_of_commands, help_of_options);
    const options_result result = options_read(rules, help, version, argc, argv, &o, o.given, &first);
    if (result != OPTIONS_GOOD)
        return result == OPTIONS_SHOWN ? 0 : 2;
    if (o.mode != CONV_FFT_TUNE_OFF && !o.candidates)
        o.candidates = 20;
    if (first == argc)
        return usage_error("a command is needed", NULL);
    const char *name = argv[first++];
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; ++i) {
        if (strcmp(name, commands[i].name) != 0)
            continue;
        const int failed = check_given(&o, name, commands[i].takes);
        if (failed)
            return failed;
        if (commands[i].run)
            return commands[i].run(&o, argv + first, argc - first);
        return first == argc ? devices(&o) : usage_error("devices takes no argument", argv[first]);
    }
    return usage_error("unknown command", name);
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
