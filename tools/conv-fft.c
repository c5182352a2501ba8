/* SPDX-License-Identifier: Apache-2.0 */
/* The program conv-fft: what devices there are, and what the library would do with a layer. */
#include "conv-fft.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
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
    "  explain PROBLEM         the strategy, bytes, operations and time of each stage of each pass\n"
    "  explain --file FILE     the same for each problem line of a file (a network)\n"
    "  explain fft BASIS       the kernels of a batched FFT on a GPU, why these, and what bytes and operations allow\n"
    "\n"
    "A problem is one argument or several, a name and key=value fields:\n"
    "  conv-fft explain L2 in=128x64x64x64 out=64 kernel=9x9\n"
    "Fields: in=BATCHxCHANNELSxD1[xD2[xD3]], out, kernel, stride, dilation, pad (2, 1x2, 3:0, same), groups,\n"
    "mode=zeros|circular|reflect|replicate, layout=first|last, wlayout=first|last, dtype=fp32|fp16|bf16|fp64,\n"
    "gw=same|fp32|fp16|bf16|fp64, math=fp32|tf32|half|fp64. What is omitted has its default.\n"
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
    "  --workspace-limit BYTES bytes that no pass may exceed (default: no limit)\n"
    "  --help                  this text\n"
    "  --version               version of the library\n"
    "\n"
    "exit status: 0 success, 1 the library refused or the output could not be written, 2 wrong usage\n";

/* A problem as it was given: as arguments (file is NULL), or as a line of a file. */
typedef struct problem_source {
    const char *text, *file;
    long line;
} problem_source;

int usage_error(const char *what, const char *value) {
    fprintf(stderr, "conv-fft: %s%s%s; see conv-fft --help\n", what, value ? ": " : "", value ? value : "");
    return 2;
}

int library_error(const char *what) {
    fprintf(stderr, "conv-fft: %s: %s\n", what, conv_fft_last_error());
    return 1;
}

static int problem_error(const problem_source *source) {
    if (!source->file)
        return library_error(source->text);
    fprintf(stderr, "conv-fft: %s:%ld: %s\n", source->file, source->line, conv_fft_last_error());
    return 1;
}

static int read_error(const char *file) {
    fprintf(stderr, "conv-fft: cannot read %s: %s\n", file, strerror(errno));
    return 2;
}

static int read_number(const char *text, long long low, long long high, long long *number) {
    char *end;
    *number = strtoll(text, &end, 10);
    return *text != '\0' && *end == '\0' && *number >= low && *number <= high;
}

int open_context(const options *o, conv_fft_context **context) {
    conv_fft_context_options co;
    conv_fft_context_options_init(&co);
    co.device = o->device;
    co.threads = o->threads;
    return conv_fft_context_create(&co, context) == CONV_FFT_SUCCESS ? 0 : library_error("no context");
}

