# SPDX-License-Identifier: Apache-2.0
"""Reads the results of bench_conv and bench_fft for report.py and plot.py."""
import csv
import math
import pathlib
import re

COLUMNS = "suite,case,pass,precision,layout,impl,ms,workspace_bytes,rel_l2,strategy".split(",")
SUITES = ["fft", "table4", "nets", "mixed", "dense16", "grid", "volumes", "signals", "depthwise", "causal", "longconv",
          "torch-mixed", "torch-table4", "torch-nets", "torch-depthwise", "torch-longconv", "steps"]
PASSES = ["fprop", "bprop", "accgrad", "backward", "r2c", "c2r", "c2c", "forward", "forward-graph", "bprop-graph",
          "accgrad-graph", "training", "training-graph", "step", "step-graph", "step-gpus1", "step-gpus2"]
HALVES = ["bprop", "accgrad"]
PRECISIONS = ["fp32", "tf32", "fp16", "bf16", "fp64"]
KINDS = {"1d": "1-D", "2d": "2-D", "padded": "of padded planes", "fm": "frequency-major, against a copy", "3d": "3-D",
         "other": "complex, FP64", "half": "complex, FP16"}
OF_NETS = ["alexnet", "overfeat_fast"]
FACTS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "gpus"
NETWORKS = pathlib.Path(__file__).resolve().parents[2] / "networks"
OUR_FAMILIES = ["staged", "fused", "long1d", "toeplitz", "dft", "implicit_gemm", "spatial"]
LONG_GRID = 40  # cases


class Run:
    """One case, pass, precision and layout: milliseconds and errors by implementation."""

    def __init__(self, row, conditions=()):
        self.suite, self.case, self.passname = row["suite"], row["case"], row["pass"]
        self.precision, self.layout = row["precision"], row["layout"]
        self.conditions = conditions
        self.ms, self.error, self.strategy = {}, {}, {}
        self.stages = []  # of ours, by its profile: name, milliseconds, bytes, operations, strategy

    def add(self, row):
        if row["impl"].startswith("stage "):
            budget = re.fullmatch(r"(\d+) bytes (\d+) operations of (.*)", row["strategy"])
            self.stages.append((row["impl"].removeprefix("stage "), float(row["ms"]), int(budget[1]), int(budget[2]),
                                budget[3]))
            return
        self.ms[row["impl"]] = float(row["ms"])
        self.error[row["impl"]] = float(row["rel_l2"])
        self.strategy[row["impl"]] = row["strategy"]

    def ours(self):
        """Name of our implementation: the tuned one, else the fastest family; None if there is none."""
        if "tuned" in self.ms and self.strategy["tuned"].split(" ")[0] in OUR_FAMILIES:
            return "tuned"
        names = [name for name in ["ours", *("ours-" + family for family in OUR_FAMILIES)] if name in self.ms]
        return min(names, key=self.ms.get, default=None)

    def layer(self):
        return self.suite, self.case, self.precision, self.layout

    def group(self):
        """The suite, and the class unless it is FP32 with channels first."""
        label = self.suite
        if self.kind():
            return "%s %s" % (label, KINDS.get(self.kind(), self.kind()))
        if self.precision != "fp32" or self.layout != "first":
            label += ", " + self.precision
        return label + ", channels last" if self.layout != "first" else label

    def kept(self):
        return self.passname.endswith("-kept")

    def kind(self):
        """The kind of a transform, a key of KINDS; None for layers."""
        if self.suite != "fft":
            return None
        if self.precision == "fp16":
            return "half"
        if self.passname == "c2c" or self.precision != "fp32":
            return "other"
        return "fm" if "-fm" in self.case else "padded" if "-from" in self.case else self.case[:2]

    def baselines(self):
        return [name for name in self.ms if name not in ("tuned", "choice", "copy", "unkept", "transforms")
                and not name.startswith("ours")]

    def best(self):
        """Name of the fastest baseline, or None."""
        names = [name for name in self.ms if name == "copy"] if self.kind() == "fm" else self.baselines()
        return min(names, key=self.ms.get, default=None)

    def regret(self):
        """The time of what the cost model chooses, with cuDNN's algorithms allowed, over the least time of a row."""
        chosen = self.ms.get("choice", self.ms[self.ours()])
        return chosen / min(chosen, self.ms[self.ours()], self.ms[self.best()])

    def ratio(self):
        """Above 1: we are faster than the best baseline."""
        return self.ms[self.best()] / self.ms[self.ours()]


# Files that only their own tables read: budgets of stages, tuned plans (their baselines are deterministic, too), and
# files with other columns.
OTHER_FORMS = ["stages", "tuned", "quality", "candidates", "warp", "amp_parity", "first_use", "host", "busy"]


