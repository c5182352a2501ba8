# SPDX-License-Identifier: Apache-2.0
"""Plans: a problem, compiled and tuned for a device; and the cache that keeps them."""
from __future__ import annotations

import ctypes
import sys
from collections import OrderedDict
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from . import _cuda, arrays
from . import _structs as structs
from ._context import context
from ._library import check, lib, lock
from ._values import c_string, integer, named
from .problem import Problem, as_problem

# What plans are made with unless the caller says otherwise: the last of these. conv_fft.autotune() has one here for as long as it lasts.
tunings = [{"tuning": "cached", "tune_milliseconds": 0}]
# Called with the Problem of every plan that is made.
observers = []


class Plan:
    """How one layer is computed on one device. Immutable: any number of threads may run it at once.

    problem     a Problem, or a problem line
    device      "cpu", "cuda:N", a GPU's number, or "auto": GPU 0 if it is usable, else the CPU
    passes      what it will be asked for: "forward", "backward_data", "backward_weights", "backward" or "all"
    tuning      "cached" (a tuning record, else the cost model), "off", "measure" or "exhaustive"; None: "cached", or within
                conv_fft.autotune() what that says
    workspace_limit     bytes that no pass may exceed; 0: no limit
    tune_milliseconds   that measuring may take; 0: 10,000 for "measure", no bound for "exhaustive"
    tune_again          measure even where there is a record
    trusted             calls do not ask CUDA about their addresses: some microseconds less for those who know what they pass
    strategies          strategy lines to use instead of choosing: forward, backward data, backward weights; None: choose

    Making one chooses, tunes and compiles, and may take seconds. Raises conv_fft.Error."""

    def __init__(self, problem: Union[Problem, str], device: Union[str, int] = "auto", *, passes: Union[str, int] = "all",
                 tuning: Optional[str] = None, workspace_limit: int = 0, tune_milliseconds: Optional[int] = None,
                 tune_again: bool = False, trusted: bool = False, strategies: Optional[Sequence[Optional[str]]] = None):
        self.handle = None
        _destroy_retired()
        self.problem = as_problem(problem)
        self.context = context(device)
        self.device = self.context.device
        passes = named(structs.PASSES, passes, "passes") if isinstance(passes, str) else passes
        self.passes = integer(passes, "passes", 1, structs.ALL_PASSES)
        options = structs.PlanOptions()
        check(lib.conv_fft_plan_options_init(ctypes.byref(options)))
        options.passes, options.tune_again, options.trusted = self.passes, bool(tune_again), bool(trusted)
        options.workspace_limit = integer(workspace_limit, "workspace_limit", 0, 2 ** 64 - 1)
        default = tunings[-1]
        options.tuning = named(structs.TUNINGS, default["tuning"] if tuning is None else tuning, "tuning")
        options.tune_milliseconds = integer(default["tune_milliseconds"] if tune_milliseconds is None else tune_milliseconds,
                                            "tune_milliseconds")
        if strategies is not None and not (isinstance(strategies, (list, tuple)) and len(strategies) <= 3):
            raise ValueError("strategies is %r; it must be None or a list of at most three, each a strategy line or None" % (strategies,))
        for number, strategy in enumerate(strategies or ()):
            options.strategy[number] = c_string(strategy, "strategies") if strategy else None
        handle = ctypes.c_void_p()
        check(lib.conv_fft_plan_create(self.context.handle, ctypes.byref(self.problem.struct), ctypes.byref(options),
                                       ctypes.byref(handle)))
        self.handle = handle.value
        self.workspace = {pass_: self._workspace(pass_) for pass_ in (1, 2, 4, 6) if self.passes & pass_ == pass_}
        self.output_shape = self.problem.output_shape
        for observe in observers:
            observe(self.problem)

    def _workspace(self, pass_):
        size = ctypes.c_size_t()
        check(lib.conv_fft_plan_workspace(self.handle, pass_, ctypes.byref(size)))
        return size.value

    def forward(self, x: Any, w: Any, bias: Any = None, *, out: Any = None, stream: Any = None) -> Any:
        """y = conv(x, w) + bias, a new array like x or `out`, whose memory must be its own. Shapes as in Problem; bias has the shape (K,).

        Arrays are those of one framework, on the plan's device. On a GPU the work is enqueued on `stream` (an address or an
        object of the framework; None: the framework's current stream) and the call returns. Raises TypeError and ValueError for
        arrays that are not what the plan was made for, conv_fft.Error for what the device reports."""
        return arrays.forward(self, x, w, bias, out, stream)

    def backward(self, x: Any, w: Any, gy: Any, *, need: Sequence[str] = ("x", "w", "bias"), out: Optional[Mapping[str, Any]] = None,
                 accumulate: Sequence[str] = (), stream: Any = None) -> Tuple[Any, Any, Any]:
        """The gradients (gx, gw, gbias) for gy, the gradient of y; None for what `need` does not name.

        Shapes as in Problem; gbias has the shape (K,). x may be None if "w" is not needed, w if "x" is not. `out` maps those of the
        names x, w, bias that are needed to arrays for the results; `accumulate` names those of them to add to. Streams, memory and
        errors as in `forward`."""
        return arrays.backward(self, x, w, gy, need, out or {}, accumulate, stream)

    def describe(self, pass_: str = "forward") -> Dict[str, Any]:
        """What the plan does in a pass, as a dict: strategy (its line), basis and tiles (per axis), shares_gy, workspace_bytes,
        predicted_ms and measured_ms (milliseconds; None: not known), and stages: dicts with name, bytes, operations, and the same
        times. Raises conv_fft.Error for a pass that the plan was not made for."""
        return self._description(lib.conv_fft_plan_describe, pass_)

    def profile(self, pass_: str = "forward", repeats: int = 10) -> Dict[str, Any]:
        """The same with the measured milliseconds of each stage, on random data. Waits for the device."""
        return self._description(lib.conv_fft_profile, pass_, integer(repeats, "repeats", 1, 2 ** 31 - 1))

    def _description(self, function, pass_, *more):
        d = structs.Description()
        check(function(self.handle, named(structs.PASSES, pass_, "pass_"), *more, ctypes.byref(d)))
        rank = self.problem.rank
        stages = [{"name": s.name.decode(), "bytes": s.bytes, "operations": s.operations, "predicted_ms": _known(s.predicted_ms),
                   "measured_ms": _known(s.measured_ms)} for s in d.stages[:d.stage_count]]
        return {"strategy": d.strategy.decode(), "basis": tuple(d.basis[:rank]), "tiles": tuple(d.tiles[:rank]),
                "shares_gy": bool(d.shares_gy), "workspace_bytes": d.workspace_bytes, "predicted_ms": _known(d.predicted_ms),
                "measured_ms": _known(d.measured_ms), "stages": stages}

    def close(self) -> None:
        """Give the plan back. Nothing may use it any more; a GPU is waited for."""
        handle, self.handle = self.handle, None
        # A GPU that cannot be waited for may still need the kernels: then they stay.
        if handle and (self.device < 0 or _cuda.synchronize(self.device)):
            lib.conv_fft_plan_destroy(handle)

    def __del__(self, ending=sys.is_finalizing):
        # At the end of the process what this needs may be gone already, and everything is given back anyway.
        handle = getattr(self, "handle", None)
        if handle and not ending():
            _retired.append((self.device, handle))

    # A copy would give the same handle back twice.
    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError("a Plan belongs to its process; pickle its problem, and make the plan again where that is read")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return "Plan(%r on %s)" % (self.problem, "the CPU" if self.device < 0 else "GPU %d" % self.device)


