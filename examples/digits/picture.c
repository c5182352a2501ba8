/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"

#include "font.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool picture_create(int width, int height, picture *p) {
    const size_t bytes = (size_t)width * (size_t)height * sizeof *p->pixels;
    *p = (picture){.width = width, .height = height, .pixels = malloc(bytes)};
    if (!p->pixels) {
        fprintf(stderr, "train_digits: out of memory for a picture of %d x %d\n", width, height);
        return false;
    }
    memset(p->pixels, 255, bytes);
    return true;
}

void picture_free(picture *p) {
    free(p->pixels);
    *p = (picture){0};
}

bool picture_save(const picture *p, const char *path) {
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)p->width,
                       .height = (png_uint_32)p->height,
                       .format = PNG_FORMAT_RGB};
    if (!png_image_write_to_file(&image, path, 0, p->pixels, 0, NULL)) {
        fprintf(stderr, "train_digits: cannot write %s: %s\n", path, image.message);
        return false;
    }
    return true;
}

/** Mix a colour into a pixel: share 0 leaves it as it is, 1 replaces it. */
static void blend(picture *p, int x, int y, color c, double share) {
    if (x < 0 || x >= p->width || y < 0 || y >= p->height) {
        return;
    }
    color *old = &p->pixels[y * p->width + x];
    old->red = (unsigned char)lround(old->red + share * (c.red - old->red));
    old->green = (unsigned char)lround(old->green + share * (c.green - old->green));
    old->blue = (unsigned char)lround(old->blue + share * (c.blue - old->blue));
}

void picture_rectangle(picture *p, int x, int y, int width, int height, color c) {
    for (int j = y; j < y + height; j++) {
        for (int i = x; i < x + width; i++) {
            blend(p, i, j, c, 1.0);
        }
    }
}

void picture_frame(picture *p, int x, int y, int width, int height, color c) {
    picture_rectangle(p, x, y, width, 1, c);
    picture_rectangle(p, x, y + height - 1, width, 1, c);
    picture_rectangle(p, x, y, 1, height, c);
    picture_rectangle(p, x + width - 1, y, 1, height, c);
}

void picture_line(picture *p, double x0, double y0, double x1, double y1, double width, color c) {
    const double dx = x1 - x0, dy = y1 - y0, length2 = fmax(dx * dx + dy * dy, 1e-12);
    const int left = (int)floor(fmin(x0, x1) - width), right = (int)ceil(fmax(x0, x1) + width);
    const int top = (int)floor(fmin(y0, y1) - width), bottom = (int)ceil(fmax(y0, y1) + width);
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            /* How far along the line the nearest point lies, then how far away it is. */
            const double t = fmin(fmax(((x - x0) * dx + (y - y0) * dy) / length2, 0.0), 1.0);
            const double distance = hypot(x - x0 - t * dx, y - y0 - t * dy);
            blend(p, x, y, c, fmin(fmax(width / 2 + 0.5 - distance, 0.0), 1.0));
        }
    }
}

static bool font_dot(char character, int row, int column) {
    const int index = character < 32 || character > 126 ? '?' - 32 : character - 32;
    return font[index / FONT_PER_LINE][row][index % FONT_PER_LINE * FONT_WIDTH + column] != ' ';
}

void picture_text(picture *p, int x, int y, text_anchor anchor, color c, const char *text) {
    const int scale = TEXT_ADVANCE / FONT_WIDTH, width = (int)strlen(text) * TEXT_ADVANCE - scale;
    const int left = anchor == TEXT_LEFT ? x : anchor == TEXT_RIGHT ? x - width : x - width / 2;
    for (int i = 0; text[i]; i++) {
        for (int row = 0; row < FONT_HEIGHT; row++) {
            for (int column = 0; column < FONT_WIDTH; column++) {
                if (font_dot(text[i], row, column)) {
                    picture_rectangle(p, left + i * TEXT_ADVANCE + column * scale, y + row * scale, scale, scale, c);
                }
            }
        }
    }
}
