/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the program conv-fft share. */
#ifndef CONV_FFT_PROGRAM_H
#define CONV_FFT_PROGRAM_H

#include "conv_fft.h"
#include "message.h"
#include "network.h"
#include "options.h"
#include "output.h"

typedef struct options {
    int device;
    bool again, kernels, verbose, json;
    int64_t threads, measure, candidates, count, milliseconds, workspace_limit;
    conv_fft_tuning mode; /* CONV_FFT_TUNE_OFF: not given */
    conv_fft_tune_policy policy;
    char *file, *properties;
    char given[OPTIONS_MAX + 1]; /* the letters of the options that were given: tools/commands.c */
} options;

/* 0, or an exit status. */
int open_context(const options *o, conv_fft_context **context);

/* What a command does for one layer. It prints text, or adds to "layers" of the document. Returns an exit status. */
typedef int (*layer_function)(const options *o, conv_fft_context *context, const layer_line *layer, json_t *document);

/* Run the command `name` on the problem of the command line, or on each layer of --file. */
int for_each_layer(const options *o, const char *name, char **words, int count, layer_function function);

/* The same for a command that takes the files of a network. */
typedef int (*network_function)(const options *o, conv_fft_context *context, const network *n);
int with_network(const options *o, char **words, int count, network_function function);

/* The commands. Each gets the words that follow its name, and returns an exit status. */
typedef int command_function(const options *o, char **words, int count);
command_function devices_command, explain_command, explain_fft, check_command, tune_command, bench_command, cache_list,
    cache_show, cache_merge, cache_export, cache_clear, cache_verify, cache_repair, completion_command, man_command,
    help_command;

#endif
