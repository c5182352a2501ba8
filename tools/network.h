/* SPDX-License-Identifier: Apache-2.0 */
/* Problem lines: of files, which are networks, or of the command line. */
#ifndef CONV_FFT_PROGRAM_NETWORK_H
#define CONV_FFT_PROGRAM_NETWORK_H

#include "conv_fft.h"

typedef struct layer_line {
    char name[64], text[1024]; /* the text is that of conv_fft_problem_format() */
    conv_fft_problem problem;
    const char *file; /* NULL: the command line */
    long line;
} layer_line;

typedef struct network {
    layer_line *layers;
    int64_t count, capacity;
    int64_t bad; /* lines that are no problem; a message has named the file and line number of each */
} network;

/* Read a line of `length` bytes into `layer`. Its file and line number are set. 0, or an exit status; then a
 * message has been written. */
int layer_read(const char *text, size_t length, layer_line *layer);

/* Write the library's last error and the place of the layer. Returns the exit status. */
int layer_error(const layer_line *layer);

/* 0, or an exit status: out of memory. */
int network_add(network *n, const layer_line *layer);

/* Read the problems of files, at most max_layers (0: all). A line with the problem of an earlier line is skipped,
 * unless it has another name. 0, or an exit status: a file cannot be read, or no file has a problem. On failure, the
 * problems of the readable files are still in n. */
int network_read_all(char *const *files, int count, int64_t max_layers, network *n);
void network_free(network *n);

#endif
