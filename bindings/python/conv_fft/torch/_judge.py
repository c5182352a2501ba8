# SPDX-License-Identifier: Apache-2.0
"""Judges the kinds of layers of a model for convert(): which are faster as ours. Nothing here changes the model."""
from __future__ import annotations

import concurrent.futures
import contextlib
import math
import os
import time
import warnings

from .. import _layer_times
from ..errors import Error
from ..plan import tunings
from . import _entry, _kept
from ._cases import twin
from ._model import HOPELESS, Records, expect_torch, operations, predict
from ._timing import time_layer
from .modules import OURS

# A smaller gain is within the noise of a measurement.
LEAST_GAIN = 0.02
# Shares of the time limit after which torch's layers are timed no more, and no plan is begun. They are of the time that
# the model's own runs leave: its first run can take ten seconds, in which cuDNN chooses its kernels.
OF_TORCH, OF_PLANS = 0.4, 0.9


class Judge:
    """Judges cases. After `limit` seconds nothing new is begun; what is under way then is finished.

    again   whether what an earlier run has measured does not count
    step    (milliseconds until the calls of a step of torch's model return, until the device has finished); None: not
            known, or without interest"""

    def __init__(self, progress, precision, repeats, limit, again):
        self.progress, self.precision, self.repeats, self.limit = progress, precision, repeats, limit
        self.again = again
        self.begin, self.step, self.interrupted = time.monotonic(), None, False
        self.records = Records()
        # Within conv_fft.autotune() plans measure strategies, one after the other so that they do not disturb each
        # other, and what was measured with other strategies does not count.
        self.tuning = tunings[-1]["tuning"] != "cached"

    def model_has_run(self):
        """From now on the shares are of what is left of the limit."""
        now = time.monotonic()
        self.begin, self.limit = now, max(self.begin + self.limit - now, 0)

    def left(self, share=1.0):
        """Seconds until a share of the limit is over."""
        return self.begin + share * self.limit - time.monotonic()

    # ------------------------------------------------------------------------------------ without measuring

    def look_up(self, cases):
        """Take the times that an earlier run has kept. Returns the cases that have none."""
        if self.tuning or self.again:
            return cases
        kept = _layer_times.read()
        for case in cases:
            for name, ms in (kept and kept.get(self._key(case)) or {}).items():
                setattr(case, name, ms)
            case.earlier = case.torch_ms is not None
        return [case for case in cases if not case.earlier]

    def _key(self, case):
        return _kept.key_of(case, self.records.strategies(case))

    def predict(self, cases):
        """Ask the records and the cost model how long our layers take. Cases that they are not asked for in time stay
        without an answer."""
        self._in_parallel(cases, lambda case: setattr(case, "predicted_ms", predict(case, self.records)), OF_PLANS,
                          "asking the cost model: %d of %d kinds of layers")

    def expect(self, case, worthwhile):
        """Decide by records and the cost model; where they know nothing of torch's layer, by `worthwhile`."""
        expected = expect_torch(case, self.records)
        if expected is None or case.predicted_ms is None:
            case.decide("changed" if worthwhile else "kept", "" if worthwhile else "small kernel")
            return
        torch_ms, why = expected
        case.decide("changed" if case.predicted_ms < torch_ms else "kept",
                    "%s: %.1fx" % (why, torch_ms / case.predicted_ms))

    # --------------------------------------------------------------------------------------- measuring

    def measure(self, cases, known):
        """Time both implementations of each case. Those that stay without ours_ms have a reason or were too late.

        known: cases whose times an earlier run has kept"""
        if not self.tuning:
            self.predict(cases)
        # What is most work comes first, in case that the time is short.
        cases = sorted(cases, key=lambda case: -operations(case) * len(case.sets) * len(case.rows))
        started = self._time(cases, "torch", lambda case: type(case.layer), OF_TORCH)
        promising = [case for case in started if not hopeless(case)]
        # What can gain most comes first.
        promising.sort(key=lambda case: ((case.predicted_ms or 0) - case.torch_ms) * len(case.rows))
        if waits(self.step):
            promising = self._try_one(promising, known)
        self._time_ours(promising)
        # Torch's layers have a share of the time, and some of the rest may be left.
        late = [case for case in cases if case.torch_ms is None and case.reason is None]
        if late and not waits(self.step):
            late = self._time(late, "torch", lambda case: type(case.layer), OF_PLANS)
            self._time_ours([case for case in late if not hopeless(case)])
        if self.tuning:
            self.records = Records()  # there are new ones
        _layer_times.write({self._key(case): {name: getattr(case, name) for name in _layer_times.TIMES}
                            for case in cases if case.ours_ms is not None or hopeless(case)})

    def _time_ours(self, cases):
        self._time(cases if self.tuning else self.make_plans(cases), "ours", lambda case: OURS[type(case.layer)], 1.0)

    def _try_one(self, cases, known):
        """Where the device waits for the host, no layer that costs the host more is changed. What a call of ours costs
        it hardly depends on the layer, so one case tells, and no kernels of the others are compiled in vain."""
        tried = [case for case in known if case.ours_host_ms is not None]
        for number, case in enumerate(cases):
            if tried:
                break
            self._time_ours([case])
            tried = [case for case in cases[:number + 1] if case.ours_host_ms is not None]
        more = min((more_host(case) for case in tried), default=0.0)
        rest = [case for case in cases if case.ours_ms is None and case.reason is None]
        if more <= 0:
            return rest
        for case in rest:
            case.reason = "not tried: the device waits for the host, and ours costs it %.0f us more" % (1e3 * more)
        return []

    def _time(self, cases, what, kind, share):
        """Time one implementation of each case; returns those that were timed."""
        timed = []
        for number, case in enumerate(cases):
            # On a GPU our layers take milliseconds once their plans are made, so all that have plans are timed.
            if self.left(share) <= 0 and (what == "torch" or self.tuning or case.seen[3].type == "cpu"):
                break
            whose = "torch's" if what == "torch" else "our"
            self.progress.say("timing %s layers: %d of %d kinds" % (whose, number + 1, len(cases)))
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "conv_fft: memory was lacking")  # the table says so
                    found = time_layer(twin(case.layer, kind(case), self.precision), case.input(), self.repeats,
                                       case.training, time.monotonic() + self.left(share))
            except Exception as error:  # whatever torch or the allocator raises
                case.reason = "it cannot be measured: %s" % _first_line(error)
                continue
            if what == "ours" and case.entry.kind in _entry.fallbacks:
                case.reason = "torch computes it: %s" % _first_line(_entry.fallbacks[case.entry.kind])
                continue
            setattr(case, what + "_ms", found[0])
            setattr(case, what + "_host_ms", found[1])
            timed.append(case)
        return timed

    def make_plans(self, cases):
        """Make the plans of cases in parallel, as most of the time is spent compiling. Returns the cases that have
        them. A plan that is being made at the deadline is finished: it would disturb the capture of a graph."""
        if self.tuning:
            return []

        def make(case):
            try:
                for passes in case.sets:
                    if not self.interrupted:
                        case.entry.prepare(passes)
            except (Error, ValueError, MemoryError) as error:
                case.reason = str(error)

        made = self._in_parallel(cases, make, OF_PLANS, "making plans: %d of %d kinds of layers")
        return [case for case in cases if case in made and case.reason is None]

    def _in_parallel(self, cases, function, share, text):
        """Call the function for cases in turn, by at most four threads, until a share of the limit is over. Each plan
        compiles its kernels on all processors. Returns those that it was called for. An interrupt does not wait for
        the threads."""
        if not cases or self.left(share) <= 0:
            return set()
        pool = concurrent.futures.ThreadPoolExecutor(min(4, _processors()))
        jobs = {}
        try:
            jobs.update((pool.submit(function, case), case) for case in cases)
            waiting = set(jobs)
            while waiting and self.left(share) > 0:
                self.progress.say(text % (len(jobs) - len(waiting), len(jobs)))
                pause = max(min(self.left(share), 0.2), 0)
                waiting = concurrent.futures.wait(waiting, pause, concurrent.futures.FIRST_COMPLETED).not_done
            for job in waiting:
                job.cancel()
            concurrent.futures.wait(jobs)
        except BaseException:
            self.interrupted = True  # threads begin no other plan
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        done = [job for job in jobs if not job.cancelled()]
        for job in done:
            job.result()
        return {jobs[job] for job in done}


