/* SPDX-License-Identifier: Apache-2.0 */
/* bench_conv measures the passes of convolution layers by the library and its baselines. See --help. */
#include "common/message.h"
#include "conv/run.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SEARCH_SECONDS 6

const char bench_program[] = "bench_conv";

/* ---- options */

static void help(void) {
    puts("usage: bench_conv --suite [NAME=]FILE [--suite ...] [options]\n"
         "\n"
         "Times forward and backward passes of the layers in FILE (see networks/), one problem line each, on random\n"
         "data. On the CPU the library, plain direct loops and (if built with it) oneDNN take turns; on a GPU the\n"
         "library and the fastest way that cuDNN has (if its library is found): every algorithm of its old calls and\n"
         "the engines of its graphs are tried first. NAME is the suite's name, the file's name by default.\n"
         "\n"
         "  --case NAME     only this case (a name as in the file)\n"
         "  --skip N        without the first N cases of each file\n"
         "  --count N       at most N cases of each file\n"
         "  --shard I/N     of every N cases the one with number I, from 1: for several processes, one for each GPU;\n"
         "                  they may write into one file\n"
         "  --resume        without the cases whose rows are in the --out file already, measured with this commit\n"
         "  --minutes M     begin no case after this time\n"
         "  --prepare       compile the kernels of all cases into the cache and measure nothing\n"
         "  --pass LIST     of fprop, bprop, accgrad, backward (default: these), and of fprop-kept, bprop-kept,\n"
         "                  accgrad-kept, backward-kept: the library with kept spectra of x and w, the same plan\n"
         "                  without (unkept), and the transforms that differ, by its profile; joined by commas\n"
         "  --device D      cpu (default), or the number of a GPU\n"
         "  --class C       precision: fp32 (default); on a GPU also tf32, fp16, bf16. Baselines of this class only\n"
         "  --layout L      first (default), or on a GPU also last: channels last, in tensors and weights\n"
         "  --tune          also the library's plan by measurement (tuned), and of cuDNN deterministic algorithms "
         "only, as\n"
         "                  such plans have: for a file of its own, tuned.csv\n"
         "  --families      the best candidate, by the cost model, of each family of kernels of ours, and of the "
         "family reference\n"
         "  --stages        instead of times of passes: bytes, operations and time of each stage of the library, by\n"
         "                  its profile, without a flush; for a file of its own, stages.csv\n"
         "  --threads N     CPU threads of everything measured (default: OpenMP's)\n"
         "  --out FILE.csv  replace the rows of these cases in FILE.csv (default: print the rows)\n"
         "  --commit ID     what was built, for the results (default: what git says here)\n"
         "  --seconds S     time for each implementation and pass, flushes counted; at least three runs on the CPU,\n"
         "                  seven on a GPU (default: 0.5 on the CPU, 0.2 on a GPU)\n"
         "  --search S      time to look for cuDNN's best way, for each pass (default: 6)\n"
         "  --verbose       print every way that was tried\n"
         "  --max-gflop X   reduce batch, then channels, until a direct pass needs at most X GFLOP; the case's name\n"
         "                  then says so (L2-b2, L2-b1-c32). A case that stays larger runs without baselines\n"
         "                  (default: no limit)\n"
         "  --list          print the cases and their direct GFLOP per pass, run nothing\n"
         "  --help");
}

static bool parse_positive(const char *option, const char *text, double *value) {
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    if (end != text && *end == '\0' && errno == 0 && *value > 0 && isfinite(*value))
        return true;
    bench_message("%s=%s: must be a positive number", option, text);
    return false;
}

static bool parse_count(const char *option, const char *text, long *value) {
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0 && *value >= 1 && *value <= 1000000)
        return true;
    bench_message("%s=%s: must be an integer from 1 to 1000000", option, text);
    return false;
}

static bool parse_device(const char *text, int *device) {
    char *end;
    long ordinal = strtol(text, &end, 10);
    if (!strcmp(text, "cpu")) {
        *device = CONV_FFT_DEVICE_CPU;
        return true;
    }
    *device = (int)ordinal;
    if (end != text && *end == '\0' && ordinal >= 0 && ordinal < 1000)
        return true;
    bench_message("--device=%s: must be cpu or the number of a GPU", text);
    return false;
}

static bool parse_passes(const char *text, unsigned *set) {
    *set = 0;
    for (const char *p = text; *p;) {
        size_t length = strcspn(p, ",");
        int i = 0;
        while (i < BENCH_PASSES &&
               (strlen(bench_passes[i].name) != length || strncmp(p, bench_passes[i].name, length) != 0))
            i++;
        if (i == BENCH_PASSES) {
            bench_message("--pass=%s: must be a list of fprop, bprop, accgrad, backward, or these with -kept", text);
            return false;
        }
        *set |= 1u << i;
        p += length + (p[length] == ',');
    }
    return true;
}

static bool parse_class(const char *text, const bench_class **class) {
    for (int i = 0; i < BENCH_CLASSES; i++)
        if (!strcmp(text, bench_classes[i].name)) {
            *class = &bench_classes[i];
            return true;
        }
    bench_message("--class=%s: must be fp32, tf32, fp16 or bf16", text);
    return false;
}

