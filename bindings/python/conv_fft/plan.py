# SPDX-License-Identifier: Apache-2.0
"""Plans: a problem, compiled and tuned for a device; and the cache that keeps them."""
from __future__ import annotations

import ctypes
import functools
import sys
from collections import OrderedDict
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from . import _cuda, _measuring, arrays
from . import _structs as structs
from ._context import context
from ._library import check, lib, lock
from ._values import c_string, integer, named
from ._workspaces import free_workspaces
from .problem import Problem, as_problem

# The last of these holds the defaults of new plans. conv_fft.autotune() appends its own while it is active.
tunings = [{"tuning": "cached", "tune_milliseconds": 0}]
# Called with the Problem of every plan that is made.
observers = []


class _Handle:
    """A plan of the library, as its address."""

    def __init__(self, context, problem, options, _=None):
        handle = ctypes.c_void_p()
        check(lib.conv_fft_plan_create(context.handle, ctypes.byref(problem.struct), ctypes.byref(options),
                                       ctypes.byref(handle)))
        self.value = handle.value

    def close(self):
        lib.conv_fft_plan_destroy(self.value)


class Plan:
    """How one layer is computed on one device. A plan is immutable: any number of threads may run it at once.

    problem     a Problem, or a problem line
    device      "cpu", "cuda:N", a GPU's number, or "auto": GPU 0 if it is usable, else the CPU
    passes      the passes that it can run: "forward", "backward_data", "backward_weights", "backward" or "all"
    tuning      "cached" (a tuning record, else the cost model), "off", "measure" or "exhaustive"; None: "cached", or
                the mode of conv_fft.autotune() within it
    workspace_limit     bytes that no pass may exceed; 0: no limit
    tune_milliseconds   time limit of measuring; 0: 10,000 for "measure", no limit for "exhaustive"
    tune_again          measure even if there is a record
    trusted             calls do not check their addresses with CUDA, which saves some microseconds
    strategies          strategy lines to use: forward, backward data, backward weights; None: choose
    any_alignment       on a GPU arrays may begin at any element, not only at multiples of 16 bytes; more is compiled
    own_kernels         no algorithm of cuDNN is chosen

    The constructor chooses, tunes and compiles, which may take seconds. Ctrl-C in the main thread ends measuring at
    once. Raises conv_fft.Error."""

    def __init__(self, problem: Union[Problem, str], device: Union[str, int] = "auto", *,
                 passes: Union[str, int] = "all", tuning: Optional[str] = None, workspace_limit: int = 0,
                 tune_milliseconds: Optional[int] = None, tune_again: bool = False, trusted: bool = False,
                 strategies: Optional[Sequence[Optional[str]]] = None, any_alignment: bool = False,
                 own_kernels: bool = False):
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
        options.any_alignment, options.own_kernels = bool(any_alignment), bool(own_kernels)
        options.workspace_limit = integer(workspace_limit, "workspace_limit", 0, 2 ** 64 - 1)
        default = tunings[-1]
        options.tuning = named(structs.TUNINGS, default["tuning"] if tuning is None else tuning, "tuning")
        options.tune_milliseconds = integer(default["tune_milliseconds"] if tune_milliseconds is None
                                            else tune_milliseconds, "tune_milliseconds")
        if strategies is not None and not (isinstance(strategies, (list, tuple)) and len(strategies) <= 3):
            raise ValueError("strategies is %r; it must be None or a list of at most three strategy lines or None"
                             % (strategies,))
        for number, strategy in enumerate(strategies or ()):
            options.strategy[number] = c_string(strategy, "strategies") if strategy else None
        create = functools.partial(_Handle, self.context, self.problem, options)
        made = _measuring.call(create, options) if options.tuning >= structs.TUNINGS["measure"] else create()
        self.handle = made.value
        self.workspace = {pass_: self._workspace(pass_) for pass_ in (1, 2, 4, 6) if self.passes & pass_ == pass_}
        self.output_shape = self.problem.output_shape
        self.known_calls = {}  # of _torch_calls.py
        for observe in observers:
            observe(self.problem)

    def _workspace(self, pass_):
        size = ctypes.c_size_t()
        check(lib.conv_fft_plan_workspace(self.handle, pass_, ctypes.byref(size)))
        return size.value

    def forward(self, x: Any, w: Any, bias: Any = None, *, out: Any = None, stream: Any = None) -> Any:
        """y = conv(x, w) + bias, in a new array like x, or in `out`. Shapes as in Problem; bias has the shape (K,).

        Arrays are those of one framework, on the plan's device. `out` must not share memory with the others. On a GPU
        the call enqueues its work on `stream` and returns; `stream` is an address or an object of the framework (None:
        the framework's current stream). Raises TypeError and ValueError for arrays that do not fit the plan,
        conv_fft.Error for errors of the device."""
        return arrays.forward(self, x, w, bias, out, stream)

    def backward(self, x: Any, w: Any, gy: Any, *, need: Sequence[str] = ("x", "w", "bias"),
                 out: Optional[Mapping[str, Any]] = None, accumulate: Sequence[str] = (),
                 stream: Any = None) -> Tuple[Any, Any, Any]:
        """The gradients (gx, gw, gbias) for gy, the gradient of y; those that `need` does not name are None.

        Shapes as in Problem; gbias has the shape (K,). x may be None if "w" is not needed, and w if "x" is not needed.
        `out` maps names of needed gradients ("x", "w", "bias") to arrays for the results. `accumulate` names the arrays
        of `out` to which results are added. Streams, memory and errors are as in `forward`."""
        return arrays.backward(self, x, w, gy, need, out or {}, accumulate, stream)

    def describe(self, pass_: str = "forward") -> Dict[str, Any]:
        """How the plan computes a pass, as a dict: strategy (its line), basis and tiles (per axis), shares_gy,
        workspace_bytes, predicted_ms and measured_ms (milliseconds; None: not known), and stages: dicts with name,
        bytes, operations, predicted_ms and measured_ms. Raises conv_fft.Error for a pass that the plan does not
        have."""
        return self._description(lib.conv_fft_plan_describe, pass_)

    def profile(self, pass_: str = "forward", repeats: int = 10) -> Dict[str, Any]:
        """As `describe`, with the measured milliseconds of each stage on random data. Waits for the device."""
        return self._description(lib.conv_fft_profile, pass_, integer(repeats, "repeats", 1, 2 ** 31 - 1))

    def _description(self, function, pass_, *more):
        d = structs.Description()
        check(function(self.handle, named(structs.PASSES, pass_, "pass_"), *more, ctypes.byref(d)))
        rank = self.problem.rank
        stages = [{"name": s.name.decode(), "bytes": s.bytes, "operations": s.operations,
                   "predicted_ms": _known(s.predicted_ms), "measured_ms": _known(s.measured_ms)}
                  for s in d.stages[:d.stage_count]]
        return {"strategy": d.strategy.decode(), "basis": tuple(d.basis[:rank]), "tiles": tuple(d.tiles[:rank]),
                "shares_gy": bool(d.shares_gy), "workspace_bytes": d.workspace_bytes,
                "predicted_ms": _known(d.predicted_ms), "measured_ms": _known(d.measured_ms), "stages": stages}

    def close(self) -> None:
        """Free the plan, which nothing may use any more. Waits for the GPU."""
        handle, self.handle = self.handle, None
        # A GPU that cannot be waited for may still run the kernels: then the plan is not freed.
        if handle and (self.device < 0 or _cuda.synchronize(self.device)):
            lib.conv_fft_plan_destroy(handle)

    def __del__(self, ending=sys.is_finalizing):
        # At the end of the process the modules may be gone already, and all memory is freed anyway.
        handle = getattr(self, "handle", None)
        if handle and not ending():
            _retired.append((self.device, handle))

    # A copy would free the same handle twice.
    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError("a Plan belongs to its process; pickle its problem, and make a new plan from that")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return "Plan(%r on %s)" % (self.problem, "the CPU" if self.device < 0 else "GPU %d" % self.device)