def _first_line(error):
    return str(error).strip().partition("\n")[0]


def _processors():
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def hopeless(case):
    return (case.ours_ms is None and case.predicted_ms is not None and case.torch_ms is not None
            and case.predicted_ms > HOPELESS * case.torch_ms)


def decide(cases, graph, step):
    """Decide the cases that were measured.

    graph   whether only times of the device count
    step    that of Judge

    Without a graph a step takes as long as the host or the device, whichever is slower. So layers that cost the host
    more are changed in the order of what they gain for it, while that shortens the slower of the two."""
    measured = []
    for case in cases:
        if case.ours_ms is not None:
            measured.append(case)
        elif case.reason is not None:
            case.decide("kept", case.reason)
        elif hopeless(case):
            case.decide("kept", "not tried: the cost model expects %.3f ms (%.1fx)"
                        % (case.predicted_ms, case.torch_ms / case.predicted_ms))
        else:
            case.decide("kept", "no time left to judge it")
    costly = []
    for case in measured:
        speed = "%.1fx" % (case.torch_ms / case.ours_ms)
        if case.ours_ms >= (1 - LEAST_GAIN) * case.torch_ms:
            case.decide("kept", speed)
        elif graph or more_host(case) <= 0:
            case.decide("changed", speed)
        else:
            costly.append(case)
    _decide_costly(costly, [case for case in measured if case.decision == "changed"], step)


