/* SPDX-License-Identifier: Apache-2.0 */
/* bench_fft measures the transforms of fbfft.h, those of cuFFT, and copies. See --help. */
#include "common/message.h"
#include "fft/run.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char bench_program[] = "bench_fft";

static void help(void) {
    puts("usage: bench_fft [options]\n"
         "\n"
         "Times transforms on GPU 0, those of real numbers in both directions: the library, cuFFT (if its library is\n"
         "found; with spectra in natural order, whatever order the library has), cuFFT with a copy into or out of "
         "whole\n"
         "planes (padded cases), and a device copy of half the bytes read and written.\n"
         "\n"
         "  --out FILE.csv  replace the rows of these cases in FILE.csv (default: print the rows)\n"
         "  --quick         batches of at most 2^22 elements, fewer runs; the names of the cases say the batch\n"
         "  --case NAME     only the cases of this name (as --list prints it), of every type that there is\n"
         "  --precision P   only the cases of fp32, fp64 or fp16\n"
         "  --commit ID     what was built, for the results (default: what git says here)\n"
         "  --cache FOLDER  kernels may be there already: how long it takes to make plans is then not measured\n"
         "  --list          print the cases, run nothing\n"
         "  --help");
}

/* False: the program ends, with *status. */
static bool parse(int argc, char **argv, fft_options *o, bool *list, int *status) {
    static const struct option table[] = {
        {"out", required_argument, NULL, 'o'},
        {"quick", no_argument, NULL, 'q'},
        {"case", required_argument, NULL, 'c'},
        {"precision", required_argument, NULL, 'p'},
        {"commit", required_argument, NULL, 'i'},
        {"cache", required_argument, NULL, 'd'},
        {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *o = (fft_options){0};
    *list = false;
    *status = EXIT_FAILURE;
    for (int option; (option = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        switch (option) {
        case 'o':
            o->out = optarg;
            break;
        case 'q':
            o->quick = true;
            break;
        case 'c':
            o->only = optarg;
            break;
        case 'p':
            o->precision = optarg;
            break;
        case 'i':
            o->commit = optarg;
            break;
        case 'd':
            o->cache = optarg;
            break;
        case 'l':
            *list = true;
            break;
        case 'h':
            help();
            *status = EXIT_SUCCESS;
            return false;
        default:
            fputs("Try 'bench_fft --help'.\n", stderr);
            return false;
        }
    }
    if (optind == argc)
        return true;
    bench_message("unexpected argument %s", argv[optind]);
    fputs("Try 'bench_fft --help'.\n", stderr);
    return false;
}

int main(int argc, char **argv) {
    fft_case cases[FFT_MAX_CASES];
    fft_options o;
    bool list;
    int status;
    if (!parse(argc, argv, &o, &list, &status))
        return status;
    size_t count = fft_suite(o.quick, cases);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if ((!o.only || !strcmp(cases[i].name, o.only)) &&
            (!o.precision || !strcmp(fft_precision(&cases[i]), o.precision)))
            cases[kept++] = cases[i];
    if (kept == 0) {
        bench_message("no case %s of precision %s; --list prints them", o.only ? o.only : "at all",
                      o.precision ? o.precision : "any");
        return EXIT_FAILURE;
    }
    count = kept;
    if (!list)
        return fft_bench(&o, cases, count) ? EXIT_SUCCESS : EXIT_FAILURE;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        while (strcmp(cases[same].name, cases[i].name) != 0)
            same++;
        if (same == i)
            puts(cases[i].name);
    }
    return EXIT_SUCCESS;
}