# Handles of plans that nobody holds any more. To free one needs to wait for its GPU, and a plan may be dropped while a
# graph is captured, which does not allow that. So they are freed when the next plan is made.
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
    """A cache of at most `limit` plans, which drops the least recently used. Threads may share it.

    The layers of conv_fft.torch also hold their plans, by kinds of calls. They drop all of them when there are
    `conv_fft.plans.limit` kinds."""

    def __init__(self, limit: int = 1024):
        self.limit = limit
        self.plans = OrderedDict()

    def get(self, problem: Problem, device: Union[str, int], passes: int, trusted: bool = False,
            any_alignment: bool = False) -> Plan:
        """The plan of a problem for a device and a set of passes, made if there is none yet."""
        key = (problem.key, device, passes, trusted, any_alignment)
        with lock:
            plan = self.plans.get(key)
            if plan is not None:
                self.plans.move_to_end(key)
                return plan
        plan = Plan(problem, device, passes=passes, trusted=trusted, any_alignment=any_alignment)
        with lock:
            plan = self.plans.setdefault(key, plan)
            while len(self.plans) > self.limit:
                self.plans.popitem(last=False)
        return plan

    def clear(self) -> None:
        """Forget all plans, and free the workspaces of threads. A plan that somebody else holds stays usable."""
        with lock:
            self.plans.clear()
        free_workspaces()

    def __len__(self) -> int:
        return len(self.plans)


plans = PlanCache()
