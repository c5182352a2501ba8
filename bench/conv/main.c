/* SPDX-License-Identifier: Apache-2.0 */
/* bench_conv measures the passes of convolution layers by the library and its baselines. See --help. */
#include "common/message.h"
#include "common/program.h"
#include "conv/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SEARCH_SECONDS 6

const char program_name[] = "bench_conv";

static const char help[] =
    "usage: bench_conv --suite [NAME=]FILE [--suite ...] [options]\n"
    "\n"
    "Measures forward and backward passes of the layers in FILE (see networks/), one problem line each, on random\n"
    "data. On the CPU the library, direct loops and, if it is found, oneDNN 3 take turns. On a GPU the library and\n"
    "the fastest algorithm of cuDNN take turns, if cuDNN is found; all algorithms of its legacy API and all engines\n"
    "of its graph API are tried first. Causal depthwise signals have the causal operations of cuDNN 9.26 instead.\n"
    "NAME is the name of the suite, by default that of the file.\n"
    "\n"
    "  --case NAME     only the case with this name\n"
    "  --skip N        leave out the first N cases of each file\n"
    "  --count N       at most N cases of each file\n"
    "  --shard I/N     of every N cases the one with number I, from 1. Several processes can share a suite, one for\n"
    "                  each GPU, and write to one file\n"
    "  --resume        leave out cases whose rows are in the --out file already, measured with this commit\n"
    "  --minutes M     begin no case after this time\n"
    "  --prepare       compile the kernels of all cases into the cache and measure nothing\n"
    "  --pass LIST     passes joined by commas: fprop, bprop, accgrad, backward (default: these four), and\n"
    "                  fprop-kept, bprop-kept, accgrad-kept, backward-kept. The latter measure the library with\n"
    "                  kept spectra of x and w, the same plan without them (unkept), and the transforms that are\n"
    "                  saved, by its profile\n"
    "  --device D      cpu (default), or the number of a GPU\n"
    "  --class C       precision: fp32 (default); on a GPU also tf32, fp16, bf16. Baselines have the same class\n"
    "  --layout L      first (default); on a GPU also last: channels-last tensors and weights\n"
    "  --tune          also measure the plan that the library finds by measurement (tuned). cuDNN then uses\n"
    "                  deterministic algorithms only, as tuned plans do. Write to a file of its own, tuned.csv\n"
    "  --choice        also measure the cost model's choice where it is an algorithm of cuDNN\n"
    "  --families      also measure the best candidate of each family of the library, by the cost model, and of the\n"
    "                  family cufft\n"
    "  --stages        instead of passes, measure each stage of the library: bytes, operations and time by its\n"
    "                  profile, without a flush. Write to a file of its own, stages.csv\n"
    "  --threads N     CPU threads of everything that is measured (default: that of OpenMP)\n"
    "  --out FILE.csv  replace the rows of these cases in FILE.csv (default: print the rows)\n"
    "  --commit ID     the commit of the build, for the results (default: what git says here)\n"
    "  --seconds S     time for each implementation and pass, flushes included; at least three runs on the CPU,\n"
    "                  seven on a GPU (default: 0.5 on the CPU, 0.2 on a GPU)\n"
    "  --search S      time to look for the best algorithm of cuDNN, for each pass (default: 6)\n"
    "  --known FILE    earlier results, a file that --out wrote: their algorithms of cuDNN are tried first, so that a\n"
    "                  short search has them, too\n"
    "  --verbose       print every algorithm that was tried\n"
    "  --max-gflop X   reduce the batch, then the channels, until a direct pass needs at most X GFLOP. The name of\n"
    "                  the case then says so (L2-b2, L2-b1-c32). A case that stays larger runs without baselines\n"
    "                  (default: no limit)\n"
    "  --no-direct     leave out the direct loops, which take long\n"
    "  --list          print the cases and their direct GFLOP for each pass, and run nothing\n"
    "  --help          print this text\n";

static bool read_suite(const char *text, void *to) {
    bench_options *o = to;
    if (o->suite_count == BENCH_MAX_SUITES)
        return false;
    o->suites[o->suite_count++] = text;
    return true;
}

static bool read_device(const char *text, void *to) {
    int *device = &((bench_options *)to)->device;
    return option_device(text, device) && *device != CONV_FFT_DEVICE_AUTO;
}

static bool read_passes(const char *text, void *to) {
    unsigned *set = &((bench_options *)to)->pass_set;
    *set = 0;
    for (const char *p = text; *p;) {
        size_t length = strcspn(p, ",");
        int i = 0;
        while (i < BENCH_PASSES &&
               (strlen(bench_passes[i].name) != length || strncmp(p, bench_passes[i].name, length) != 0))
            i++;
        if (i == BENCH_PASSES)
            return false;
        *set |= 1u << i;
        p += length + (p[length] == ',');
    }
    return true;
}

