/* SPDX-License-Identifier: Apache-2.0 */
/* An RGB picture to draw on, and its PNG file. Coordinates are pixels from the upper left corner. */
#ifndef PICTURE_H
#define PICTURE_H

#include <stdbool.h>

typedef struct color {
    unsigned char red, green, blue;
} color;

typedef struct picture {
    int width, height;
    color *pixels; /* [height][width] */
} picture;

/** A white picture. False: a message was written to stderr. */
bool picture_create(int width, int height, picture *p);

void picture_free(picture *p);

/** Write a PNG file. False: a message was written to stderr. */
bool picture_save(const picture *p, const char *path);

void picture_rectangle(picture *p, int x, int y, int width, int height, color c);

/** The outline of a rectangle, one pixel wide, inside it. */
void picture_frame(picture *p, int x, int y, int width, int height, color c);

/** A straight line with smooth edges. */
void picture_line(picture *p, double x0, double y0, double x1, double y1, double width, color c);

/** Where x lies within a text. */
typedef enum text_anchor {
    TEXT_LEFT,
    TEXT_CENTER,
    TEXT_RIGHT
} text_anchor;

/** Size of text in pixels: of a capital letter, and from one letter or line to the next. */
enum {
    TEXT_HEIGHT = 14,
    TEXT_ADVANCE = 12,
    TEXT_LINE = 22
};

/** y is the upper edge. */
void picture_text(picture *p, int x, int y, text_anchor anchor, color c, const char *text);

#endif