static int devices(const options *o) {
    if (o->file || o->measure || o->workspace_limit || o->facts)
        return usage_error("devices takes no --file, --measure, --workspace-limit or --facts", NULL);
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

static void print_axes(const char *name, const int64_t *axes, int rank) {
    printf("%s ", name);
    for (int a = 0; a < rank; ++a)
        printf("%s%" PRId64, a ? "x" : "", axes[a]);
}

static void print_description(const char *pass, const conv_fft_description *d, int rank) {
    printf("  %s\n    %s\n    ", pass, d->strategy);
    print_axes("basis", d->basis, rank);
    print_axes(", tiles", d->tiles, rank);
    printf(", workspace %" PRIu64 " bytes%s\n", d->workspace_bytes,
           d->shares_gy ? ", gy transformed once for both gradients" : "");
    printf("    %-16s %12s %12s %13s %12s\n", "stage", "MB", "Mflop", "predicted ms", "measured ms");
    for (int i = 0; i < d->stage_count; ++i) {
        const conv_fft_stage *s = &d->stages[i];
        printf("    %-16s %12.3f %12.3f %13.4f ", s->name, s->bytes / 1e6, s->operations / 1e6, s->predicted_ms);
        if (s->measured_ms >= 0)
            printf("%12.4f\n", s->measured_ms);
        else
            printf("%12s\n", "-");
    }
    printf("    %-16s %12s %12s %13.4f ", "total", "", "", d->predicted_ms);
    if (d->measured_ms >= 0)
        printf("%12.4f\n", d->measured_ms);
    else
        printf("%12s\n", "-");
}

static void print_nan_reach(const conv_fft_problem *p, const conv_fft_description *d) {
    int64_t tiles = 1;
    for (int a = 0; a < p->rank; ++a)
        tiles *= d->tiles[a];
    if (tiles == 1)
        printf("  A NaN or Inf in x spreads over all of its sample's outputs of the same group (one tile).\n");
    else
        printf("  A NaN or Inf in x spreads over those of its sample's %" PRId64
               " tiles that read it, in the same group.\n",
               tiles);
}

static int explain(const options *o, conv_fft_context *context, const problem_source *source) {
    static const struct {
        conv_fft_pass pass;
        const char *name;
    } passes[] = {{CONV_FFT_FORWARD, "forward"},
                  {CONV_FFT_BACKWARD_DATA, "backward data"},
                  {CONV_FFT_BACKWARD_WEIGHTS, "backward weights"},
                  {CONV_FFT_BACKWARD, "backward, both gradients"}};
    conv_fft_problem p;
    char name[64], text[1024];
    if (conv_fft_problem_parse(source->text, &p, name, sizeof name) != CONV_FFT_SUCCESS)
        return problem_error(source);
    if (p.rank == 0)
        return 0;
    conv_fft_plan_options po;
    conv_fft_plan_options_init(&po);
    po.workspace_limit = o->workspace_limit;
    conv_fft_plan *plan;
    if (conv_fft_plan_create(context, &p, &po, &plan) != CONV_FFT_SUCCESS)
        return problem_error(source);
    conv_fft_problem_format(&p, text, sizeof text);
    printf("%s%s%s\n", name, *name ? " " : "", text);
    int failed = 0;
    for (size_t i = 0; i < sizeof passes / sizeof passes[0] && !failed; ++i) {
        conv_fft_description d;
        const conv_fft_status status = o->measure ? conv_fft_profile(plan, passes[i].pass, o->measure, &d)
                                                  : conv_fft_plan_describe(plan, passes[i].pass, &d);
        if (status != CONV_FFT_SUCCESS)
            failed = problem_error(source);
        else
            print_description(passes[i].name, &d, p.rank);
        if (i == 0 && !failed)
            print_nan_reach(&p, &d);
    }
    conv_fft_plan_destroy(plan);
    return failed;
}

static int explain_file(const options *o, conv_fft_context *context) {
    FILE *file = fopen(o->file, "r");
    if (!file)
        return read_error(o->file);
    char *text = NULL;
    size_t bytes = 0;
    problem_source source = {.file = o->file};
    int failed = 0;
    while (!failed && getline(&text, &bytes, file) >= 0) {
        source.text = text;
        ++source.line;
        failed = explain(o, context, &source);
    }
    if (!failed && !feof(file))
        failed = read_error(o->file);
    free(text);
    fclose(file);
    return failed;
}

static int explain_words(const options *o, conv_fft_context *context, char **words, int count) {
    char line[1024];
    size_t length = 0;
    for (int i = 0; i < count; ++i) {
        const int added = snprintf(line + length, sizeof line - length, "%s%s", i ? " " : "", words[i]);
        length += (size_t)added;
        if (length >= sizeof line)
            return usage_error("the problem is too long", NULL);
    }
    return explain(o, context, &(problem_source){.text = line});
}

static int explain_command(const options *o, char **words, int count) {
    if (count > 0 && strcmp(words[0], "fft") == 0)
        return explain_fft(o, words + 1, count - 1);
    if (o->facts)
        return usage_error("explain takes --facts for an fft only", NULL);
    if (!o->file && count == 0)
        return usage_error("explain needs a problem or --file", NULL);
    if (o->file && count > 0)
        return usage_error("explain takes a problem or --file, not both", NULL);
    conv_fft_context *context;
    int failed = open_context(o, &context);
    if (failed)
        return failed;
    failed = o->file ? explain_file(o, context) : explain_words(o, context, words, count);
    conv_fft_context_destroy(context);
    return failed;
}

static int run(int argc, char **argv) {
    static const struct option long_options[] = {
        {"device", required_argument, NULL, 'd'},
        {"threads", required_argument, NULL, 't'},
        {"file", required_argument, NULL, 'f'},
        {"facts", required_argument, NULL, 'g'},
        {"measure", required_argument, NULL, 'm'},
        {"workspace-limit", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    options o = {.device = CONV_FFT_DEVICE_AUTO};
    long long number = 0;
    for (int c; (c = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        switch (c) {
        case 'd':
            if (strcmp(optarg, "auto") == 0)
                o.device = CONV_FFT_DEVICE_AUTO;
            else if (strcmp(optarg, "cpu") == 0)
                o.device = CONV_FFT_DEVICE_CPU;
            else if (read_number(optarg, 0, 1023, &number))
                o.device = (int)number;
            else
                return usage_error("--device must be auto, cpu or a number from 0 on", optarg);
            break;
        case 't':
            if (!read_number(optarg, 1, 4096, &number))
                return usage_error("--threads must be 1 to 4096", optarg);
            o.threads = (int)number;
            break;
        case 'm':
            if (!read_number(optarg, 1, 1000, &number))
                return usage_error("--measure must be 1 to 1000", optarg);
            o.measure = (int)number;
            break;
        case 'w':
            if (!read_number(optarg, 1, INT64_MAX, &number))
                return usage_error("--workspace-limit must be at least 1", optarg);
            o.workspace_limit = (uint64_t)number;
            break;
        case 'f':
            o.file = optarg;
            break;
        case 'g':
            o.facts = optarg;
            break;
        case 'h':
            fputs(help_text, stdout);
            return 0;
        case 'v':
            printf("conv-fft %s\n", conv_fft_version_string());
            return 0;
        default:
            return usage_error("wrong usage", NULL);
        }
    }
    if (optind == argc)
        return usage_error("a command is needed", NULL);
    const char *command = argv[optind++];
    if (strcmp(command, "devices") == 0) {
        return optind == argc ? devices(&o) : usage_error("devices takes no argument", argv[optind]);
    }
    if (strcmp(command, "explain") == 0)
        return explain_command(&o, argv + optind, argc - optind);
    return usage_error("unknown command", command);
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
