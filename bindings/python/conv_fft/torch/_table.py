# SPDX-License-Identifier: Apache-2.0
"""What convert() returns: a table of layers, and why each was changed or left."""
from __future__ import annotations

import sys
from typing import List


class Row:
    """One layer of a table.

    name, layer     its name in the model, and its type with its parameters
    decision, why   "changed" or "kept", and the reason
    torch_ms, ours_ms           device milliseconds of both (on a CPU: of a call); None: not measured
    torch_host_ms, ours_host_ms     host milliseconds of a call on a GPU; None: not measured
    predicted_ms    milliseconds of ours by a tuning record or the cost model; None: not asked
    earlier         whether an earlier run has measured these times"""

    def __init__(self, name, layer):
        self.name, self.layer, self.decision, self.why = name, layer, "kept", ""
        self.torch_ms = self.ours_ms = self.torch_host_ms = self.ours_host_ms = self.predicted_ms = None
        self.earlier = False

    def __repr__(self):
        return "Row(%r, %s: %s)" % (self.name, self.decision, self.why)


class Conversion(list):
    """The rows of a conversion; printed, a table. `model` is the model."""

    model = None

    @property
    def changed(self) -> List[str]:
        return [row.name for row in self if row.decision == "changed"]

    def __str__(self):
        def ms(value, earlier):
            return "" if value is None else "%.3f%s" % (value, "*" if earlier else " " * any_earlier)
        any_earlier = any(row.earlier for row in self)
        lines = [("layer", "", "torch ms", "ours ms", "", "")]
        lines += [(row.name or "(the model)", row.layer, ms(row.torch_ms, row.earlier), ms(row.ours_ms, row.earlier),
                   row.decision, row.why) for row in self]
        widths = [max(len(line[column]) for line in lines) for column in range(5)]
        padded = [[cell.rjust(width) if 2 <= column < 4 else cell.ljust(width)
                   for column, (cell, width) in enumerate(zip(line, widths))] for line in lines]
        note = ["* measured by an earlier run; convert(..., again=True) measures again"] * any_earlier
        return "\n".join(["  ".join((*cells, line[5])).rstrip() for cells, line in zip(padded, lines)] + note)


def described(layer):
    text = "%s(%d, %d, %s" % (type(layer).__name__, layer.in_channels, layer.out_channels,
                              "x".join(map(str, layer.kernel_size)))
    return text + (", groups=%d)" % layer.groups if layer.groups > 1 else ")")


class Progress:
    """One line on standard error that says what convert() does. `wanted` None: only on a terminal.

    On a terminal each text replaces the one before it, and the last is removed. Elsewhere each text is a line."""

    def __init__(self, wanted=None):
        self.stream = sys.stderr
        try:
            self.terminal = bool(self.stream.isatty())
        except (AttributeError, ValueError):  # there is no standard error, or it is closed
            self.terminal, wanted = False, False
        self.active, self.last = self.terminal if wanted is None else bool(wanted), None

    def say(self, text):
        if self.active and text != self.last:
            self.last = text
            self.stream.write("\r\x1b[Kconvert: %s" % text if self.terminal else "convert: %s\n" % text)
            self.stream.flush()

    def end(self):
        if self.active and self.terminal and self.last is not None:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