def read_results(folder, wanted=lambda path: path.stem not in OTHER_FORMS):
    """All runs of a device in the suites' order, each with the conditions of its measurement."""
    runs = {}
    for path in filter(wanted, sorted(folder.glob("*.csv"))):
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines or lines[0].split(",") != COLUMNS:
            raise SystemExit("%s: the first line must name the columns %s" % (path, ",".join(COLUMNS)))
        conditions, in_comments = (), False
        for line in lines[1:]:
            if line.startswith("#"):
                conditions = (conditions if in_comments else ()) + (line.lstrip("# "),)
                in_comments = True
                continue
            in_comments = False
            row = dict(zip(COLUMNS, next(csv.reader([line]))))
            runs.setdefault(tuple(row[name] for name in COLUMNS[:5]), Run(row, conditions)).add(row)
    take_exact(runs)
    return in_order(list(runs.values()))


def take_exact(runs):
    """Replaces times of cuDNN in TF32 by those in FP32 if these are faster. TF32 allows FP32 algorithms, but not every
    search reached them."""
    for (suite, case, passname, precision, layout), run in runs.items():
        exact = runs.get((suite, case, passname, "fp32", layout))
        if precision == "tf32" and exact and exact.ms.get("cudnn", math.inf) < run.ms.get("cudnn", 0):
            for of in "ms", "error", "strategy":
                getattr(run, of)["cudnn"] = getattr(exact, of)["cudnn"]


def in_order(runs):
    """Sorts by suite, by a case's place in the suite's file (else its first appearance), by class, by pass."""
    def place(name, names):
        return (names.index(name), "") if name in names else (len(names), name)
    kinds = list(KINDS)
    first = {}
    for position, run in enumerate(runs):
        first.setdefault((run.suite, run.case), position)
    files = {suite: file_order(suite) for suite in {run.suite for run in runs}}

    def case_place(run):
        if run.kind() == "half":  # measured in another order
            return [int(number) for number in re.findall(r"\d+", run.case)[:2]]
        # A scaled case has the name of the full case and a suffix: L2-b1-c32.
        fitting = [i for i, name in enumerate(files[run.suite]) if run.case == name or run.case.startswith(name + "-")]
        return [fitting[-1] if fitting else len(files[run.suite]), first[run.suite, run.case]]
    return sorted(runs, key=lambda run: (place(run.suite, SUITES), place(run.kind() or "", kinds), case_place(run),
                                         place(run.precision, PRECISIONS) if not run.kind() else (0, ""), run.layout,
                                         place(run.passname, PASSES)))


def suite_files(suite):
    """The files of a suite's layers."""
    suite = suite.removeprefix("torch-")
    return [NETWORKS / (name + ".txt")
            for name in {"nets": OF_NETS, "dense16": ["dense16", *OF_NETS]}.get(suite, [suite])]


def file_order(suite):
    """The names of a suite's cases in the order of its files."""
    paths = [path for path in suite_files(suite) if path.exists()]
    words = [line.split() for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return [line[0] for line in words if line and not line[0].startswith("#")]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


# ---- limits of the device

def transform_size(run):
    """The extent and the batch of a square transform of a large batch; None for other cases."""
    match = re.fullmatch(r"[12]d-n(\d+)(?:x(\d+))?-b(\d+)", run.case)
    return (int(match[1]), int(match[3])) if match and match[2] in (None, match[1]) else None


def copy_rate(runs):
    """Bytes per second, read and written, of the fastest copy among the transforms; None if there is none."""
    rates = []
    for run in runs:
        size = transform_size(run)
        if size and "copy" in run.ms and run.passname in ("r2c", "c2r") and run.precision == "fp32":
            n, batch = size
            real, half = n ** int(run.case[0]) * 4, n ** (int(run.case[0]) - 1) * (n // 2 + 1) * 8
            rates.append(batch * (real + half) / run.ms["copy"] * 1e3)
    return max(rates, default=None)


# FP16 operations (a multiply-add counts as two) per cycle and multiprocessor, by compute capability. An FP32 product
# takes three products of FP16 numbers.
TENSOR_OPERATIONS = {"8": 2048, "9": 4096}
FP32_PRODUCTS = 3


def peak_rates(runs):
    """Operations per second of the FP32 units, and of FP32 products on tensor cores, from the properties of the device
    that the results name. Unknown rates are left out."""
    names = {line.split(": ", 1)[1].split(",")[0] for run in runs for line in run.conditions
             if line.startswith("device: ")}
    for path in sorted(FACTS.glob("*.txt")):
        facts = dict(re.findall(r"^(\w+)\s*[=:]\s*(.+)$", path.read_text(encoding="utf-8"), re.MULTILINE))
        if facts.get("name") in names and "multiprocessors" in facts and "clock_khz" in facts:
            cycles = int(facts["multiprocessors"]) * int(facts["clock_khz"]) * 1e3
            tensor = TENSOR_OPERATIONS.get(facts.get("compute_major"))
            return {"FP32 units": 2 * 128 * cycles,
                    **({"tensor cores (3 for 1)": tensor / FP32_PRODUCTS * cycles} if tensor else {})}
    return {}
