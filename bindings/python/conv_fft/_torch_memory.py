# SPDX-License-Identifier: Apache-2.0
"""Memory and streams of torch for calls that must not take long, and a fast check of tensors."""
import threading
from ctypes import c_size_t, c_void_p

import torch

from . import _workspaces

# The allocators of torch.compile's generated code take half as long as torch.empty_strided(). They serve the current
# GPU only.
_guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
empty_cpu, empty_cuda = (getattr(_guards, "_empty_strided_" + kind, None) for kind in ("cpu", "cuda"))
# Its check in C++ of types, shapes, strides, devices and dispatch keys of tensors. The keys also tell a negated or
# sparse tensor, and whether autocast, torch.func, a trace or inference mode is active. Its check() is called with as
# many tensors as it was made from. A torch without it has None here.
_TensorGuards = getattr(_guards, "TensorGuards", None)

capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None) or (lambda: False)
device_now = getattr(torch._C, "_cuda_getDevice", None) or (lambda: -1)
if hasattr(torch._C, "_cuda_getCurrentRawStream"):
    current_stream = torch._C._cuda_getCurrentRawStream
else:
    def current_stream(index):
        return torch.cuda.current_stream(index).cuda_stream

ONE = (1,)
# Each thread holds one workspace of this size per GPU. Calls in the default stream that need no more use it and
# allocate nothing. In other streams torch may allocate from the pool of a graph, where nothing else may stay.
SMALL = 4 << 20
_kept = threading.local()
# Plans whose kernels are part of a captured graph. They are never freed, as the graph may be replayed at any time.
_captured = set()


def check_of(*tensors):
    """A function that tells whether tensors are like these; None if this torch has no fast check."""
    if _TensorGuards is None:
        return None
    return _TensorGuards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check


def allocator(number):
    """empty_strided(shape, strides, dtype) for the CPU (a negative number) or a GPU."""
    fast = empty_cpu if number < 0 else empty_cuda
    if fast is not None and (number < 0 or device_now() == number):
        return fast
    device = torch.device("cpu") if number < 0 else torch.device("cuda", number)
    return lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device=device)


def workspace(size, number, plans):
    """The address and bytes of a workspace and the stream, for ctypes, and what keeps the workspace alive.

    plans       if the stream is captured, these are never freed"""
    if number < 0:
        if not size:
            return None, 0, None, None
        found = _workspaces.workspace(size)
        return found[0], found[1], None, found
    stream = current_stream(number)
    if stream and capturing():  # the default stream is never captured
        _captured.update(plans)
    if not size:
        return None, 0, stream, None
    if not stream and size <= SMALL:
        try:
            return _kept.__dict__[number]
        except KeyError:
            return _keep(number)
    held = allocator(number)((size,), ONE, torch.uint8)
    return held.data_ptr(), size, stream, held


def _keep(number):
    """A workspace for one thread. Its calls run in order, so they can share it."""
    held = allocator(number)((SMALL,), ONE, torch.uint8)
    # ctypes takes its own objects faster than integers.
    _kept.__dict__[number] = found = c_void_p(held.data_ptr()), c_size_t(SMALL), None, held
    return found
