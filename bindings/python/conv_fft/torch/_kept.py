# SPDX-License-Identifier: Apache-2.0
"""Keys of what convert() has measured (conv_fft/_layer_times.py keeps it): what, where, and by which versions."""
from __future__ import annotations

import json

import torch

from .. import _library
from .._context import context


def device_key(device):
    """A device by what it is, not by its number."""
    if device.type == "cuda":
        about = torch.cuda.get_device_properties(device)
        return "%s, %d.%d, %d multiprocessors" % (about.name, about.major, about.minor, about.multi_processor_count)
    return "%s, %d threads" % (context("cpu").description, torch.get_num_threads())


def versions():
    return "torch %s, cuDNN %s, conv_fft %s" % (torch.__version__, torch.backends.cudnn.version(), _library.version)


def key_of(case, strategies):
    """The text that says what is measured. strategies: those of tuning records for its sets of passes, or None."""
    layer = case.layer
    cudnn = torch.backends.cudnn
    return json.dumps([device_key(case.seen[3]), versions(), case.problem.line, list(case.sets), strategies,
                       type(layer).__name__, layer.bias is not None, case.seen[:2], str(case.seen[2]),
                       layer.weight.stride(), case.training, cudnn.enabled, cudnn.benchmark, cudnn.deterministic,
                       torch.are_deterministic_algorithms_enabled()])
