/* SPDX-License-Identifier: Apache-2.0 */
#include "digits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const double max_shift = 0.5; /* pixels */

void digits_free(digits *set) {
    free(set->images);
    free(set->labels);
    *set = (digits){0};
}

static bool digits_alloc(digits *set, int64_t count) {
    *set = (digits){.images = malloc((size_t)count * DIGITS_PIXELS * sizeof(float)),
                    .labels = malloc((size_t)count * sizeof(int))};
    if (!set->images || !set->labels) {
        fprintf(stderr, "train_digits: out of memory for %lld images\n", (long long)count);
    }
    return set->images && set->labels;
}

/** The number at *text, which must be 0..max and end with `end`; *text moves behind it. */
static bool parse_field(const char **text, long max, char end, long *value) {
    char *stop;
    *value = strtol(*text, &stop, 10);
    if (stop == *text || *stop != end || *value < 0 || *value > max) {
        return false;
    }
    *text = stop + 1;
    return true;
}

static bool parse_line(const char *line, float *image, int *label) {
    long value;
    for (int i = 0; i < DIGITS_PIXELS; i++) {
        if (!parse_field(&line, 16, ',', &value)) {
            return false;
        }
        image[i] = (float)value / 16.0f;
    }
    if (!parse_field(&line, DIGITS_CLASSES - 1, '\0', &value)) {
        return false;
    }
    *label = (int)value;
    return true;
}

/** Read lines until the end of the file. The set has room for `capacity` images. */
static bool read_lines(gzFile file, const char *path, digits *set, int64_t capacity) {
    char line[512];
    while (gzgets(file, line, sizeof line)) {
        line[strcspn(line, "\r\n")] = '\0';
        if (set->count == capacity) {
            fprintf(stderr, "train_digits: %s: more than %lld lines\n", path, (long long)capacity);
            return false;
        }
        if (!parse_line(line, set->images + set->count * DIGITS_PIXELS, set->labels + set->count)) {
            fprintf(stderr, "train_digits: %s: line %lld is not 64 pixels (0..16) and a label (0..9)\n", path,
                    (long long)set->count + 1);
            return false;
        }
        set->count++;
    }
    int code;
    const char *message = gzerror(file, &code);
    if (code != Z_OK && code != Z_STREAM_END) {
        fprintf(stderr, "train_digits: %s: %s\n", path, message);
        return false;
    }
    return true;
}

bool digits_load(const char *path, digits *set) {
    const int64_t capacity = 10000;
    gzFile file = gzopen(path, "rb");
    if (!file) {
        fprintf(stderr, "train_digits: cannot open %s (--data names the file)\n", path);
        return false;
    }
    bool ok = digits_alloc(set, capacity) && read_lines(file, path, set, capacity);
    gzclose(file);
    if (!ok) {
        digits_free(set);
    }
    return ok;
}

int64_t *digits_order(int64_t count) {
    int64_t *order = malloc((size_t)count * sizeof *order);
    if (!order) {
        fprintf(stderr, "train_digits: out of memory for %lld images\n", (long long)count);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) {
        order[i] = i;
    }
    return order;
}

static void append(digits *set, const digits *from, int64_t i) {
    memcpy(set->images + set->count * DIGITS_PIXELS, from->images + i * DIGITS_PIXELS, DIGITS_PIXELS * sizeof(float));
    set->labels[set->count++] = from->labels[i];
}

bool digits_split(const digits *all, digits *train, digits *held_out) {
    rng random = {.state = 1998};
    int64_t seen[DIGITS_CLASSES] = {0};
    *train = *held_out = (digits){0};
    int64_t *order = digits_order(all->count);
    bool ok = order && digits_alloc(train, all->count) && digits_alloc(held_out, all->count);
    if (ok) {
        rng_shuffle(&random, order, all->count);
    }
    for (int64_t i = 0; ok && i < all->count; i++) {
        const bool hold = seen[all->labels[order[i]]]++ % 4 == 0;
        append(hold ? held_out : train, all, order[i]);
    }
    free(order);
    return ok;
}

/** The pixel, 0 (paper) outside the image. */
static float pixel(const float *image, int row, int column) {
    const bool inside = row >= 0 && row < DIGITS_SIDE && column >= 0 && column < DIGITS_SIDE;
    return inside ? image[row * DIGITS_SIDE + column] : 0.0f;
}

/** Move an image by (down, right) pixels, |each| <= 1, with linear interpolation. */
static void shift(const float *image, double down, double right, float *moved) {
    const int row_step = down < 0 ? 1 : -1, column_step = right < 0 ? 1 : -1;
    const float v = (float)fabs(down), h = (float)fabs(right);
    for (int r = 0; r < DIGITS_SIDE; r++) {
        for (int c = 0; c < DIGITS_SIDE; c++) {
            const float same = (1 - h) * pixel(image, r, c) + h * pixel(image, r, c + column_step);
            const float next =
                (1 - h) * pixel(image, r + row_step, c) + h * pixel(image, r + row_step, c + column_step);
            moved[r * DIGITS_SIDE + c] = (1 - v) * same + v * next;
        }
    }
}

void digits_batch(const digits *set, const int64_t *order, int64_t count, rng *random, float *x, int *labels) {
    for (int64_t i = 0; i < count; i++) {
        const float *image = set->images + order[i] * DIGITS_PIXELS;
        const double down = random ? max_shift * (2.0 * rng_uniform(random) - 1.0) : 0.0;
        const double right = random ? max_shift * (2.0 * rng_uniform(random) - 1.0) : 0.0;
        shift(image, down, right, x + i * DIGITS_PIXELS);
        labels[i] = set->labels[order[i]];
    }
}
