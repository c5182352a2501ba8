# SPDX-License-Identifier: Apache-2.0
"""Convolution layers for CNN training, computed through small batched FFTs.

    y = conv_fft.forward(x, w, bias, padding="same")
    gx, gw, gbias = conv_fft.backward(x, w, gy, padding="same")
    plan = conv_fft.Plan("in=8x16x32x32 out=32 kernel=9x9 pad=same", "cuda:0")

    import conv_fft.torch               layers for PyTorch: Conv1d.., functional, convert, revert

NumPy arrays are computed on the CPU. Arrays of torch, CuPy, numba and JAX are computed where they are.
The import needs neither a GPU nor CUDA. NumPy is needed for NumPy arrays only. Errors are conv_fft.Error."""
from . import cache
from ._context import context, wheel_folders
from ._library import path as library_path
from ._library import version as __version__
from ._workspaces import free_workspaces
from .errors import (Cancelled, CompileError, DeviceError, Error, FileError, InternalError, InvalidArgument,
                     LibraryMissing, NoDevice, NotSupported, OutOfMemory)
from .functional import backward, forward
from .plan import Plan, PlanCache, plans
from .problem import Problem
from .tuning import autotune, candidates, data_folder, devices, tune

__all__ = ["Cancelled", "CompileError", "DeviceError", "Error", "FileError", "InternalError", "InvalidArgument",
           "LibraryMissing", "NoDevice", "NotSupported", "OutOfMemory", "Plan", "PlanCache", "Problem", "__version__",
           "autotune", "backward", "cache", "candidates", "context", "data_folder", "devices", "forward",
           "free_workspaces", "library_path", "plans", "tune", "wheel_folders"]
