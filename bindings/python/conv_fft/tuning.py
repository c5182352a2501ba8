# SPDX-License-Identifier: Apache-2.0
"""Tuning measures strategies once, so that every later plan of this user finds the fastest (docs/tuning.md)."""
from __future__ import annotations

import contextlib
import ctypes
import os
import re
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from . import _measuring
from . import _structs as structs
from . import plan as _plan
from ._context import context, name_wheel_folders
from ._library import check, lib, lock, report
from ._values import integer, named
from .errors import InvalidArgument
from .problem import Problem, as_problem

_HERE = Path(__file__).resolve()
_FOLDERS = (_HERE.parent / "share" / "conv_fft", *_HERE.parents[3:4])  # of an installed package, of a source tree
#: The folder of networks/ and tuning/ that came with the package, or None.
data_folder: Optional[str] = next((str(folder) for folder in _FOLDERS if (folder / "networks").is_dir()), None)

Problems = Union[str, os.PathLike, Iterable[Union[Problem, str]]]
_IN_FIELD = re.compile(r"(?:^|\s)in=")
_MEASURING = {mode: structs.TUNINGS[mode] for mode in ("measure", "exhaustive")}


def _file_of(name):
    """A file of that name; if there is none, the one in data_folder."""
    installed = os.path.join(data_folder or "", name)
    return name if os.path.exists(name) or not os.path.exists(installed) else installed


def read_problems(problems: Problems) -> Tuple[List[Problem], Optional[Exception]]:
    """The problems of a problem line, of a file of such lines, or of an iterable of Problem and lines; and None, or an
    error that names each line that is no problem. A text with a field in= is a line, any other the name of a file."""
    listed, read = [], as_problem
    if isinstance(problems, str) and _IN_FIELD.search(problems):
        listed = [("problems", problems)]
    elif isinstance(problems, (str, os.PathLike)):
        with open(_file_of(problems), "rb") as file:
            lines = enumerate(file.read().split(b"\n"), 1)
        listed = [("%s:%d" % (os.fspath(problems), number), line) for number, line in lines
                  if b"\0" in line or line.partition(b"#")[0].strip()]
        if not listed:
            raise ValueError("%s: there is no problem line" % os.fspath(problems))
        read = _of_file
    else:
        listed = [("problems[%d]" % number, problem) for number, problem in enumerate(problems)]
    good, bad = [], []
    for place, problem in listed:
        try:
            good.append(read(problem))
        except ValueError as error:  # InvalidArgument is one, too
            bad.append("%s: %s" % (place, error))
    return good, InvalidArgument("; ".join(bad)) if bad else None


def _of_file(line):
    """The problem of a line of a file. Only its comment may have other bytes than plain text."""
    text = line.partition(b"#")[0]
    wrong = re.search(rb"[^ -~\t\v\f\r]", text) or re.search(rb"\0", line)
    if wrong:
        raise ValueError("there is a byte 0x%02x, which is not of a plain text" % wrong[0][0])
    return as_problem(text.decode("ascii"))


