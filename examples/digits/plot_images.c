/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"
#include "plots.h"

#include <math.h>
#include <stdio.h>

static const color black = {30, 30, 30}, grey = {130, 130, 130}, white = {255, 255, 255};
static const color blue = {33, 102, 172}, red = {178, 24, 43};

static color mix(color a, color b, double share) {
    return (color){(unsigned char)lround(a.red + share * (b.red - a.red)),
                   (unsigned char)lround(a.green + share * (b.green - a.green)),
                   (unsigned char)lround(a.blue + share * (b.blue - a.blue))};
}

/* ------------------------------------------------------------------------------------------ filters */

enum {
    TAP = 14,
    GAP = 22,
    FILTERS_PER_ROW = 8,
    BAR_WIDTH = 200,
    MARGIN = 30
};

/** -1 blue, 0 white, 1 red. */
static color diverging(double value) { return mix(white, value < 0 ? blue : red, fmin(fabs(value), 1.0)); }

static double largest(const filter_bank *b) {
    double maximum = 1e-12;
    for (int i = 0; i < b->count * b->rows * b->columns; i++) {
        maximum = fmax(maximum, fabs(b->weights[i]));
    }
    return maximum;
}

static int filter_rows(const filter_bank *b) { return (b->count + FILTERS_PER_ROW - 1) / FILTERS_PER_ROW; }

/** A title line, then rows of a number and a filter. */
static int bank_height(const filter_bank *b) {
    return 2 * TEXT_LINE + filter_rows(b) * (b->rows * TAP + TEXT_LINE + GAP);
}

static int bank_width(const filter_bank *b) { return FILTERS_PER_ROW * (b->columns * TAP + GAP) - GAP; }

static void draw_filter(picture *p, const filter_bank *b, int filter, double scale, int x, int y) {
    char text[16];
    snprintf(text, sizeof text, "%d", filter);
    picture_text(p, x, y, TEXT_LEFT, grey, text);
    for (int r = 0; r < b->rows; r++) {
        for (int c = 0; c < b->columns; c++) {
            const double value = b->weights[(filter * b->rows + r) * b->columns + c] / scale;
            picture_rectangle(p, x + c * TAP, y + TEXT_LINE + r * TAP, TAP, TAP, diverging(value));
        }
    }
    picture_frame(p, x - 1, y + TEXT_LINE - 1, b->columns * TAP + 2, b->rows * TAP + 2, grey);
}

/** The colour scale, its ends labelled, ending at `right`. */
static void draw_bar(picture *p, double scale, int right, int y) {
    char text[16];
    snprintf(text, sizeof text, "%+.2f", scale);
    picture_text(p, right, y, TEXT_RIGHT, black, text);
    const int x = right - 6 * TEXT_ADVANCE - BAR_WIDTH;
    for (int i = 0; i < BAR_WIDTH; i++) {
        picture_rectangle(p, x + i, y - 2, 1, TEXT_HEIGHT + 4, diverging(2.0 * i / (BAR_WIDTH - 1) - 1.0));
    }
    picture_frame(p, x - 1, y - 3, BAR_WIDTH + 2, TEXT_HEIGHT + 6, grey);
    snprintf(text, sizeof text, "%+.2f", -scale);
    picture_text(p, x - TEXT_ADVANCE, y, TEXT_RIGHT, black, text);
}

static void draw_bank(picture *p, const filter_bank *b, int x, int y) {
    const double scale = largest(b);
    picture_text(p, x, y, TEXT_LEFT, black, b->title);
    draw_bar(p, scale, x + bank_width(b), y);
    for (int i = 0; i < b->count; i++) {
        const int column = i % FILTERS_PER_ROW, row = i / FILTERS_PER_ROW;
        draw_filter(p, b, i, scale, x + column * (b->columns * TAP + GAP),
                    y + 2 * TEXT_LINE + row * (b->rows * TAP + TEXT_LINE + GAP));
    }
}

bool plot_filters(const char *path, const filter_bank *banks, int bank_count) {
    int width = 0, height = MARGIN;
    for (int i = 0; i < bank_count; i++) {
        width = bank_width(&banks[i]) > width ? bank_width(&banks[i]) : width;
        height += bank_height(&banks[i]) + MARGIN / 2;
    }
    picture p;
    if (!picture_create(width + 2 * MARGIN, height, &p)) {
        return false;
    }
    for (int i = 0, y = MARGIN; i < bank_count; y += bank_height(&banks[i++]) + MARGIN / 2) {
        draw_bank(&p, &banks[i], MARGIN, y);
    }
    const bool ok = picture_save(&p, path);
    picture_free(&p);
    return ok;
}

/* ----------------------------------------------------------------------------------------- mistakes */

enum {
    PIXEL = 18,
    MISTAKES_PER_ROW = 4,
    CELL_WIDTH = 250,
    CELL_HEIGHT = 8 * PIXEL + 3 * TEXT_LINE + 20
};

static void draw_mistake(picture *p, const mistake *m, int x, int y) {
    char text[48];
    for (int i = 0; i < DIGITS_PIXELS; i++) {
        picture_rectangle(p, x + i % DIGITS_SIDE * PIXEL, y + i / DIGITS_SIDE * PIXEL, PIXEL, PIXEL,
                          mix(white, black, m->image[i]));
    }
    picture_frame(p, x - 1, y - 1, DIGITS_SIDE * PIXEL + 2, DIGITS_SIDE * PIXEL + 2, grey);
    snprintf(text, sizeof text, "true %d", m->label);
    picture_text(p, x, y + DIGITS_SIDE * PIXEL + 12, TEXT_LEFT, blue, text);
    snprintf(text, sizeof text, "predicted %d (%.0f %%)", m->prediction, 100.0 * m->probability);
    picture_text(p, x, y + DIGITS_SIDE * PIXEL + 12 + TEXT_LINE, TEXT_LEFT, red, text);
}

bool plot_mistakes(const char *path, const mistake *mistakes, int count, int wrong, int total) {
    char title[96];
    snprintf(title, sizeof title, "Held-out digits read wrongly: %d of %d%s", wrong, total,
             wrong > count ? " (the first ones)" : "");
    const int rows = (count + MISTAKES_PER_ROW - 1) / MISTAKES_PER_ROW;
    const int columns = rows > 1 ? MISTAKES_PER_ROW : count > 2 ? count : 2;
    picture p;
    if (!picture_create(2 * MARGIN + columns * CELL_WIDTH, 2 * MARGIN + 2 * TEXT_LINE + rows * CELL_HEIGHT, &p)) {
        return false;
    }
    picture_text(&p, MARGIN, MARGIN, TEXT_LEFT, black, title);
    for (int i = 0; i < count; i++) {
        draw_mistake(&p, &mistakes[i], MARGIN + i % MISTAKES_PER_ROW * CELL_WIDTH,
                     MARGIN + 2 * TEXT_LINE + i / MISTAKES_PER_ROW * CELL_HEIGHT);
    }
    const bool ok = picture_save(&p, path);
    picture_free(&p);
    return ok;
}
