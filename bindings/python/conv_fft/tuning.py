# SPDX-License-Identifier: Apache-2.0
"""Tuning: measuring strategies once, so that every later plan of this user finds the fastest (docs/tuning.md)."""
from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Union

from . import _structs as structs
from . import plan as _plan
from ._context import context, name_wheel_folders
from ._library import check, lib, lock, report
from ._values import integer, named
from .problem import Problem, as_problem

Problems = Union[str, os.PathLike, Iterable[Union[Problem, str]]]
_MEASURING = {mode: structs.TUNINGS[mode] for mode in ("measure", "exhaustive")}


def read_problems(problems: Problems) -> List[Problem]:
    """Problems of a file of problem lines, or of an iterable of Problem and lines."""
    if isinstance(problems, (str, os.PathLike)):
        with open(problems, encoding="utf-8") as file:
            problems = [line for line in file if line.partition("#")[0].strip()]
    return [as_problem(problem) for problem in problems]


def tune(problems: Problems, device: Union[str, int] = "auto", *, mode: str = "measure", milliseconds: int = 0, again: bool = False,
         workspace_limit: int = 0, progress: Optional[Callable[[int, int], Any]] = None) -> None:
    """Measure strategies for layers and keep the records of the fastest in the cache directory and in this process.

    problems        a file of problem lines (networks/*.txt), or an iterable of Problem and lines
    device          that of Plan
    mode            "measure": the most promising few; "exhaustive": all that are not hopeless
    milliseconds    for each problem; 0: 10,000 for "measure", no bound for "exhaustive"
    again           measure even where there is a record
    progress        called with (done, total) before the first, after each and again and again in between; cancels by returning
                    True (conv_fft.Cancelled) or by raising, within a step of a search
    workspace_limit bytes that no strategy may exceed; 0: no limit
    A problem that fails does not stop the others; the first failure is raised in the end, as conv_fft.Error. Raises
    conv_fft.InvalidArgument at once for a line that is no problem."""
    listed = read_problems(problems)
    array = (structs.Problem * len(listed))(*(problem.struct for problem in listed))
    options = structs.PlanOptions()
    check(lib.conv_fft_plan_options_init(ctypes.byref(options)))
    options.tuning, options.tune_milliseconds = named(_MEASURING, mode, "mode"), integer(milliseconds, "milliseconds")
    options.tune_again, options.workspace_limit = bool(again), integer(workspace_limit, "workspace_limit", 0, 2 ** 64 - 1)
    raised = []
    step = structs.TuneProgress(_guarded(lambda done, total, _: bool(progress and progress(done, total)), raised))
    status = lib.conv_fft_tune_problems(context(device).handle, array, len(listed), ctypes.byref(options), step, None)
    if raised:
        raise raised[0]
    check(status)
    # Plans made before would go on with what they have.
    forget_plans()


def candidates(problem: Union[Problem, str], device: Union[str, int] = "auto", *, mode: str = "off",
               milliseconds: int = 0) -> List[Dict[str, Any]]:
    """The strategies for a problem, of each set of passes the best first: dicts with passes, strategy, predicted_ms,
    measured_ms (milliseconds; mode "measure" or "exhaustive", else None), workspace_bytes and the verdict. Raises conv_fft.Error."""
    problem = as_problem(problem)
    options = structs.PlanOptions()
    check(lib.conv_fft_plan_options_init(ctypes.byref(options)))
    options.tuning, options.tune_milliseconds = named(structs.TUNINGS, mode, "mode"), integer(milliseconds, "milliseconds")
    found, raised = [], []

    def visit(pointer, _):
        c = pointer.contents
        found.append({"passes": c.pass_, "strategy": c.strategy.decode(), "predicted_ms": _plan._known(c.predicted_ms),
                      "measured_ms": _plan._known(c.measured_ms), "workspace_bytes": c.workspace_bytes,
                      "verdict": (c.verdict or b"").decode()})

    status = lib.conv_fft_tune_candidates(context(device).handle, ctypes.byref(problem.struct), ctypes.byref(options),
                                          structs.CandidateVisit(_guarded(visit, raised)), None)
    if raised:
        raise raised[0]
    check(status)
    return found


def _guarded(function, raised):
    """An exception must not leave a callback: it is noted, and the C call is told to stop."""
    def guarded(*arguments):
        try:
            return int(function(*arguments) or 0)
        except BaseException as error:  # KeyboardInterrupt too: the caller raises it again
            raised.append(error)
            return 1
    return guarded


forgetters = []


def forget_plans():
    """Drop the plans that calls and layers keep, so that new ones are made when they are needed; a layer's last ones go with its next call."""
    _plan.plans.clear()
    for forget in forgetters:
        forget()


@contextlib.contextmanager
def autotune(mode: str = "measure", milliseconds: int = 0) -> Iterator[None]:
    """Within this, plans that are made measure what has no record yet: run the model once, forward and backward.

        with conv_fft.autotune():
            model(x).sum().backward()

    mode and milliseconds are those of `tune`. Holds for the whole process, not for one thread; of several at once the last one begun."""
    named(_MEASURING, mode, "mode")
    mine = {"tuning": mode, "tune_milliseconds": integer(milliseconds, "milliseconds")}
    with lock:
        _plan.tunings.append(mine)
    try:
        forget_plans()
        yield
    finally:
        with lock:  # those of other threads end when they do
            _plan.tunings[:] = [other for other in _plan.tunings if other is not mine]


def devices() -> str:
    """For people: the CUDA libraries and GPUs that were found, or what is missing and how to get it."""
    name_wheel_folders()
    return report(lib.conv_fft_devices_report)