def waits(step):
    """Whether the device waits for the host in a step."""
    return step is not None and step[1] - step[0] < 0.05 * step[1]


def more_host(case):
    """Milliseconds that a call of ours costs the host more than torch's; 0 on a CPU, where they are part of a call."""
    if case.ours_host_ms is None or case.torch_host_ms is None:
        return 0.0
    return case.ours_host_ms - case.torch_host_ms


def _gain(case):
    return case.torch_ms - case.ours_ms


def _decide_costly(costly, changed, step):
    host, device = step or (None, None)
    if waits(step):
        device = 0.0  # the device waits for the host, and nobody knows how long it is busy
    if step:
        host += sum(more_host(case) * len(case.rows) for case in changed)
        device -= sum(_gain(case) * len(case.rows) for case in changed)
    for case in sorted(costly, key=lambda case: more_host(case) / _gain(case)):
        speed, more, gain = "%.1fx" % (case.torch_ms / case.ours_ms), more_host(case), _gain(case)
        if step is None:
            better = gain > more
        else:
            after = host + more * len(case.rows), device - gain * len(case.rows)
            better = max(after) < max(host, device)
            if better:
                host, device = after
        case.decide("changed" if better else "kept",
                    speed if better else "%s, but %.0f us more of the host's time" % (speed, 1e3 * more))


def limit_of(time_limit):
    """The seconds that judging may take. Within conv_fft.autotune() there is no limit."""
    if time_limit is None or tunings[-1]["tuning"] != "cached":
        return math.inf
    if isinstance(time_limit, bool) or not isinstance(time_limit, (int, float)) or not time_limit >= 0:
        raise ValueError("time_limit is %r; it must be a number of seconds, at least 0, or None" % (time_limit,))
    return time_limit


@contextlib.contextmanager
def without_plans_of(entries, plans):
    """Within this, plans may be made to be measured. Afterwards those that no changed layer needs are dropped, and with
    them the calls that torch had to compute: the function yields a set, into which the caller puts the problems to be
    kept."""
    before_entries = {key[:-1] for key in entries}  # without the epoch, which changes when a layer lacks memory
    before_plans, before_fallbacks, wanted = set(plans.plans), set(_entry.fallbacks), set()
    try:
        yield wanted
    finally:
        for key, entry in list(entries.items()):
            if key[:-1] not in before_entries and (entry is None or entry.problem not in wanted):
                entries.pop(key, None)
        for key in list(plans.plans):
            if key not in before_plans and key[0] not in {problem.key for problem in wanted}:
                plans.plans.pop(key, None)
        for kind in set(_entry.fallbacks) - before_fallbacks:
            _entry.fallbacks.pop(kind, None)
