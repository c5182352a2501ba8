/* SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <stddef.h>

const char program_summary[] = "Convolution layers for CNN training through small batched FFTs.";

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

#define READ(letter, name, must, read) \
    { letter, OPTION_READ, name, 0, 0, 0, must, read }
#define WHOLE(letter, name, member, low, high) \
    { letter, OPTION_WHOLE, name, offsetof(options, member), low, high, NULL, NULL }
#define PLAIN(letter, kind, name, member) \
    { letter, kind, name, offsetof(options, member), 0, 0, NULL, NULL }
const option_entry option_entries[] = {
    {READ('d', "device", "be auto, cpu or a number from 0 on", read_device), "auto|cpu|N",
     "the device: automatic, the CPU, or the number of a GPU (default auto)"},
    {WHOLE('t', "threads", threads, 1, 4096), "N", "CPU threads (default: all that OpenMP gives)"},
    {PLAIN('f', OPTION_TEXT, "file", file), "FILE", "each problem line of a file instead of one problem"},
    {PLAIN('g', OPTION_TEXT, "facts", properties), "FILE",
     "the properties of another GPU: the output of `conv-fft devices` there"},
    {WHOLE('m', "measure", measure, 1, 1000), "N",
     "run each pass N times (1 to 1000) on random data and show the median times (explain: default none; bench: 10)"},
    {PLAIN('w', OPTION_BYTES, "workspace-limit", workspace_limit), "BYTES",
     "the largest workspace of a pass, for example 500M or 2G (default: no limit). Records that tune makes are for "
     "programs with this limit"},
    {WHOLE('c', "candidates", candidates, 1, 1000000), "N",
     "show the N best candidates of each set of passes that is tuned together (default: 10 for a PROBLEM, 20 with "
     "--mode, none for a file)"},
    {READ('M', "mode", "be measure or exhaustive", read_mode), "measure|exhaustive",
     "time the best few candidates (measure, the default of tune), or all that may win"},
    {WHOLE('T', "milliseconds", milliseconds, 1, 1000000000), "N",
     "time for the measurements of one layer, shared equally by forward and the gradients (default: 10000 for measure, "
     "no limit for exhaustive)"},
    {PLAIN('a', OPTION_FLAG, "again", again), NULL, "measure layers that have a record, too"},
    {WHOLE('n', "count", count, 1, 1000000000), "N", "take the first N layers only"},
    {PLAIN('k', OPTION_FLAG, "kernels", kernels), NULL, "compile the kernels of the problems beside FILE; needs a GPU"},
    {READ('p', "policy", "be fastest, newest, mine or theirs", read_policy), "fastest|newest|mine|theirs",
     "the record that stays if both have one (default fastest)"},
    {PLAIN('v', OPTION_FLAG, "verbose", verbose), NULL, "show strategy lines in full"},
    {PLAIN('j', OPTION_FLAG, "json", json), NULL, "print one JSON document instead of text"},
    {{0, OPTION_FLAG, NULL, 0, 0, 0, NULL, NULL}, NULL, NULL},
};

/* ---- commands */