def tune(problems: Problems, device: Union[str, int] = "auto", *, mode: str = "measure", milliseconds: int = 0,
         again: bool = False, workspace_limit: int = 0,
         progress: Optional[Callable[[int, int], Any]] = None) -> Dict[str, Any]:
    """Measure strategies for layers and keep the records of the fastest in the cache directory and in this process.

    problems        a problem line, a file of such lines, or an iterable of Problem and lines. A relative name that
                    does not exist is looked for in conv_fft.data_folder: "networks/vgg16.txt"
    device          that of Plan
    mode            "measure": the most promising few; "exhaustive": all that are not hopeless
    milliseconds    time limit for each problem, which forward and the gradients share equally; 0: 10,000 for
                    "measure", no limit for "exhaustive". A RuntimeWarning names what was not measured
    again           measure even if there is a record
    progress        called with (done, total) before the first problem, after each, and often in between; if it returns
                    True (conv_fft.Cancelled) or raises, tuning ends within one step of a search
    workspace_limit bytes that no strategy may exceed; 0: no limit
    Ctrl-C in the main thread ends the tuning at once. What was measured so far stays. A step of a search that runs
    then is finished in the background.
    A problem that fails does not stop the others; the first failure is raised in the end, as conv_fft.Error. Nor does
    a line that is not a problem: in the end conv_fft.InvalidArgument names each with its file and line number.

    Returns a dict with the figures of `conv-fft tune`:
    rows            for each different problem without element strides a dict for forward and one for both gradients.
                    Keys: problem, passes (bits: 1 forward, 2 backward data, 4 backward weights), strategy (lines
                    joined by "; "), ms, model_ms (of the cost model's choice), baseline_ms (of the best algorithm of
                    another library), workspace_bytes. What is not known is None: strategy and all times of a row
                    without a record
    step_ms         the sum of the times: one training step of the problems, each counted once
    tuned           the number of rows with a record
    model, baseline over the rows with both times: a dict with speedup, tuned_ms, other_ms (sums of milliseconds) and
                    rows; None: there is none"""
    listed, bad = read_problems(problems)
    array = (structs.Problem * len(listed))(*(problem.struct for problem in listed))
    options = structs.PlanOptions()
    check(lib.conv_fft_plan_options_init(ctypes.byref(options)))
    options.tuning, options.tune_milliseconds = named(_MEASURING, mode, "mode"), integer(milliseconds, "milliseconds")
    options.tune_again = bool(again)
    options.workspace_limit = integer(workspace_limit, "workspace_limit", 0, 2 ** 64 - 1)
    handle = context(device).handle

    def run(callback):
        step = structs.TuneProgress(lambda done, total, _: callback(done, total))
        check(lib.conv_fft_tune_problems(handle, array, len(listed), ctypes.byref(options), step, None))

    try:
        _measuring.call(run, options, progress)
        rows = _rows_of(listed, handle, options)
    finally:
        forget_plans()  # older plans would keep their strategies; an interrupted call has some records, too
    if bad:
        raise bad
    return {"rows": rows, "step_ms": sum(row["ms"] or 0.0 for row in rows),
            "tuned": sum(row["ms"] is not None for row in rows),
            **{name: _comparison(rows, name + "_ms") for name in ("model", "baseline")}}


def _comparison(rows, other):
    """The gain over the rows that have the time `other`; None: there is none."""
    both = [row for row in rows if row[other] is not None]
    if not both:
        return None
    tuned_ms, other_ms = sum(row["ms"] for row in both), sum(row[other] for row in both)
    return {"speedup": other_ms / tuned_ms, "tuned_ms": tuned_ms, "other_ms": other_ms, "rows": len(both)}


def _rows_of(problems, handle, options):
    """The records that plans of these problems take. Name the sets of passes whose searches ended without one."""
    found, measured, limit = {}, set(), options.workspace_limit
    of_limit = limit and 1 << limit.bit_length() - 1  # docs/tuning.md: the key of a record

    def visit(pointer, _):
        r = pointer.contents
        key = r.problem.decode(), r.pass_
        fits = r.workspace_class in (0, of_limit) and (not limit or r.workspace_bytes <= limit)
        if r.keep or not fits:
            return 0
        if r.tuning >= options.tuning:
            measured.add(key)
        if key not in found or r.workspace_class:  # a record of the limit is taken before one without a limit
            found[key] = {"strategy": r.strategy.decode(), "ms": r.ms,
                          "model_ms": r.model_ms if r.model_ms >= 0 else None,
                          "baseline_ms": r.direct_ms if r.direct_ms >= 0 else None,
                          "workspace_bytes": r.workspace_bytes}
        return 0

    check(lib.conv_fft_tune_foreach(handle, structs.TuneVisit(visit), None))
    # Problems with strides have no records: the line does not name the strides.
    keys = [(problem.line, passes) for problem in problems if not any(
        any(getattr(problem.struct, field)) for field in ("x_stride", "y_stride", "w_stride"))
        for passes in (structs.FORWARD, structs.BACKWARD)]
    batches = {problem.line: problem.struct.batch for problem in problems}
    missing = ["%s of %s" % ("forward" if passes == structs.FORWARD else "backward", line)
               for line, passes in dict.fromkeys(keys) if batches[line] and (line, passes) not in measured]
    if missing:
        warnings.warn("conv_fft.tune: %d not measured: %s; a larger milliseconds gives more time"
                      % (len(missing), "; ".join(missing[:8]) + ("; ..." if len(missing) > 8 else "")),
                      RuntimeWarning, stacklevel=3)
    unknown = dict.fromkeys(("strategy", "ms", "model_ms", "baseline_ms", "workspace_bytes"))
    return [{"problem": line, "passes": passes, **found.get((line, passes), unknown)}
            for line, passes in dict.fromkeys(keys)]


