/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"
#include "plots.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const color black = {30, 30, 30}, pale = {228, 228, 228}, grey = {130, 130, 130};
static const color blue = {33, 102, 172}, orange = {230, 121, 0};

typedef struct chart {
    int x, y, width, height; /* of the plotting area */
    int epochs;
    bool logarithmic;
    double low, high;
} chart;

/** Values outside low..high are drawn at the edge. */
static double chart_y(const chart *c, double value) {
    const double v = fmin(fmax(value, c->low), c->high);
    const double share = c->logarithmic ? log(v / c->low) / log(c->high / c->low) : (v - c->low) / (c->high - c->low);
    return c->y + c->height * (1.0 - share);
}

static double chart_x(const chart *c, int epoch) {
    return c->x + c->width * (double)(epoch - 1) / (c->epochs > 1 ? c->epochs - 1 : 1);
}

static void draw_y_tick(picture *p, const chart *c, double value) {
    char text[32];
    const int y = (int)lround(chart_y(c, value));
    picture_rectangle(p, c->x, y, c->width, 1, pale);
    picture_rectangle(p, c->x - 8, y, 8, 1, black);
    snprintf(text, sizeof text, "%g", value);
    picture_text(p, c->x - 14, y - TEXT_HEIGHT / 2, TEXT_RIGHT, black, text);
}

/** Tick number i of 1, 2, 5, 10, 20, 50, ... */
static double round_number(int i) {
    static const double mantissa[3] = {1, 2, 5};
    return mantissa[((i % 3) + 3) % 3] * pow(10.0, floor(i / 3.0));
}

static void draw_y_ticks(picture *p, const chart *c) {
    if (!c->logarithmic) {
        for (double value = c->low; value <= c->high; value += (c->high - c->low) / 5) {
            draw_y_tick(p, c, value);
        }
        return;
    }
    for (int i = 3 * (int)floor(log10(c->low)); round_number(i) <= c->high; i++) {
        if (round_number(i) >= c->low) {
            draw_y_tick(p, c, round_number(i));
        }
    }
}

static void draw_x_ticks(picture *p, const chart *c) {
    int i = 0;
    while (c->epochs / round_number(i) > 10) {
        i++;
    }
    const int step = (int)round_number(i);
    for (int epoch = step; epoch <= c->epochs; epoch += step) {
        char text[32];
        const int x = (int)lround(chart_x(c, epoch));
        picture_rectangle(p, x, c->y + c->height, 1, 8, black);
        snprintf(text, sizeof text, "%d", epoch);
        picture_text(p, x, c->y + c->height + 14, TEXT_CENTER, black, text);
    }
}

static void draw_axes(picture *p, const chart *c, const char *title) {
    draw_y_ticks(p, c);
    draw_x_ticks(p, c);
    picture_frame(p, c->x, c->y, c->width + 1, c->height + 1, black);
    picture_text(p, c->x, c->y - TEXT_LINE, TEXT_LEFT, black, title);
    picture_text(p, c->x + c->width / 2, c->y + c->height + 14 + TEXT_LINE, TEXT_CENTER, black, "epoch");
}

static void draw_series(picture *p, const chart *c, const double *values, color ink) {
    for (int e = 1; e <= c->epochs; e++) {
        const double x = chart_x(c, e), y = chart_y(c, values[e - 1]);
        if (e > 1) {
            picture_line(p, chart_x(c, e - 1), chart_y(c, values[e - 2]), x, y, 2, ink);
        }
        picture_line(p, x, y, x, y, 6, ink);
    }
}

/** An entry that ends at `right`. Returns where the entry to its left ends. */
static int draw_legend_entry(picture *p, int right, int y, color ink, const char *name) {
    const int left = right - (int)strlen(name) * TEXT_ADVANCE;
    picture_text(p, right, y, TEXT_RIGHT, black, name);
    picture_line(p, left - 34, y + TEXT_HEIGHT / 2.0, left - 8, y + TEXT_HEIGHT / 2.0, 3, ink);
    return left - 60;
}

static void draw_legend(picture *p, const chart *c) {
    const int y = c->y - TEXT_LINE;
    const int right = draw_legend_entry(p, c->x + c->width, y, orange, "held out");
    draw_legend_entry(p, right, y, blue, "training (shifted images)");
}

static void draw_loss(picture *p, chart c, const history *h) {
    c.logarithmic = true;
    c.low = c.high = h->train_loss[0];
    for (int e = 0; e < h->epochs; e++) {
        c.low = fmin(c.low, fmin(h->train_loss[e], h->held_out_loss[e]));
        c.high = fmax(c.high, fmax(h->train_loss[e], h->held_out_loss[e]));
    }
    c.low = fmax(c.low / 1.2, 1e-9);
    c.high = fmax(c.high * 1.2, 10.0 * c.low);
    draw_axes(p, &c, "cross-entropy loss");
    draw_legend(p, &c);
    draw_series(p, &c, h->train_loss, blue);
    draw_series(p, &c, h->held_out_loss, orange);
}

static void draw_accuracy(picture *p, chart c, const history *h, double required) {
    c.low = 90.0;
    c.high = 100.0;
    draw_axes(p, &c, "accuracy, % (cut at 90)");
    draw_legend(p, &c);
    const double y = chart_y(&c, required);
    for (int x = c.x; x + 8 <= c.x + c.width; x += 16) {
        picture_line(p, x, y, x + 8, y, 1.5, grey);
    }
    picture_text(p, c.x + c.width - 10, (int)y + 8, TEXT_RIGHT, grey, "required");
    draw_series(p, &c, h->train_accuracy, blue);
    draw_series(p, &c, h->held_out_accuracy, orange);
}

bool plot_history(const char *path, const history *h, double required) {
    picture p;
    if (!picture_create(1000, 1000, &p)) {
        return false;
    }
    const chart upper = {.x = 90, .y = 50, .width = 870, .height = 380, .epochs = h->epochs};
    chart lower = upper;
    lower.y += 490;
    draw_loss(&p, upper, h);
    draw_accuracy(&p, lower, h, required);
    const bool ok = picture_save(&p, path);
    picture_free(&p);
    return ok;
}
