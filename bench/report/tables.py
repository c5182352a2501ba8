# SPDX-License-Identifier: Apache-2.0
"""Numbers, conditions of measurement and tables as Markdown."""
import re


def number(value):
    return "%.3g" % value if value < 1000 else "%.0f" % value


def ratio_text(ratio):
    """Two digits, bold if we are faster."""
    return "**%.2f**" % ratio if ratio >= 1 else "%.2g" % ratio


def short(ratio):
    return "%.2g" % ratio if ratio < 99.5 else "%.0f" % ratio


def joined(lines):
    """The distinct items of comma-separated lists. Commas in parentheses do not separate."""
    return ", ".join(dict.fromkeys(item for line in lines for item in re.split(r", (?![^(]*\))", line)))


def conditions_text(runs):
    """The distinct commits, devices and libraries, and the ways of timing if there are at most two."""
    lines = list(dict.fromkeys(line for run in runs for line in run.conditions))
    of = lambda head: [line[len(head):] for line in lines if line.startswith(head)]
    made = sorted({tuple(reversed(line.rsplit(", commit ", 1)[1].split(", "))) for line in of("suite ")
                   if ", commit " in line})
    commits, days = dict.fromkeys(commit for _, commit in made), [day for day, _ in made]
    parts = ["commit%s %s" % ("s" * (len(commits) > 1), ", ".join(commits)) if commits else "",
             " to ".join(dict.fromkeys(days[:1] + days[-1:])), joined(of("device: ")), joined(of("libraries: "))]
    notes = [line for line in lines if not line.startswith(("suite ", "device: ", "libraries: "))]
    ways = [line for line in notes if line.startswith("median")]
    parts += notes if len(ways) <= 2 else ["%d ways of timing, each at the head of its results in bench/results"
                                           % len(ways)]
    return ["Measured with: %s." % "; ".join(part for part in parts if part), ""]


TEXTS = {"suite", "case", "precision", "layout", "pass", "kernel", "worst", "best"}


def table(runs, heads, rows):
    """A table in Markdown. Columns of numbers are aligned to the right."""
    rule = "".join("---|" if head in TEXTS else "---:|" for head in heads)
    return conditions_text(runs) + ["| %s |" % " | ".join(heads), "|" + rule,
                                    *("| %s |" % " | ".join(row) for row in rows)]


def class_heads(runs):
    """Columns for the class, if there is more than one class."""
    several = any(run.precision != "fp32" or run.layout != "first" for run in runs)
    return (["precision", "layout"], lambda run: [run.precision, run.layout]) if several else ([], lambda run: [])
