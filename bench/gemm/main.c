/* SPDX-License-Identifier: Apache-2.0 */
/* bench_gemm measures the products per frequency of layers, and those of cuBLAS. See --help. */
#include "common/message.h"
#include "common/program.h"
#include "gemm/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char program_name[] = "bench_gemm";

static const char help[] =
    "usage: bench_gemm [options]\n"
    "\n"
    "Measures the complex products per frequency of the three passes on GPU 0: as accurate as FP32 and as TF32, and\n"
    "of FP16 and BF16 spectra. These take turns: the library's kernels on tensor cores, cuBLAS (for 16-bit spectra\n"
    "a real product of the same shape), and a copy in device memory of half the bytes that are read and written.\n"
    "\n"
    "  --out FILE.csv  replace the rows of these cases in FILE.csv (default: print the rows)\n"
    "  --case NAME     only the case of this name (as --list prints it)\n"
    "  --commit ID     the commit of the build, for the results (default: what git says here)\n"
    "  --list          print the cases, and run nothing\n"
    "  --help          print this text\n";

typedef struct main_options {
    gemm_options run;
    bool list;
} main_options;

/* Read the options. False: the program ends with *status. */
static bool parse(int argc, char **argv, main_options *o, int *status) {
#define AT(member) offsetof(main_options, member)
    static const option_rule rules[] = {
        {'o', OPTION_TEXT, "out", AT(run.out), 0, 0, NULL, NULL},
        {'c', OPTION_TEXT, "case", AT(run.only), 0, 0, NULL, NULL},
        {'i', OPTION_TEXT, "commit", AT(run.commit), 0, 0, NULL, NULL},
        {'l', OPTION_FLAG, "list", AT(list), 0, 0, NULL, NULL},
        {0, OPTION_FLAG, NULL, 0, 0, 0, NULL, NULL},
    };
#undef AT
    *o = (main_options){.list = false};
    return bench_options_read(rules, help, argc, argv, o, status);
}

int main(int argc, char **argv) {
    gemm_case cases[GEMM_CASES];
    main_options parsed;
    int status;
    if (!parse(argc, argv, &parsed, &status))
        return status;
    const gemm_options o = parsed.run;
    const size_t count = gemm_suite(cases);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!o.only || !strcmp(cases[i].name, o.only))
            cases[kept++] = cases[i];
    if (kept == 0) {
        bench_message("no case %s; --list prints them", o.only);
        return EXIT_FAILURE;
    }
    if (!parsed.list)
        return gemm_bench(&o, cases, kept) ? EXIT_SUCCESS : EXIT_FAILURE;
    for (size_t i = 0; i < kept; i++)
        puts(cases[i].name);
    return EXIT_SUCCESS;
}
