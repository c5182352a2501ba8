# SPDX-License-Identifier: Apache-2.0
"""What tuning records and the library's cost model expect of a layer, without measuring or compiling, for convert()."""
from __future__ import annotations

import math

import torch

from .. import cache, tuning
from ..errors import Error

# A layer of ours that is expected to take this many times as long as torch's is not tried. The model's worst choice
# was 2.1 times slower than the best and within 1.25 times in 85 % of the cases (docs/tuning.md).
HOPELESS = 1.3

# TFLOP/s of cuDNN's direct and Winograd kernels on an H200 with 132 multiprocessors: the medians of all passes in
# bench/results/nvidia-h200 that take at least 0.05 ms. The middle half lies within factors of 0.4 to 2.5.
MULTIPROCESSORS = 132
DENSE = {"fp32": 37.5, "tf32": 123.0, "half": 281.0}
DEPTHWISE = {"fp32": 1.7, "tf32": 1.7, "half": 2.3}


class Records:
    """The tuning records that plans find, by device, problem line and set of passes."""

    def __init__(self):
        self.devices = {}

    def find(self, case, passes):
        """The record of a set of passes of a case, or None. Records of element strides are not used."""
        p = case.problem.struct
        if any(p.x_stride) or any(p.y_stride) or any(p.w_stride):
            return None
        number = case.entry.number
        if number not in self.devices:
            try:
                self.devices[number] = {(r["problem"].partition("#")[0].strip(), r["passes"]): r
                                        for r in cache.records("cpu" if number < 0 else number)
                                        if r["keep"] == 0 and r["workspace_class"] == 0 and "#" not in r["problem"]}
            except Error:
                self.devices[number] = {}
        found = self.devices[number]
        line = case.problem.line
        # As the library: the record of 16-bit weights serves for FP32 weights, too.
        return found.get((line, passes)) or found.get((line.replace(" w=fp32", ""), passes))

    def strategies(self, case):
        """The strategies of a case's records: times that were measured with others do not count any more."""
        return [record and record["strategy"] for record in (self.find(case, passes) for passes in case.sets)]


def predict(case, records):
    """Milliseconds of our layer: by its tuning records, else by the cost model. None: there is no prediction."""
    total = 0.0
    for passes in case.sets:
        record = records.find(case, passes)
        if record is not None:
            total += record["ms"]
            continue
        number = case.entry.number
        try:
            found = tuning.candidates(case.problem, "cpu" if number < 0 else number, passes=passes, own_kernels=True)
        except (Error, ValueError):
            return None
        known = [c["predicted_ms"] for c in found if c["predicted_ms"] is not None]
        if not known:
            return None
        total += min(known)
    return total


def expect_torch(case, records):
    """(milliseconds, why) of torch's layer without a measurement: cuDNN's time in tuning records, else what a direct
    method takes at a typical rate. None: nothing is known, as on CPUs."""
    found = [records.find(case, passes) for passes in case.sets]
    if all(record is not None and record["direct_ms"] is not None for record in found):
        return sum(record["direct_ms"] for record in found), "record"
    device = case.seen[3]
    line = case.problem.line
    rates = DEPTHWISE if _depthwise(case) else DENSE
    arithmetic = line.rpartition("math=")[2].split()[0]
    if case.x.dtype in (torch.float16, torch.bfloat16):
        arithmetic = "half"
    if device.type != "cuda" or arithmetic not in rates:
        return None
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    passes = sum({1: 1, 2: 1, 4: 1, 6: 2}[number] for number in case.sets)
    return passes * operations(case) / (rates[arithmetic] * 1e9 * processors / MULTIPROCESSORS), "model"


def _depthwise(case):
    return case.problem.struct.groups > 1 and case.w.shape[1] == 1


def operations(case):
    """Floating-point operations of one pass of a direct method."""
    batch, channels, *extents = case.entry.y_shape
    return 2.0 * batch * channels * math.prod(extents) * math.prod(case.w.shape[1:])
