/* SPDX-License-Identifier: Apache-2.0 */
/* Train a small network of large-kernel convolution layers on images of digits and measure it on held-out images. */
#define _POSIX_C_SOURCE 200809L
#include "digits.h"
#include "network.h"
#include "options.h"
#include "plots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    BATCH = 64,
    MAX_MISTAKES = 12,
    PATH_BYTES = 4096
};

static const double required_accuracy = 96.0; /* percent */
static const double learning_rate = 0.004;    /* of the first step; falls to zero as half a cosine */

/* The edge is repeated around the hidden maps: zeros would draw a border that no digit has. */
static const char *const layer_lines[] = {
    "stem      in=1x1x8x8  out=16 kernel=7x7 pad=3",
    "depthwise in=1x16x8x8 out=16 kernel=7x7 pad=3 groups=16 mode=replicate",
    "down      in=1x16x8x8 out=32 kernel=5x5 pad=2 stride=2 mode=replicate",
    "classes   in=1x32x4x4 out=10 kernel=4x4",
};
enum {
    LAYERS = sizeof layer_lines / sizeof layer_lines[0]
};

typedef struct trainer {
    options options;
    digits train, held_out;
    int64_t *order; /* of the training images, shuffled in every epoch */
    rng random;
    network net;
    int labels[BATCH];
    history history;
    int mistakes_made, mistakes_shown;
    mistake mistakes[MAX_MISTAKES];
    double start_time;
    bool terminal;
} trainer;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---------------------------------------------------------------------------------------- training */

/** On a terminal one line that is drawn again and again, otherwise one line per epoch. */
static void show_progress(const trainer *t, int64_t step, int64_t steps, double loss) {
    enum {
        WIDTH = 20
    };
    const int epochs = t->options.epochs, done = t->history.epochs;
    const double share = ((double)done + (double)(step % steps) / (double)steps) / epochs;
    const bool epoch_ended = step == steps;
    if (!t->terminal && !epoch_ended) {
        return;
    }
    if (t->terminal) {
        static const char bar[] = "####################....................";
        printf("\r[%.*s] ", WIDTH, bar + WIDTH - (int)(WIDTH * share));
    }
    printf("epoch %3d/%d  loss %.4f", epoch_ended ? done : done + 1, epochs, loss);
    if (done > 0) {
        printf("  held-out %6.2f %%", t->history.held_out_accuracy[done - 1]);
    }
    printf("  %5.1f s%s", now() - t->start_time, t->terminal && done < epochs ? "" : "\n");
    fflush(stdout);
}

static int64_t count_correct(const trainer *t, int64_t count) {
    int64_t correct = 0;
    for (int64_t i = 0; i < count; i++) {
        correct += network_prediction(&t->net, i) == t->labels[i];
    }
    return correct;
}

/** One pass over the training images; a remainder smaller than a batch waits for another epoch's order. */
static bool train_epoch(trainer *t, double *loss, double *accuracy) {
    const int64_t steps = t->train.count / BATCH;
    double loss_sum = 0.0;
    int64_t correct = 0;
    rng_shuffle(&t->random, t->order, t->train.count);
    for (int64_t step = 0; step < steps; step++) {
        const double progress = (t->history.epochs + (double)step / (double)steps) / t->options.epochs;
        digits_batch(&t->train, t->order + step * BATCH, BATCH, &t->random, t->net.x, t->labels);
        if (!network_forward(&t->net) || !network_backward(&t->net, t->labels)) {
            return false;
        }
        network_update(&t->net, learning_rate * 0.5 * (1.0 + cos(3.141592653589793 * progress)));
        loss_sum += network_loss(&t->net, t->labels, BATCH);
        correct += count_correct(t, BATCH);
        if (step + 1 < steps) {
            show_progress(t, step + 1, steps, loss_sum / (double)(step + 1));
        }
    }
    *loss = loss_sum / (double)steps;
    *accuracy = 100.0 * (double)correct / (double)(steps * BATCH);
    return true;
}

static void collect_mistakes(trainer *t, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const int prediction = network_prediction(&t->net, i);
        if (prediction == t->labels[i]) {
            continue;
        }
        t->mistakes_made++;
        if (t->mistakes_shown < MAX_MISTAKES) {
            t->mistakes[t->mistakes_shown++] =
                (mistake){.image = t->held_out.images + (first + i) * DIGITS_PIXELS,
                          .label = t->labels[i],
                          .prediction = prediction,
                          .probability = t->net.probabilities[i * t->net.classes + prediction]};
        }
    }
}

static bool evaluate(trainer *t, double *loss, double *accuracy) {
    const int64_t total = t->held_out.count;
    double loss_sum = 0.0;
    t->mistakes_made = t->mistakes_shown = 0;
    for (int64_t first = 0; first < total; first += BATCH) {
        const int64_t count = total - first < BATCH ? total - first : BATCH;
        int64_t indices[BATCH]; /* the last image fills up the last batch; it is counted once */
        for (int64_t i = 0; i < BATCH; i++) {
            indices[i] = first + (i < count ? i : count - 1);
        }
        digits_batch(&t->held_out, indices, BATCH, NULL, t->net.x, t->labels);
        if (!network_forward(&t->net)) {
            return false;
        }
        loss_sum += network_loss(&t->net, t->labels, count) * (double)count;
        collect_mistakes(t, first, count);
    }
    *loss = loss_sum / (double)total;
    *accuracy = 100.0 - 100.0 * t->mistakes_made / (double)total;
    return true;
}