const command commands[] = {
    {"devices", "", "dtj", "show the device in use, the libraries that are found, and what is missing",
     "The output for a GPU is what --facts of `explain fft` reads.", devices_command},
    {"explain", "PROBLEM | --file FILE", "dtfmwcMTvj",
     "show how each pass of a layer is computed, who chose that, and its cost",
     "For each pass: the strategy; bytes, operations and time of its stages; and whether a tuning record or the cost "
     "model has chosen. Then the candidates, best first, with the reasons. With --mode they are timed. On a GPU it "
     "says "
     "if a direct method should be faster.\n\n"
     "  conv-fft explain --measure 10 in=16x64x56x56 out=64 kernel=7x7 pad=same",
     explain_command},
    {"explain fft", "BASIS [FIELD=VALUE]...", "dgj", "show the kernels of a batched FFT on a GPU, and the reasons",
     "It also shows the shortest time that bytes and operations allow. A basis is 1 to 3 axes joined by x.\n\n"
     "  conv-fft explain fft --facts h200.txt 64x64 from=9x9 channels=16 order=frequency-major\n\n"
     "Fields: kind=r2c|c2r|c2c|c2c-inverse, from (the points that hold data or are wanted; the others are zero), "
     "channels, order=natural|transposed|frequency-major, dtype=fp32|fp16|bf16|fp64, layout=first|last, batch, "
     "spectrum=fp32|fp16, arithmetic=default|fp32|split|fp16, and the window of a larger signal: size, offset, step "
     "(one number, or one for each axis), "
     "mode=zeros|circular|reflect|replicate.",
     explain_fft},
    {"check", "PROBLEM | --file FILE", "dtfwvj", "run all passes and compare the results with direct sums in FP64",
     "It runs the plan that programs get on random data, and shows the error of each pass beside the limit of "
     "docs/numerics.md. Of large layers, a random sample of the results is compared. The exit status is 1 if a result "
     "exceeds its limit.\n\n"
     "  conv-fft check in=2x16x40x40 out=16 kernel=9x9 pad=same",
     check_command},
    {"tune", "FILE... | PROBLEM", "dtwMTanvj", "time strategies for each layer of a network and keep the fastest",
     "Programs on this device use the records from then on. The table shows the chosen strategies, beside the choice "
     "of the cost model and the best algorithm of another library (cuDNN, cuFFT), if these were timed. The last lines "
     "have the gain, the time of one training step, and where the records are. Ctrl-C ends the current search; the "
     "same command goes on from there.\n\n"
     "  conv-fft tune networks/resnet50.txt\n"
     "  conv-fft tune in=8x32x56x56 out=32 kernel=9x9 pad=same",
     tune_command},
    {"bench", "FILE... | PROBLEM", "dtmnvj", "run every pass of every layer and show the median times", "",
     bench_command},
    {"cache", "ACTION", "", "show, copy, check or clear the tuning records and compiled kernels on disk", "", NULL},
    {"cache list", "", "j", "list the files of records, and the number of compiled kernels", "", cache_list},
    {"cache show", "", "dtvj", "show the records of this device", "", cache_show},
    {"cache merge", "FILE...", "dtpj", "add the records of files to the cache", "", cache_merge},
    {"cache export", "FILE [NETWORK]...", "dtkj", "write all records, or those of networks, to a file",
     "A network is a file of problem lines.", cache_export},
    {"cache clear", "", "j", "remove all records and kernels, but no file of another version", "", cache_clear},
    {"cache verify", "", "j", "list as above, and fail if a line or a kernel cannot be verified", "", cache_verify},
    {"cache repair", "", "dtj", "remove the lines and kernels that cannot be verified", "", cache_repair},
    {"completion", "", "", "print the completion of this program for bash and zsh",
     "`make install` puts it where bash finds it. For zsh, and in other places:\n\n"
     "  autoload -Uz compinit bashcompinit && compinit && bashcompinit    # zsh only\n"
     "  source <(conv-fft completion)",
     completion_command},
    {"man", "", "", "print the manual page", "  conv-fft man | man -l -", man_command},
    {"help", "[COMMAND]", "", "show this text, or that of a command", "", help_command},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};

/* ---- topics */

const char *const problem_fields[] = {"in",     "out",     "kernel", "stride", "dilation", "pad",  "groups", "mode",
                                      "layout", "wlayout", "dtype",  "w",      "gw",       "math", NULL};

const topic topics[] = {
    {"Problems",
     "A problem is a name, which may be left out, and key=value fields. On a command line it may be one argument or "
     "several:\n\n"
     "  conv-fft explain L2 in=128x64x64x64 out=64 kernel=9x9\n\n"
     "Fields: in=BATCHxCHANNELSxD1[xD2[xD3]], out, kernel, stride, dilation, pad (2, 1x2, 3:0, same), groups, "
     "mode=zeros|circular|reflect|replicate, layout=first|last, wlayout=first|last, dtype=fp32|fp16|bf16|fp64, "
     "w=same|fp32 (weights and bias), gw=same|fp32|fp16|bf16|fp64, math=fp32|tf32|half|fp64. Only `in` must be "
     "given.\n\n"
     "A network is a file of such lines; # starts a comment. If CONV_FFT_RECORD names a file, programs write the lines "
     "of layers without a record to it."},
    {"Passes",
     "The passes of a layer are forward, backward data (the gradient of x) and backward weights (the gradient of w). "
     "\"both gradients\" is one call for both."},
    {"Exit status",
     "  0    success\n"
     "  1    an error of the library, a bad file or line, passes that tune did not measure, results that\n"
     "       check refuses, or output that cannot be written\n"
     "  2    wrong usage\n"
     "  130  interrupted by Ctrl-C (143: by SIGTERM)"},
    {"JSON",
     "With --json, standard output has one JSON document. docs/program.md describes it. Messages go to the standard "
     "error stream."},
    {NULL, NULL},
};