# Plans that nobody holds any more. A GPU must be waited for, which a graph's capture does not allow, and this may happen within one;
# so they go when the next plan is made.
_retired = []


def _destroy_retired():
    waited = {}
    while _retired:
        try:
            device, handle = _retired.pop()
        except IndexError:  # another thread was faster
            return
        if device >= 0 and device not in waited:
            waited[device] = _cuda.synchronize(device)
        if device < 0 or waited[device]:
            lib.conv_fft_plan_destroy(handle)


def _known(ms):
    return ms if ms >= 0 else None


class PlanCache:
    """The least recently used plans go when there are more than `limit`. Threads may share it.

    The layers of conv_fft.torch hold theirs as well, by kinds of calls; all of these go when there are `conv_fft.plans.limit` kinds."""

    def __init__(self, limit: int = 1024):
        self.limit = limit
        self.plans = OrderedDict()

    def get(self, problem: Problem, device: Union[str, int], passes: int, trusted: bool = False) -> Plan:
        """The plan of a problem for a device and a set of passes, made if there is none yet."""
        key = (problem.key, device, passes, trusted)
        with lock:
            plan = self.plans.get(key)
            if plan is not None:
                self.plans.move_to_end(key)
                return plan
        plan = Plan(problem, device, passes=passes, trusted=trusted)
        with lock:
            plan = self.plans.setdefault(key, plan)
            while len(self.plans) > self.limit:
                self.plans.popitem(last=False)
        return plan

    def clear(self) -> None:
        """Forget all plans; those in use elsewhere live on there."""
        with lock:
            self.plans.clear()

    def __len__(self) -> int:
        return len(self.plans)


plans = PlanCache()
