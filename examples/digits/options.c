/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "conv_fft.h"
#include "plots.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: train_digits [options]\n"
    "Train a small network with large-kernel convolution layers on 8x8 images of digits.\n"
    "Exit status: 0 if the held-out accuracy is at least 96 %, 1 if it is lower, 2 after an error.\n"
    "\n"
    "  --data FILE     images (default data/digits.csv.gz)\n"
    "  --out DIR       where the pictures go (default build/demo)\n"
    "  --epochs N      passes over the training images, 1..1000 (default 50)\n"
    "  --seed N        of the first weights, the order and the shifts of the images (default 1)\n"
    "  --device NAME   cpu (default), auto, or the number of a GPU\n"
    "  --threads N     of the CPU; 0 takes all (default 1: these layers are too small to share)\n"
    "  --help          this text\n";

/** A whole number low..high, or a message. */
static bool parse_number(const char *option, const char *text, long low, long high, long *value) {
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno || *value < low || *value > high) {
        fprintf(stderr, "train_digits: --%s %s: not a whole number in %ld..%ld\n", option, text, low, high);
        return false;
    }
    return true;
}

static bool parse_device(const char *text, int *device) {
    if (strcmp(text, "cpu") == 0 || strcmp(text, "auto") == 0) {
        *device = text[0] == 'c' ? CONV_FFT_DEVICE_CPU : CONV_FFT_DEVICE_AUTO;
        return true;
    }
    long number = 0;
    const bool ok = parse_number("device", text, 0, 1023, &number);
    *device = (int)number;
    return ok;
}

bool options_parse(int argc, char **argv, options *o, int *status) {
    static const struct option names[] = {
        {"data", required_argument, NULL, 'd'},   {"out", required_argument, NULL, 'o'},
        {"epochs", required_argument, NULL, 'e'}, {"seed", required_argument, NULL, 's'},
        {"device", required_argument, NULL, 'v'}, {"threads", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    long number = 0;
    bool ok = true;
    *status = EXIT_ERROR;
    *o = (options){.data = "data/digits.csv.gz",
                   .out = "build/demo",
                   .epochs = 50,
                   .device = CONV_FFT_DEVICE_CPU,
                   .threads = 1,
                   .seed = 1};
    for (int c; ok && (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (c) {
        case 'd':
            o->data = optarg;
            break;
        case 'o':
            o->out = optarg;
            break;
        case 'e':
            ok = parse_number("epochs", optarg, 1, HISTORY_MAX_EPOCHS, &number);
            o->epochs = (int)number;
            break;
        case 's':
            ok = parse_number("seed", optarg, 0, 2147483647, &number);
            o->seed = (uint64_t)number;
            break;
        case 'v':
            ok = parse_device(optarg, &o->device);
            break;
        case 't':
            ok = parse_number("threads", optarg, 0, 1024, &number);
            o->threads = (int)number;
            break;
        case 'h':
            fputs(usage, stdout);
            *status = EXIT_SUCCESS;
            return false;
        default:
            fputs("Try --help.\n", stderr);
            return false;
        }
    }
    if (ok && optind < argc) {
        fprintf(stderr, "train_digits: unexpected argument %s. Try --help.\n", argv[optind]);
        return false;
    }
    return ok;
}