static bool parse_layout(const char *text, bool *channels_last) {
    *channels_last = !strcmp(text, "last");
    if (*channels_last || !strcmp(text, "first"))
        return true;
    bench_message("--layout=%s: must be first or last", text);
    return false;
}

static bool parse_shard(const char *text, bench_options *o) {
    char *end;
    const long number = strtol(text, &end, 10);
    if (end != text && *end == '/') {
        const char *of = end + 1;
        o->shard = number - 1;
        o->shards = strtol(of, &end, 10);
        if (end != of && *end == '\0' && number >= 1 && number <= o->shards && o->shards <= 1000)
            return true;
    }
    bench_message("--shard=%s: must be I/N, I from 1 to N, N at most 1000", text);
    return false;
}

static bool parse_option(int option, const char *value, bench_options *o) {
    switch (option) {
    case 's':
        if (o->suite_count == BENCH_MAX_SUITES) {
            bench_message("--suite: at most %d", BENCH_MAX_SUITES);
            return false;
        }
        o->suites[o->suite_count++] = value;
        return true;
    case 'c':
        o->only = value;
        return true;
    case 'n':
        return parse_count("--count", value, &o->count);
    case 'k':
        return parse_count("--skip", value, &o->skip);
    case 'I':
        return parse_shard(value, o);
    case 'R':
        o->resume = true;
        return true;
    case 'm':
        return parse_positive("--minutes", value, &o->minutes);
    case 'P':
        o->prepare_only = true;
        return true;
    case 'T':
        o->tune = true;
        return true;
    case 'f':
        o->families = true;
        return true;
    case 'G':
        o->stages = true;
        return true;
    case 'p':
        return parse_passes(value, &o->pass_set);
    case 'd':
        return parse_device(value, &o->device);
    case 'C':
        return parse_class(value, &o->class);
    case 'L':
        return parse_layout(value, &o->channels_last);
    case 'i':
        o->commit = value;
        return true;
    case 'r':
        return parse_positive("--search", value, &o->search);
    case 'v':
        o->verbose = true;
        return true;
    case 't':
        return parse_count("--threads", value, &o->threads);
    case 'o':
        o->out = value;
        return true;
    case 'S':
        return parse_positive("--seconds", value, &o->seconds);
    case 'g':
        return parse_positive("--max-gflop", value, &o->max_gflop);
    case 'l':
        o->list = true;
        return true;
    case 'h':
        help();
        exit(EXIT_SUCCESS);
    default:
        fputs("Try 'bench_conv --help'.\n", stderr);
        return false;
    }
}

/* On a CPU the baselines have one class. */
static bool fits_device(const bench_options *o) {
    if (o->device != CONV_FFT_DEVICE_CPU || (o->class == &bench_classes[0] && !o->channels_last))
        return true;
    bench_message("the CPU is measured in fp32 with channels first only; --class and --layout are for a GPU");
    return false;
}

static bool parse_arguments(int argc, char **argv, bench_options *o) {
    static const struct option table[] = {
        {"suite", required_argument, NULL, 's'},
        {"case", required_argument, NULL, 'c'},
        {"count", required_argument, NULL, 'n'},
        {"skip", required_argument, NULL, 'k'},
        {"shard", required_argument, NULL, 'I'},
        {"resume", no_argument, NULL, 'R'},
        {"minutes", required_argument, NULL, 'm'},
        {"prepare", no_argument, NULL, 'P'},
        {"tune", no_argument, NULL, 'T'},
        {"families", no_argument, NULL, 'f'},
        {"stages", no_argument, NULL, 'G'},
        {"pass", required_argument, NULL, 'p'},
        {"device", required_argument, NULL, 'd'},
        {"class", required_argument, NULL, 'C'},
        {"layout", required_argument, NULL, 'L'},
        {"commit", required_argument, NULL, 'i'},
        {"search", required_argument, NULL, 'r'},
        {"verbose", no_argument, NULL, 'v'},
        {"threads", required_argument, NULL, 't'},
        {"out", required_argument, NULL, 'o'},
        {"seconds", required_argument, NULL, 'S'},
        {"max-gflop", required_argument, NULL, 'g'},
        {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *o = (bench_options){.pass_set = BENCH_DEFAULT_PASSES,
                         .device = CONV_FFT_DEVICE_CPU,
                         .class = &bench_classes[0],
                         .search = DEFAULT_SEARCH_SECONDS};
    for (int option; (option = getopt_long(argc, argv, "", table, NULL)) != -1;)
        if (!parse_option(option, optarg, o))
            return false;
    if (o->resume && !o->out) {
        bench_message("--resume: needs the results so far, --out");
        return false;
    }
    if (optind == argc && o->suite_count > 0)
        return fits_device(o);
    if (optind < argc)
        bench_message("unexpected argument %s", argv[optind]);
    else
        bench_message("no --suite given");
    fputs("Try 'bench_conv --help'.\n", stderr);
    return false;
}

int main(int argc, char **argv) {
    bench_options o;
    if (!parse_arguments(argc, argv, &o))
        return EXIT_FAILURE;
    return bench_run(&o) ? EXIT_SUCCESS : EXIT_FAILURE;
}
