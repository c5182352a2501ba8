# SPDX-License-Identifier: Apache-2.0
"""Tables of CPUs only: layers beside other programs (bench_busy, in busy.csv), and the goals with what was measured."""
import csv
import re

from results import geometric_mean, read_results
from tables import number

# Case of suite torch-mixed, and the least time of torch over ours: forward, and forward and both gradients together.
TORCH_GOALS = [("dense-k5", 0.8, 0.9), ("dense-k3", 0.8, 0.9), ("L2", 1.2, 1.3), ("L3", 1.2, 1.3), ("L4", 0.8, 0.9),
               ("dense-k15", 1.2, 1.3), ("depthwise-k7", 1, 2), ("depthwise-k13", 1, 4), ("depthwise-k31", 0.8, 0.9),
               ("3d-k5", 0.9, 1), ("1d-k25", 0.8, 0.9)]
# Suite on two threads, and the least time of oneDNN with layouts of its own over ours, in the geometric mean.
ONEDNN_GOALS = [("table4", 0.8), ("nets", 0.8), ("depthwise", 1.5)]
BUSY_GOAL = 1.2
PASSES = ["fprop", "bprop", "accgrad", "backward"]


def read_busy(path):
    """The conditions, and for each layer and pass its times with one and two threads by the number of programs."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    layers = {}
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        times = float(row["one_thread_ms"]), float(row["two_threads_ms"])
        layers.setdefault((row["layer"], row["pass"]), {})[int(row["programs"])] = times
    return [line.lstrip("# ") for line in lines if line.startswith("#")], layers


def busy_lines(path):
    conditions, layers = read_busy(path)
    if not layers:
        return ["No results yet."]
    counts = sorted({programs for times in layers.values() for programs in times})
    lines = ["Measured with: %s." % "; ".join(conditions), "",
             "| layer | pass | %s |" % " | ".join("programs: %d" % count for count in counts),
             "|---|---|%s" % ("---|" * len(counts))]
    for (layer, passname), times in layers.items():
        cells = ["%s, %s: %.2f" % (*map(number, times[count]), times[count][1] / times[count][0])
                 if count in times else "-" for count in counts]
        lines.append("| `%s` | %s | %s |" % (layer, passname, " | ".join(cells)))
    return lines


def goal_line(of, name, goal, result, is_most=False):
    """A row. The goal is the least result, or the most."""
    text = "-" if result is None else "%.3f" % result if abs(result - goal) < 0.005 else "%.2f" % result
    is_good = result is not None and (result <= goal if is_most else result >= goal)
    reached = "not measured" if result is None else "yes" if is_good else "**no**"
    return "| %s | %s | at %s %g | %s | %s |" % (of, name, "most" if is_most else "least", goal, text, reached)


def torch_ratios(runs, case):
    """The time of torch over ours: forward, and forward and both gradients."""
    passes = {run.passname: run for run in runs if re.fullmatch(re.escape(case) + r"(-b\d+)?", run.case)}
    if not {"fprop", "backward"} <= passes.keys():
        return None, None
    both = [passes["fprop"], passes["backward"]]
    return both[0].ratio(), sum(run.ms["torch"] for run in both) / sum(run.ms[run.ours()] for run in both)


def goals_lines(folder, other):
    """Markdown: a line for each goal. `folder` has the results on two threads, `other` those beside torch."""
    lines = ["| what | layer or suite | goal | result | reached |", "|---|---|---|---:|---|"]
    runs = read_results(other, lambda path: path.stem == "torch")
    for case, *goals in TORCH_GOALS:
        for name, goal, ratio in zip(("forward", "forward and both gradients"), goals, torch_ratios(runs, case)):
            lines.append(goal_line("time of torch / ours", "%s, %s" % (case, name), goal, ratio))
    runs = [run for run in read_results(folder) if "onednn-blocked" in run.ms]
    for suite, goal in ONEDNN_GOALS:
        ratios = {name: [run.ms["onednn-blocked"] / run.ms[run.ours()] for run in runs
                         if run.suite == suite and run.passname == name] for name in PASSES}
        for name, values in [*ratios.items(), ("all passes", sum(ratios.values(), []))]:
            lines.append(goal_line("time of oneDNN with its layouts / ours, mean", "%s, %s" % (suite, name), goal,
                                   geometric_mean(values) if values else None))
    layers = read_busy(folder / "busy.csv")[1]
    for count in sorted({count for times in layers.values() for count in times} - {0}):
        worst = max(times[count][1] / times[count][0] for times in layers.values() if count in times)
        lines.append(goal_line("time of two threads / one, worst of %d" % len(layers), "busy programs: %d" % count,
                               BUSY_GOAL, worst, is_most=True))
    return lines
