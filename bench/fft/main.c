/* SPDX-License-Identifier: Apache-2.0 */
/* bench_fft measures the transforms of fbfft.h, those of cuFFT, and copies. See --help. */
#include "common/message.h"
#include "common/program.h"
#include "fft/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char program_name[] = "bench_fft";

static const char help[] =
    "usage: bench_fft [options]\n"
    "\n"
    "Measures transforms on GPU 0; those of real numbers in both directions. These take turns:\n"
    "  - the library, and where 256 complex numbers or 512 real ones an axis or more are a power of 2\n"
    "    also its arithmetic SPLIT (ours-split),\n"
    "  - cuFFT, if it is found; its spectra are always in natural order,\n"
    "  - for padded cases, cuFFT with a copy into or out of whole planes,\n"
    "  - a copy in device memory of half the bytes that are read and written.\n"
    "\n"
    "  --out FILE.csv  replace the rows of these cases in FILE.csv (default: print the rows)\n"
    "  --quick         batches of at most 2^22 elements, and fewer runs; the names of the cases tell the batch\n"
    "  --case NAME     only the cases of this name (as --list prints it), of every type\n"
    "  --precision P   only the cases of fp32, fp64 or fp16\n"
    "  --complex       only the cases of complex signals\n"
    "  --rank R        only the cases of 1, 2 or 3 axes\n"
    "  --commit ID     the commit of the build, for the results (default: what git says here)\n"
    "  --cache FOLDER  a cache that may have kernels already; the time to make plans is then not measured\n"
    "  --list          print the cases, and run nothing\n"
    "  --help          print this text\n";

typedef struct main_options {
    fft_options run;
    bool list, complex_only;
    int64_t rank; /* 0: every rank */
} main_options;

/* Read the options. False: the program ends with *status. */
static bool parse(int argc, char **argv, main_options *o, int *status) {
#define AT(member) offsetof(main_options, member)
    static const option_rule rules[] = {
        {'o', OPTION_TEXT, "out", AT(run.out), 0, 0, NULL, NULL},
        {'q', OPTION_FLAG, "quick", AT(run.quick), 0, 0, NULL, NULL},
        {'c', OPTION_TEXT, "case", AT(run.only), 0, 0, NULL, NULL},
        {'p', OPTION_TEXT, "precision", AT(run.precision), 0, 0, NULL, NULL},
        {'x', OPTION_FLAG, "complex", AT(complex_only), 0, 0, NULL, NULL},
        {'r', OPTION_WHOLE, "rank", AT(rank), 1, 3, NULL, NULL},
        {'i', OPTION_TEXT, "commit", AT(run.commit), 0, 0, NULL, NULL},
        {'d', OPTION_TEXT, "cache", AT(run.cache), 0, 0, NULL, NULL},
        {'l', OPTION_FLAG, "list", AT(list), 0, 0, NULL, NULL},
        {0, OPTION_FLAG, NULL, 0, 0, 0, NULL, NULL},
    };
#undef AT
    *o = (main_options){.list = false};
    return bench_options_read(rules, help, argc, argv, o, status);
}

int main(int argc, char **argv) {
    fft_case cases[FFT_MAX_CASES];
    main_options parsed;
    int status;
    if (!parse(argc, argv, &parsed, &status))
        return status;
    const fft_options o = parsed.run;
    size_t count = fft_suite(o.quick, cases);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if ((!o.only || !strcmp(cases[i].name, o.only)) && (!parsed.complex_only || cases[i].complex_signal) &&
            (!parsed.rank || cases[i].rank == parsed.rank) &&
            (!o.precision || !strcmp(fft_precision(&cases[i]), o.precision)))
            cases[kept++] = cases[i];
    if (kept == 0) {
        bench_message("no case %s of precision %s; --list prints them", o.only ? o.only : "at all",
                      o.precision ? o.precision : "any");
        return EXIT_FAILURE;
    }
    count = kept;
    if (!parsed.list)
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
