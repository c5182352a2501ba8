# SPDX-License-Identifier: Apache-2.0
"""Statuses of the C library as exceptions."""


class Error(RuntimeError):
    """An error of the library. `str(error)` is its sentence, `status` its number, `name` the number's short text."""

    status = -1

    @property
    def name(self):
        return NAMES.get(self.status, "unknown status")


class InvalidArgument(Error, ValueError):
    """An argument is out of range. The sentence names the argument, its value and the allowed range."""

    status = 1


class NotSupported(Error, NotImplementedError):
    """This device or build does not support the call."""

    status = 2


class OutOfMemory(Error, MemoryError):
    """Memory of the host or of the device ran out."""

    status = 3


class NoDevice(Error):
    """The requested GPU is not usable."""

    status = 4


class LibraryMissing(Error):
    """A CUDA library is missing or too old; the sentence says how to get it."""

    status = 5


class DeviceError(Error):
    """The GPU reported an error."""

    status = 6


class CompileError(Error):
    """A kernel did not compile."""

    status = 7


class FileError(Error):
    """A file could not be read or written."""

    status = 8


class Cancelled(Error):
    """A callback cancelled the call."""

    status = 9


class InternalError(Error):
    """A fault of the library."""

    status = 10


BY_STATUS = {kind.status: kind for kind in Error.__subclasses__()}
NAMES = {1: "invalid argument", 2: "not supported by this device or build", 3: "out of memory", 4: "no usable device",
         5: "a library is missing or too old", 6: "the device reported an error", 7: "a kernel did not compile",
         8: "a file could not be read or written", 9: "cancelled by the caller", 10: "internal error"}
