# SPDX-License-Identifier: Apache-2.0
"""Finds libconv_fft, checks that its binary interface is that of these bindings, and turns statuses into exceptions.

The file is the one that the environment variable CONV_FFT_LIBRARY names; else the one in the package's own folder;
else the one that the system's loader finds by soname. This module needs no GPU, no driver and no CUDA library."""
import ctypes
import os
import threading
from pathlib import Path

from . import _structs as structs
from .errors import BY_STATUS, Error

try:
    from ._version import version as _PACKAGE_VERSION  # written when the wheel is built (pyproject.toml)
except ImportError:
    _PACKAGE_VERSION = None  # in a source tree, whose version is the library's

SONAME = "libconv_fft.so.%d" % structs.ABI


def _candidates():
    named = os.environ.get("CONV_FFT_LIBRARY")
    if named:
        return [named]
    own = Path(__file__).resolve().parent / "lib" / "libconv_fft.so"
    return [str(own)] if own.exists() else [SONAME]


def _load():
    (path,) = _candidates()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError("conv_fft: the library %s cannot be loaded: %s" % (path, error)) from None
    try:
        for name, parameters in structs.CALLS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = ctypes.c_int, parameters
        for name, (result, parameters) in structs.OTHERS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters
    except AttributeError as error:
        raise ImportError("conv_fft: %s does not fit these bindings (%s): %s" % (path, __file__, error)) from None
    return library, path


def _written_bytes(function, *arguments):
    """The size of the library's struct: the number of bytes that its _init function writes. The last field is 0."""
    size = 4096
    memory = (ctypes.c_ubyte * size)(*([0xA5] * size))
    function(ctypes.addressof(memory), *arguments)
    return len(bytes(memory).rstrip(b"\xa5"))


def _check_version(found, path, written_for):
    """Refuses a library that is older than the package or has another major version."""
    library, package = ([int(part) for part in text.split(".")[:2]] for text in (found, written_for))
    if library[0] != package[0] or library < package:
        raise ImportError("conv_fft: %s is version %s; this package (%s) is version %s and needs a library that is as "
                          "new and of the same major version" % (path, found, __file__, written_for))


def _check(library, path):
    abi = library.conv_fft_version_abi()
    if abi != structs.ABI:
        raise ImportError("conv_fft: %s has binary interface %d; these bindings (%s) are written for %d. "
                          "Install both from one version" % (path, abi, __file__, structs.ABI))
    sizes = {structs.Problem: _written_bytes(library.conv_fft_problem_init, structs.MAX_RANK),
             structs.PlanOptions: _written_bytes(library.conv_fft_plan_options_init),
             structs.ContextOptions: _written_bytes(library.conv_fft_context_options_init)}
    for struct, size in sizes.items():
        if ctypes.sizeof(struct) != size:
            raise ImportError("conv_fft: %s has a struct %s of %d bytes; in these bindings (%s) it has %d bytes" %
                              (path, struct.__name__, size, __file__, ctypes.sizeof(struct)))


lib, path = _load()
_check(lib, path)
version = lib.conv_fft_version_string().decode()
if _PACKAGE_VERSION:
    _check_version(version, path, _PACKAGE_VERSION)
lock = threading.RLock()


def failure(status):
    """The exception for a status that this thread's last call returned."""
    sentence = lib.conv_fft_last_error().decode("utf-8", "replace") or lib.conv_fft_status_string(status).decode()
    error = BY_STATUS.get(status, Error)(sentence)
    error.status = status
    return error


def check(status):
    if status:
        raise failure(status)


def report(function, before=(), after=()):
    """The text of a report function. Its parameters: `before`, a buffer, its bytes, the bytes needed, `after`."""
    needed = ctypes.c_size_t()
    check(function(*before, None, 0, ctypes.byref(needed), *after))
    text = ctypes.create_string_buffer(needed.value + 4096)
    check(function(*before, text, len(text), ctypes.byref(needed), *after))
    return text.value.decode("utf-8", "replace")
