#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the loss curves that train.py writes, with a panel for each network, as SVG. It needs only Python.

    python curves.py build/examples/losses.csv build/examples/losses.svg"""
import csv
import pathlib
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP = 330, 190, 46, 34  # of a panel's axes, and what lies left of and above them
STYLES = {"torch": 'stroke="#b4b9be" stroke-width="4"', "conv_fft": 'stroke="#d1495b" stroke-width="1.4"'}


def read(path):
    """{network: {whose layers: (milliseconds of a step, losses)}}, and the comment lines."""
    lines = pathlib.Path(path).read_text().splitlines()
    found = {}
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        losses = [float(loss) for loss in row["losses"].split()]
        found.setdefault(row["model"], {})[row["layers"]] = float(row["step_ms"]), losses
    return found, [line[1:].strip() for line in lines if line.startswith("#")]


def _ticks(low, high):
    """At most six round numbers between two numbers."""
    span, step = high - low, 1e-6
    for factor in (2, 2.5, 2) * 9:
        if span / step <= 5:
            break
        step *= factor
    first = int(-(-low // step))
    return [k * step for k in range(first, int(high // step) + 1)]


def _panel(name, curves, x0, y0):
    steps = max(len(losses) for _, losses in curves.values())
    top = max(max(losses) for _, losses in curves.values())
    bottom = min(0.0, *(min(losses) for _, losses in curves.values()))
    across = lambda step: x0 + LEFT + WIDTH * step / max(steps - 1, 1)  # noqa: E731
    down = lambda loss: y0 + TOP + HEIGHT * (top - loss) / ((top - bottom) or 1)  # noqa: E731
    parts = ['<text x="%d" y="%d" font-weight="bold">%s</text>' % (x0 + LEFT, y0 + 20, escape(name))]
    for tick in _ticks(bottom, top):
        parts.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#dddddd"/>'
                     % (x0 + LEFT, down(tick), x0 + LEFT + WIDTH, down(tick)))
        parts.append('<text x="%d" y="%.1f" text-anchor="end">%g</text>'
                     % (x0 + LEFT - 6, down(tick) + 4, round(tick, 9)))
    for tick in _ticks(0, steps - 1):
        parts.append('<text x="%.1f" y="%d" text-anchor="middle">%g</text>'
                     % (across(tick), y0 + TOP + HEIGHT + 16, tick))
    for number, (whose, style) in enumerate(STYLES.items()):
        ms, losses = curves[whose]
        points = " ".join("%.1f,%.1f" % (across(step), down(loss)) for step, loss in enumerate(losses))
        parts.append('<polyline points="%s" fill="none" %s/>' % (points, style))
        y = y0 + 12 + 15 * number
        parts.append('<line x1="%d" y1="%d" x2="%d" y2="%d" %s/>'
                     % (x0 + LEFT + 150, y - 4, x0 + LEFT + 172, y - 4, style))
        parts.append('<text x="%d" y="%d">%s, %.2f ms a step</text>' % (x0 + LEFT + 178, y, escape(whose), ms))
    return parts


def draw(source, target):
    """The picture of a file of losses."""
    found, comments = read(source)
    columns = min(2, len(found))
    rows = -(-len(found) // columns)
    width, height = columns * (WIDTH + LEFT + 24), rows * (HEIGHT + TOP + 30) + 24
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" '
             'font-family="sans-serif" font-size="12">' % (width, height, width, height),
             '<rect width="100%" height="100%" fill="white"/>']
    for number, (name, curves) in enumerate(found.items()):
        parts += _panel(name, curves, number % columns * (WIDTH + LEFT + 24), number // columns * (HEIGHT + TOP + 30))
    parts.append('<text x="%d" y="%d" fill="#555555">loss by step; %s</text></svg>'
                 % (LEFT, height - 8, escape("; ".join(comments))))
    pathlib.Path(target).write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    draw(*sys.argv[1:])