static bool read_class(const char *text, void *to) {
    for (int i = 0; i < BENCH_CLASSES; i++)
        if (!strcmp(text, bench_classes[i].name)) {
            ((bench_options *)to)->class = &bench_classes[i];
            return true;
        }
    return false;
}

static bool read_layout(const char *text, void *to) {
    static const char *const layouts[] = {"first", "last", NULL};
    const int choice = option_choice(text, layouts);
    ((bench_options *)to)->channels_last = choice == 1;
    return choice >= 0;
}

static bool read_shard(const char *text, void *to) {
    bench_options *o = to;
    char *end;
    const long number = strtol(text, &end, 10);
    if (end == text || *end != '/')
        return false;
    const char *of = end + 1;
    o->shard = number - 1;
    o->shards = strtol(of, &end, 10);
    return end != of && *end == '\0' && number >= 1 && number <= o->shards && o->shards <= 1000;
}

#define AT(member) offsetof(bench_options, member)
static const option_rule rules[] = {
    {'s', OPTION_READ, "suite", 0, 0, 0, "be given at most 32 times", read_suite},
    {'c', OPTION_TEXT, "case", AT(only), 0, 0, NULL, NULL},
    {'n', OPTION_WHOLE, "count", AT(count), 1, 1000000, NULL, NULL},
    {'k', OPTION_WHOLE, "skip", AT(skip), 1, 1000000, NULL, NULL},
    {'I', OPTION_READ, "shard", 0, 0, 0, "be I/N, I from 1 to N, N at most 1000", read_shard},
    {'R', OPTION_FLAG, "resume", AT(resume), 0, 0, NULL, NULL},
    {'m', OPTION_POSITIVE, "minutes", AT(minutes), 0, 0, NULL, NULL},
    {'P', OPTION_FLAG, "prepare", AT(prepare_only), 0, 0, NULL, NULL},
    {'T', OPTION_FLAG, "tune", AT(tune), 0, 0, NULL, NULL},
    {'O', OPTION_FLAG, "choice", AT(choice), 0, 0, NULL, NULL},
    {'f', OPTION_FLAG, "families", AT(families), 0, 0, NULL, NULL},
    {'G', OPTION_FLAG, "stages", AT(stages), 0, 0, NULL, NULL},
    {'p', OPTION_READ, "pass", 0, 0, 0, "be a list of fprop, bprop, accgrad, backward, or these with -kept",
     read_passes},
    {'d', OPTION_READ, "device", 0, 0, 0, "be cpu or the number of a GPU", read_device},
    {'C', OPTION_READ, "class", 0, 0, 0, "be fp32, tf32, fp16 or bf16", read_class},
    {'L', OPTION_READ, "layout", 0, 0, 0, "be first or last", read_layout},
    {'i', OPTION_TEXT, "commit", AT(commit), 0, 0, NULL, NULL},
    {'r', OPTION_POSITIVE, "search", AT(search), 0, 0, NULL, NULL},
    {'K', OPTION_TEXT, "known", AT(known), 0, 0, NULL, NULL},
    {'v', OPTION_FLAG, "verbose", AT(verbose), 0, 0, NULL, NULL},
    {'t', OPTION_WHOLE, "threads", AT(threads), 1, 1000000, NULL, NULL},
    {'o', OPTION_TEXT, "out", AT(out), 0, 0, NULL, NULL},
    {'S', OPTION_POSITIVE, "seconds", AT(seconds), 0, 0, NULL, NULL},
    {'g', OPTION_POSITIVE, "max-gflop", AT(max_gflop), 0, 0, NULL, NULL},
    {'N', OPTION_FLAG, "no-direct", AT(no_direct), 0, 0, NULL, NULL},
    {'l', OPTION_FLAG, "list", AT(list), 0, 0, NULL, NULL},
    {0, OPTION_FLAG, NULL, 0, 0, 0, NULL, NULL},
};
#undef AT

/* Whether the options fit each other. False: a message has been written. */
static bool check_options(const bench_options *o) {
    if (o->resume && !o->out)
        bench_message("--resume needs --out, the results so far");
    else if (o->suite_count == 0)
        bench_message("no --suite is given; see bench_conv --help");
    else if (o->device == CONV_FFT_DEVICE_CPU && (o->class != &bench_classes[0] || o->channels_last))
        bench_message("a CPU is measured in fp32 and channels-first layout only; --class and --layout are for a GPU");
    else if (o->known && access(o->known, R_OK) != 0)
        bench_message("--known %s: the file cannot be read", o->known);
    else
        return true;
    return false;
}

int main(int argc, char **argv) {
    bench_options o = {.pass_set = BENCH_DEFAULT_PASSES,
                       .device = CONV_FFT_DEVICE_CPU,
                       .class = &bench_classes[0],
                       .search = DEFAULT_SEARCH_SECONDS};
    int status;
    if (!bench_options_read(rules, help, argc, argv, &o, &status))
        return status;
    return check_options(&o) && bench_run(&o) ? EXIT_SUCCESS : EXIT_FAILURE;
}
