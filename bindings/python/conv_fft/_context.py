# SPDX-License-Identifier: Apache-2.0
"""One context per device for the whole process, and where the CUDA libraries of installed wheels are."""
from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from pathlib import Path
from typing import List, Union

from . import _structs as structs
from ._library import check, lib, lock
from ._values import integer

_contexts = {}


def wheel_folders() -> List[str]:
    """The folders of CUDA libraries that pip installed (nvidia/*/lib). Wheels of torch and JAX bring such libraries."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    roots = spec.submodule_search_locations if spec and spec.submodule_search_locations else []
    return [str(folder) for root in roots for folder in sorted(Path(root).glob("*/lib")) if any(folder.glob("*.so*"))]


def name_wheel_folders():
    """Append the folders of wheels to CONV_FFT_LIBRARY_PATH. The library searches it for what is not loaded yet."""
    named = [folder for folder in os.environ.get("CONV_FFT_LIBRARY_PATH", "").split(":") if folder]
    added = [folder for folder in wheel_folders() if folder not in named and ":" not in folder]
    if added:
        os.environ["CONV_FFT_LIBRARY_PATH"] = ":".join(named + added)


class Context:
    """A device: a GPU by its CUDA ordinal, or the CPU (-2). Made once per process by `context()`, never destroyed."""

    def __init__(self, device):
        options = structs.ContextOptions()
        check(lib.conv_fft_context_options_init(ctypes.byref(options)))
        options.device = device
        handle = ctypes.c_void_p()
        check(lib.conv_fft_context_create(ctypes.byref(options), ctypes.byref(handle)))
        self.handle = handle.value
        self.device = lib.conv_fft_context_device(handle)

    def __reduce__(self):
        return context, (self.device,)

    @property
    def description(self) -> str:
        """One line: the device, the libraries in use, why this device was chosen."""
        return lib.conv_fft_context_description(self.handle).decode("utf-8", "replace")


def device_number(device):
    """-2 for None, "cpu" and -2; the ordinal for an int, "cuda", "cuda:1" or a torch.device; -1 for "auto"."""
    if device is None:
        return structs.DEVICE_CPU
    text = str(device)
    if text in ("cpu", "auto"):
        return structs.DEVICE_CPU if text == "cpu" else structs.DEVICE_AUTO
    gpu = re.fullmatch("cuda(?::([0-9]+))?", text)
    try:
        return integer(int(gpu[1] or 0) if gpu else device, "device", structs.DEVICE_CPU, 2 ** 31 - 1)
    except ValueError:
        raise ValueError("device is %r; it must be \"cpu\", \"auto\", \"cuda\", \"cuda:N\" or a GPU's number"
                         % (device,)) from None


def context(device: Union[str, int] = "auto") -> Context:
    """The context of a device (see `device_number`); the same object for the same device."""
    number = device_number(device)
    found = _contexts.get(number)
    if found is not None:
        return found
    with lock:
        if number not in _contexts:
            if number != structs.DEVICE_CPU:
                name_wheel_folders()
            made = Context(number)
            # AUTO is a second key of the context that it chose.
            _contexts.setdefault(made.device, made)
            _contexts[number] = _contexts[made.device]
        return _contexts[number]
