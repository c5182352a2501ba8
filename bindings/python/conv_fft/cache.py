# SPDX-License-Identifier: Apache-2.0
"""Tuning records of a device in this process, and of the cache directory (docs/tuning.md).

`device` is that of Plan: "cpu", "cuda:N", a GPU's number, or "auto". Every call raises conv_fft.Error: FileError for
a file that cannot be read or written or is no file of records, NoDevice for a GPU that does not exist."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Dict, List, Optional, Union

from . import _layer_times, _library
from . import _structs as structs
from ._context import context
from ._library import check, lib
from ._values import c_string, named
from .tuning import Problems, read_problems

Path = Union[str, os.PathLike]
Device = Union[str, int]


def _path(path):
    return None if path is None else c_string(path, "path")


def load(path: Path, device: Device = "auto") -> None:
    """Read records from a file into this process. They replace its records of the same problems."""
    check(lib.conv_fft_tune_load(context(device).handle, _path(path)))


def save(path: Path, device: Device = "auto") -> None:
    """Write all records that this process has to a file."""
    check(lib.conv_fft_tune_save(context(device).handle, _path(path)))


def merge(path: Path, policy: str = "fastest", device: Device = "auto") -> None:
    """Read records from a file into this process and the cache directory.

    policy: which of two records of one problem stays: "fastest", "newest", "mine" (the cache's), "theirs" (the
    file's)."""
    check(lib.conv_fft_tune_merge(context(device).handle, _path(path), named(structs.POLICIES, policy, "policy")))


def export(path: Path, problems: Problems, device: Device = "auto") -> None:
    """Write the records of some problems to a file; `problems` as conv_fft.tune takes them, with the same errors."""
    listed, bad = read_problems(problems)
    array = (structs.Problem * len(listed))(*(problem.struct for problem in listed))
    check(lib.conv_fft_tune_export(context(device).handle, _path(path), array, len(listed)))
    if bad:
        raise bad


def records(device: Device = "auto") -> List[Dict[str, Any]]:
    """All records that this process has, as dicts, in the order of the problem lines.

    problem, strategy   lines
    passes              bits: 1 forward, 2 backward data, 4 backward weights
    ms, predicted_ms    milliseconds, measured and predicted
    direct_ms           milliseconds of cuDNN's fastest algorithm; None: not measured
    model_ms            milliseconds of what the cost model alone would choose; None: not measured
    fastest_ms          milliseconds of the shortest of the runs whose median is ms; None: not known
    processors          on a CPU, the processors that the process had in these runs; None: not known
    workspace_bytes     of the strategy
    workspace_class, keep, candidates, tuning   how the search was made"""
    found = []

    def visit(pointer, _):
        r = pointer.contents
        found.append({"problem": r.problem.decode(), "strategy": r.strategy.decode(), "passes": r.pass_, "ms": r.ms,
                      "predicted_ms": r.predicted_ms, "direct_ms": r.direct_ms if r.direct_ms >= 0 else None,
                      "model_ms": r.model_ms if r.model_ms >= 0 else None,
                      "fastest_ms": r.fastest_ms if r.fastest_ms >= 0 else None,
                      "processors": r.processors or None,
                      "workspace_bytes": r.workspace_bytes, "workspace_class": r.workspace_class, "keep": r.keep,
                      "candidates": r.candidates, "tuning": r.tuning})
        return 0

    check(lib.conv_fft_tune_foreach(context(device).handle, structs.TuneVisit(visit), None))
    return found


def stats(device: Device = "auto") -> Dict[str, int]:
    """Counters of this process: its records, hits and misses of plans, unusable records (of another library or GPU),
    and corrupt lines."""
    counters = structs.TuneStatistics()
    check(lib.conv_fft_tune_stats(context(device).handle, ctypes.byref(counters)))
    return {name: getattr(counters, name) for name, _ in structs.TuneStatistics._fields_}


def report(directory: Optional[Path] = None) -> str:
    """For people: the files of a cache directory (None: the default one), with every line that cannot be verified."""
    return _library.report(lib.conv_fft_cache_report, (_path(directory),), (None,))


def repair(device: Device = "auto") -> int:
    """Write damaged files of the cache directory again, without the lines that cannot be verified, and remove damaged
    kernels. Returns the number of removed lines and kernels. A warning on standard error names each file that stays as
    it is."""
    removed = ctypes.c_int64()
    check(lib.conv_fft_cache_repair(context(device).handle, ctypes.byref(removed)))
    return removed.value


def clear(directory: Optional[Path] = None) -> int:
    """Remove the records and kernels of a cache directory (None: the default one), and what conv_fft.torch.convert()
    has measured. Returns how many files it removed."""
    removed = ctypes.c_int64()
    check(lib.conv_fft_cache_clear(_path(directory), ctypes.byref(removed)))
    return removed.value + _layer_times.clear(directory)
