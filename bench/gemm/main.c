/* SPDX-License-Identifier: Apache-2.0 */
/* bench_gemm measures the products per frequency of layers, and those of cuBLAS. See --help. */
#include "common/message.h"
#include "gemm/run.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char bench_program[] = "bench_gemm";

static void help(void) {
    puts("usage: bench_gemm [options]\n"
         "\n"
         "Times the complex products per frequency of the three passes on GPU 0, as accurate as FP32 and as TF32, and "
         "of\n"
         "spectra in FP16 and BF16: by the library's kernels on tensor cores, by cuBLAS (in 16 bits a real product of "
         "the\n"
         "same shape), and a device copy of half the bytes read and written.\n"
         "\n"
         "  --out FILE.csv  replace the rows of these cases in FILE.csv (default: print the rows)\n"
         "  --case NAME     only the case of this name (as --list prints it)\n"
         "  --commit ID     what was built, for the results (default: what git says here)\n"
         "  --list          print the cases, run nothing\n"
         "  --help");
}

/* False: the program ends, with *status. */
static bool parse(int argc, char **argv, gemm_options *o, bool *list, int *status) {
    static const struct option table[] = {
        {"out", required_argument, NULL, 'o'},    {"case", required_argument, NULL, 'c'},
        {"commit", required_argument, NULL, 'i'}, {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    *o = (gemm_options){0};
    *list = false;
    *status = EXIT_FAILURE;
    for (int option; (option = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        switch (option) {
        case 'o':
            o->out = optarg;
            break;
        case 'c':
            o->only = optarg;
            break;
        case 'i':
            o->commit = optarg;
            break;
        case 'l':
            *list = true;
            break;
        case 'h':
            help();
            *status = EXIT_SUCCESS;
            return false;
        default:
            fputs("Try 'bench_gemm --help'.\n", stderr);
            return false;
        }
    }
    if (optind == argc)
        return true;
    bench_message("unexpected argument %s", argv[optind]);
    fputs("Try 'bench_gemm --help'.\n", stderr);
    return false;
}

int main(int argc, char **argv) {
    gemm_case cases[GEMM_CASES];
    gemm_options o;
    bool list;
    int status;
    if (!parse(argc, argv, &o, &list, &status))
        return status;
    const size_t count = gemm_suite(cases);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!o.only || !strcmp(cases[i].name, o.only))
            cases[kept++] = cases[i];
    if (kept == 0) {
        bench_message("no case %s; --list prints them", o.only);
        return EXIT_FAILURE;
    }
    if (!list)
        return gemm_bench(&o, cases, kept) ? EXIT_SUCCESS : EXIT_FAILURE;
    for (size_t i = 0; i < kept; i++)
        puts(cases[i].name);
    return EXIT_SUCCESS;
}
