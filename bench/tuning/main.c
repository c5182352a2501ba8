/* SPDX-License-Identifier: Apache-2.0 */
/* bench_tuning compares the cost model and the quick search with the exhaustive search. See --help. */
#include "tools/message.h"
#include "tools/options.h"
#include "tuning/model_quality.h"

#include <stdio.h>

const char program_name[] = "bench_tuning";

static const char help[] =
    "usage: bench_tuning [OPTION]... FILE...\n"
    "\n"
    "Times every candidate of each layer in FILE (see networks/), and compares the strategies that the modes off\n"
    "and measure choose with the fastest one. Prints a CSV row for each set of passes, then the geometric means. It\n"
    "writes no tuning records and does not time algorithms of other libraries.\n"
    "\n"
    "  --device auto|cpu|N     the device: automatic, the CPU, or the number of a GPU (default auto)\n"
    "  --threads N             CPU threads (default: all that OpenMP gives)\n"
    "  --count N               take the first N layers only\n"
    "  --milliseconds N        time for the quick search of one layer (default 10000)\n"
    "  --exhaustive-milliseconds N\n"
    "                          time for the exhaustive search of one layer (default: no limit). Strategies that are\n"
    "                          left at its end are not timed\n"
    "  --candidates FILE       write a CSV row for each strategy that an exhaustive search has timed\n"
    "  --workspace-limit BYTES the largest workspace of a pass, for example 500M (default: no limit)\n"
    "  --help                  print this text\n";

static bool read_device(const char *text, void *to) { return option_device(text, &((quality_options *)to)->device); }

static int measure(const quality_options *o, char **files, int count) {
    network n;
    conv_fft_context *context = NULL;
    conv_fft_context_options co;
    conv_fft_context_options_init(&co);
    co.device = o->device;
    co.threads = (int)o->threads;
    int failed = network_read_all(files, count, o->count, &n);
    if (n.count > 0) {
        const int status = conv_fft_context_create(&co, &context) == CONV_FFT_SUCCESS ? measure_quality(o, context, &n)
                                                                                      : library_error("no context");
        failed = failed ? failed : status;
    }
    failed = failed ? failed : n.bad > 0;
    conv_fft_context_destroy(context);
    network_free(&n);
    return failed;
}

int main(int argc, char **argv) {
#define AT(member) offsetof(quality_options, member)
    static const option_rule rules[] = {
        {'d', OPTION_READ, "device", 0, 0, 0, "be auto, cpu or a number from 0 on", read_device},
        {'t', OPTION_WHOLE, "threads", AT(threads), 1, 4096, NULL, NULL},
        {'n', OPTION_WHOLE, "count", AT(count), 1, 1000000000, NULL, NULL},
        {'T', OPTION_WHOLE, "milliseconds", AT(milliseconds), 1, 1000000000, NULL, NULL},
        {'E', OPTION_WHOLE, "exhaustive-milliseconds", AT(exhaustive_milliseconds), 1, 1000000000, NULL, NULL},
        {'c', OPTION_TEXT, "candidates", AT(candidates), 0, 0, NULL, NULL},
        {'w', OPTION_BYTES, "workspace-limit", AT(workspace_limit), 0, 0, NULL, NULL},
        {0, OPTION_FLAG, NULL, 0, 0, 0, NULL, NULL},
    };
#undef AT
    quality_options o = {.device = CONV_FFT_DEVICE_AUTO};
    char given[OPTIONS_MAX + 1];
    int first;
    const options_result result = options_read(rules, help, NULL, argc, argv, &o, given, &first);
    if (result != OPTIONS_GOOD)
        return result == OPTIONS_SHOWN ? 0 : 2;
    if (first == argc)
        return usage_error("a file of problem lines is needed", NULL);
    const int status = measure(&o, argv + first, argc - first);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "%s: cannot write the output\n", program_name);
        return status ? status : 1;
    }
    return status;
}
