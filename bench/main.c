/* SPDX-License-Identifier: Apache-2.0 */
/* bench_conv - times the passes of convolution layers, the library and its baselines taking turns. See --help. */
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_message(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("bench_conv: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

void bench_copy(char *to, size_t bytes, const char *from) {
    size_t length = strlen(from) < bytes ? strlen(from) : bytes - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

/* ------------------------------------------------------------------------------------------------------ options */

static void help(void) {
    puts(
        "usage: bench_conv --suite [NAME=]FILE [--suite ...] [options]\n"
        "\n"
        "Times forward and backward passes of the layers in FILE (see networks/), one problem line each. The\n"
        "library, plain direct loops and (if built with it) oneDNN take turns on random FP32 data. NAME is the\n"
        "suite's name, the file's name by default.\n"
        "\n"
        "  --case NAME     only this case (a name as in the file)\n"
        "  --count N       only the first N cases of each file\n"
        "  --pass LIST     fprop, bprop, accgrad, backward, joined by commas (default: all)\n"
        "  --device cpu    device of the library; a GPU's number is refused: this program measures the CPU only\n"
        "  --threads N     CPU threads of everything measured (default: OpenMP's)\n"
        "  --out FILE.csv  replace the rows of these cases in FILE.csv (default: print the rows)\n"
        "  --seconds S     time for each implementation and pass, flushes counted; at least three runs (default: 0.5)\n"
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
            bench_message("--pass=%s: must be a list of fprop, bprop, accgrad, backward", text);
            return false;
        }
        *set |= 1u << i;
        p += length + (p[length] == ',');
    }
    return true;
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
    case 'p':
        return parse_passes(value, &o->pass_set);
    case 'd':
        return parse_device(value, &o->device);
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

static bool parse_arguments(int argc, char **argv, bench_options *o) {
    static const struct option table[] = {
        {"suite", required_argument, NULL, 's'},
        {"case", required_argument, NULL, 'c'},
        {"count", required_argument, NULL, 'n'},
        {"pass", required_argument, NULL, 'p'},
        {"device", required_argument, NULL, 'd'},
        {"threads", required_argument, NULL, 't'},
        {"out", required_argument, NULL, 'o'},
        {"seconds", required_argument, NULL, 'S'},
        {"max-gflop", required_argument, NULL, 'g'},
        {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *o = (bench_options){.pass_set = (1u << BENCH_PASSES) - 1, .device = CONV_FFT_DEVICE_CPU, .seconds = 0.5};
    for (int option; (option = getopt_long(argc, argv, "", table, NULL)) != -1;)
        if (!parse_option(option, optarg, o))
            return false;
    if (optind == argc && o->suite_count > 0)
        return true;
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