def candidates(problem: Union[Problem, str], device: Union[str, int] = "auto", *, mode: str = "off",
               milliseconds: int = 0, passes: Union[str, int] = "all",
               own_kernels: bool = False) -> List[Dict[str, Any]]:
    """The strategies for a problem, as dicts; for each set of passes the best comes first.

    passes and device are those of Plan. own_kernels leaves out the algorithms of cuDNN, which have no prediction.
    Keys: passes, strategy, predicted_ms, measured_ms (milliseconds; None unless mode is "measure" or "exhaustive"),
    workspace_bytes and verdict. Ctrl-C is as in `tune`. Raises conv_fft.Error."""
    problem = as_problem(problem)
    options = structs.PlanOptions()
    check(lib.conv_fft_plan_options_init(ctypes.byref(options)))
    options.tuning = named(structs.TUNINGS, mode, "mode")
    options.tune_milliseconds = integer(milliseconds, "milliseconds")
    passes = named(structs.PASSES, passes, "passes") if isinstance(passes, str) else passes
    options.passes = integer(passes, "passes", 1, structs.ALL_PASSES)
    options.own_kernels = bool(own_kernels)
    handle, found = context(device).handle, []

    def visit(pointer, _):
        c = pointer.contents
        found.append({"passes": c.pass_, "strategy": c.strategy.decode(), "predicted_ms": _plan._known(c.predicted_ms),
                      "measured_ms": _plan._known(c.measured_ms), "workspace_bytes": c.workspace_bytes,
                      "verdict": (c.verdict or b"").decode()})
        return 0

    _measuring.call(lambda _: check(lib.conv_fft_tune_candidates(handle, ctypes.byref(problem.struct),
                                                                 ctypes.byref(options), structs.CandidateVisit(visit),
                                                                 None)), options)
    return found


forgetters = []


def forget_plans():
    """Drop the plans that calls and layers hold, so that they make new ones. A layer drops its own in its next call."""
    _plan.plans.clear()
    for forget in forgetters:
        forget()


@contextlib.contextmanager
def autotune(mode: str = "measure", milliseconds: int = 0) -> Iterator[None]:
    """Within this, a new plan measures strategies if it has no record. Run the model once, forward and backward.

        with conv_fft.autotune():
            model(x).sum().backward()

    mode and milliseconds are those of `tune`, and so is Ctrl-C, for plans that the main thread makes. All
    threads are affected; of several at once the last one begun counts."""
    named(_MEASURING, mode, "mode")
    mine = {"tuning": mode, "tune_milliseconds": integer(milliseconds, "milliseconds")}
    with lock:
        _plan.tunings.append(mine)
    try:
        forget_plans()
        yield
    finally:
        with lock:  # other threads remove their own
            _plan.tunings[:] = [other for other in _plan.tunings if other is not mine]


def devices() -> str:
    """A report for people: the CUDA libraries and GPUs that were found, or what is missing and how to get it."""
    name_wheel_folders()
    return report(lib.conv_fft_devices_report)