static bool train(trainer *t) {
    history *h = &t->history;
    t->start_time = now();
    while (h->epochs < t->options.epochs) {
        const int e = h->epochs;
        if (!train_epoch(t, &h->train_loss[e], &h->train_accuracy[e]) ||
            !evaluate(t, &h->held_out_loss[e], &h->held_out_accuracy[e])) {
            return false;
        }
        h->epochs++;
        show_progress(t, 1, 1, h->train_loss[e]);
    }
    return true;
}

/* ---------------------------------------------------------------------------------------- pictures */

/** Make a directory and those above it. */
static bool make_directory(const char *path) {
    char part[PATH_BYTES];
    for (size_t i = 0; i <= strlen(path); i++) {
        if ((path[i] == '/' && i > 0) || path[i] == '\0') {
            snprintf(part, sizeof part, "%.*s", (int)i, path);
            if (mkdir(part, 0777) != 0 && errno != EEXIST) {
                fprintf(stderr, "train_digits: cannot make the directory %s: %s\n", part, strerror(errno));
                return false;
            }
        }
    }
    return true;
}

/** The filters of a layer whose filters have one input channel each. */
static filter_bank layer_filters(const layer *l) {
    const conv_fft_problem *p = &l->problem;
    filter_bank bank = {.count = (int)p->out_channels,
                        .rows = (int)p->kernel[0],
                        .columns = (int)p->kernel[1],
                        .weights = l->weights.value};
    snprintf(bank.title, sizeof bank.title, "%s: %d filters, %d x %d", l->name, bank.count, bank.rows, bank.columns);
    return bank;
}

static bool write_pictures(const trainer *t) {
    const filter_bank banks[] = {layer_filters(&t->net.layers[0]), layer_filters(&t->net.layers[1])};
    char path[3][PATH_BYTES];
    static const char *const names[3] = {"loss_curve.png", "filters.png", "mistakes.png"};
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s", t->options.out, names[i]);
    }
    return plot_history(path[0], &t->history, required_accuracy) && plot_filters(path[1], banks, 2) &&
           plot_mistakes(path[2], t->mistakes, t->mistakes_shown, t->mistakes_made, (int)t->held_out.count);
}

/* -------------------------------------------------------------------------------------------- main */

static bool trainer_create(trainer *t) {
    const options *o = &t->options;
    digits all = {0};
    const bool split = digits_load(o->data, &all) && digits_split(&all, &t->train, &t->held_out);
    digits_free(&all);
    if (!split) {
        return false;
    }
    if (t->train.count < BATCH || t->held_out.count < 1) {
        fprintf(stderr, "train_digits: %s: too few images\n", o->data);
        return false;
    }
    conv_fft_context_options device;
    if (conv_fft_context_options_init(&device) != CONV_FFT_SUCCESS) {
        fprintf(stderr, "train_digits: %s\n", conv_fft_last_error());
        return false;
    }
    device.device = o->device;
    device.threads = o->threads;
    t->random.state = o->seed;
    t->terminal = isatty(STDOUT_FILENO);
    t->order = digits_order(t->train.count);
    return t->order && network_create(&t->net, &device, BATCH, layer_lines, LAYERS, &t->random);
}

static void trainer_destroy(trainer *t) {
    network_destroy(&t->net);
    free(t->order);
    digits_free(&t->train);
    digits_free(&t->held_out);
}

static int run(trainer *t) {
    if (!trainer_create(t) || !make_directory(t->options.out)) {
        return EXIT_ERROR;
    }
    printf("%s\n", conv_fft_context_description(t->net.context));
    printf("%lld training images, %lld held out\n\n", (long long)t->train.count, (long long)t->held_out.count);
    if (!train(t)) {
        return EXIT_ERROR;
    }
    printf("\n");
    if (!network_report(&t->net) || !write_pictures(t)) {
        return EXIT_ERROR;
    }
    const double accuracy = t->history.held_out_accuracy[t->history.epochs - 1];
    const bool reached = accuracy >= required_accuracy;
    printf("\nHeld-out accuracy %.2f %% (%s %.0f %%). Pictures: %s/loss_curve.png, filters.png, mistakes.png\n",
           accuracy, reached ? "at least the required" : "below the required", required_accuracy, t->options.out);
    return reached ? EXIT_SUCCESS : EXIT_ACCURACY;
}

int main(int argc, char **argv) {
    static trainer t;
    int status;
    if (!options_parse(argc, argv, &t.options, &status)) {
        return status;
    }
    status = run(&t);
    trainer_destroy(&t);
    return status;
}
