# SPDX-License-Identifier: Apache-2.0
"""One kind of call (shapes, strides, type, device, parameters) and all that it needs but the tensors' addresses."""
import ctypes
import functools
import threading
import warnings

import torch

from .. import _structs as structs
from .. import tuning
from .._library import failure, lib
from .._torch_memory import ONE, allocator, capturing, workspace
from ..errors import Error
from ..plan import plans
from ..problem import Problem

DTYPES = {getattr(torch, name): name for name in structs.DTYPES}
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
MODES = tuple(structs.PADDINGS)

_forward, _backward = lib.conv_fft_forward, lib.conv_fft_backward
_float32 = torch.float32
SHORT = (torch.float16, torch.bfloat16)
# The arithmetic that torch allows for convolutions of FP32 tensors on a GPU.
if hasattr(torch._C, "_get_fp32_precision_getter"):
    precision = functools.partial(torch._C._get_fp32_precision_getter, "cuda", "conv")
else:
    precision = torch._C._get_cudnn_allow_tf32


def has_fp32_weights(dtype, weight_dtype):
    """Whether w and the bias are of FP32 beside FP16 or BF16 tensors, as under autocast."""
    return weight_dtype is _float32 and dtype in SHORT


def allows_tf32():
    return precision() in ("tf32", True)


def is_last(t):
    """Whether a tensor is in torch's channels_last format, and not contiguous as well, or some channels of such a
    tensor, as torch.split() gives them."""
    return t.dim() in FORMATS and not t.is_contiguous() and (
        t.is_contiguous(memory_format=FORMATS[t.dim()]) or _has_neighbouring_channels(t.shape, t.stride()))


def _has_neighbouring_channels(shape, strides):
    """Whether each element of an image has its channels side by side, and elements follow one another, with gaps."""
    if len(shape) not in FORMATS or strides[1] != 1 or shape[1] < 2:
        return False
    least = shape[1]
    for axis in (*range(len(shape) - 1, 1, -1), 0):
        if strides[axis] < least:
            return False
        least = strides[axis] * shape[axis]
    return True


def dense_strides(shape, last):
    """Element strides of a dense tensor of shape (N, C, axes) whose channels stand first or last in memory."""
    order = (0, *range(2, len(shape)), 1) if last else range(len(shape))
    strides, step = [0] * len(shape), 1
    for axis in reversed(list(order)):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def _lies(shape, strides, last):
    return all(extent == 1 or one == other for extent, one, other in zip(shape, strides, dense_strides(shape, last)))


def _aligned(tensor):
    """The tensor, or a copy with its strides that begins at a multiple of 16 bytes, as the library's kernels need."""
    return tensor.clone() if tensor.data_ptr() & 15 else tensor


class Placement:
    """How the library reads a tensor with the caller's strides: in place, or from a contiguous copy."""

    def __init__(self, shape, strides):
        self.shape = tuple(shape)
        self.first = _lies(shape, strides, False)
        # A tensor in both formats counts as channels first.
        self.last = not self.first and _lies(shape, strides, True)
        self.copied = not (self.first or self.last)
        self.last = self.last or self.copied and _has_neighbouring_channels(shape, strides)
        self.strides = dense_strides(shape, self.last)
        self.format = FORMATS[len(self.shape)] if self.last and len(self.shape) in FORMATS else torch.contiguous_format

    def copy(self, tensor):
        return tensor.contiguous(memory_format=self.format)


class Entry:
    """Runs the passes of one kind of call. `prepare` makes the plans; a later call only fills in addresses."""

    def __init__(self, x_shape, x_strides, w_shape, w_strides, dtype, weight_dtype, device, config, exact, y_last):
        self.exact = exact
        stride, pads, dilation, groups, mode = config
        rank = len(x_shape) - 2
        self.x, self.w = Placement(x_shape, x_strides), Placement(w_shape, w_strides)
        self.config, self.dtype, self.weight_dtype, self.device = config, dtype, weight_dtype, device
        self.number = device.index if device.type == "cuda" else structs.DEVICE_CPU
        layout = "last" if y_last else "first"
        in_order = (lambda shape: (shape[0], *shape[2:], shape[1])) if y_last else tuple
        w_order = (lambda shape: (shape[0], *shape[2:], shape[1])) if self.w.last else tuple
        self.problem = Problem(in_order(self.x.shape), w_order(self.w.shape), stride=stride,
                               padding=tuple(zip(pads[:rank], pads[rank:])), dilation=dilation, groups=groups,
                               padding_mode=MODES[mode], layout=layout, dtype=DTYPES[dtype],
                               weight_dtype=DTYPES[weight_dtype], math=math_of(dtype, device.type, exact),
                               weight_layout="last" if self.w.last else "first",
                               x_stride=self.x.strides if self.x.last != y_last else None)
        y = self.problem.output_shape
        self.y_shape = (y[0], y[-1], *y[1:-1]) if y_last else y
        self.y_strides = dense_strides(self.y_shape, y_last)
        self.y_last = y_last
        self.y_format = FORMATS[rank + 2] if y_last else torch.contiguous_format
        self.bias_shape = (self.w.shape[0],)
        self.of_channels, self.but_channels = (-1, *(1,) * rank), (0, *range(2, rank + 2))
        self.plans, self.handles, self.bytes = {}, {}, {}
        self.kind = self.x.shape, self.w.shape, dtype, device, config

    def prepare(self, passes):
        """Make the plan of a set of passes. Raises conv_fft.Error."""
        if passes not in self.handles:
            # Two threads that come here at once take the same plan, the one that is stored first.
            plan = self.plans.setdefault(passes, plans.get(self.problem, self.number, passes, trusted=True))
            self.bytes[passes] = plan.workspace[passes]
            self.handles[passes] = ctypes.c_void_p(plan.handle)  # ctypes takes it faster than an integer

    def forward(self, x, w, bias):
        if self.x.copied:
            x = self.x.copy(x)
        if self.w.copied:
            w = self.w.copy(w)
        if bias is not None and not bias.is_contiguous():
            bias = bias.contiguous()
        number = self.number
        empty = allocator(number)
        y = empty(self.y_shape, self.y_strides, self.dtype)
        # `held` keeps the workspace alive until the call returns.
        at, size, stream, held = workspace(self.bytes[1], number, self.plans.values())
        x_at, w_at = x.data_ptr(), w.data_ptr()
        if (x_at | w_at) & 15 and number >= 0:
            x, w = _aligned(x), _aligned(w)
            x_at, w_at = x.data_ptr(), w.data_ptr()
        status = _forward(self.handles[1], x_at, w_at, None if bias is None else bias.data_ptr(),
                          y.data_ptr(), at, size, stream)
        if status:
            raise failure(status)
        return y

    def backward(self, x, w, gy, need_x, need_w, need_bias):
        """(gx, gw, gbias), with None for those that are not needed. Returns None if gy has no memory of its own.

        x is read for gw, and w for gx. One that is not read may be None."""
        if gy.is_neg():
            gy = gy.resolve_neg()
        try:
            if not (gy.is_contiguous(memory_format=self.y_format) if self.y_last else gy.is_contiguous()):
                gy = gy.contiguous(memory_format=self.y_format)
            gy_at = gy.data_ptr()
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError:  # gy is batched by vmap, or by torch.autograd.grad(is_grads_batched=True)
            return None
        number = self.number
        if gy_at & 15 and number >= 0:
            gy = _aligned(gy)
            gy_at = gy.data_ptr()
        empty = allocator(number)
        gx = gw = gbias = None
        x_at = w_at = gx_at = gw_at = gbias_at = None
        passes = 0
        if need_x:
            passes = 2
            if self.w.copied:
                w = self.w.copy(w)
            gx = empty(self.x.shape, self.x.strides, self.dtype)
            w_at, gx_at = w.data_ptr(), gx.data_ptr()
            if w_at & 15 and number >= 0:
                w = _aligned(w)
                w_at = w.data_ptr()
        if need_w:
            passes |= 4
            if self.x.copied:
                x = self.x.copy(x)
            gw = empty(self.w.shape, self.w.strides, self.weight_dtype)
            x_at, gw_at = x.data_ptr(), gw.data_ptr()
            if x_at & 15 and number >= 0:
                x = _aligned(x)
                x_at = x.data_ptr()
        if need_bias:
            gbias = empty(self.bias_shape, ONE, self.weight_dtype)
            gbias_at = gbias.data_ptr()
        passes = passes or 2
        try:
            handle = self.handles[passes]
        except KeyError:
            self.prepare(passes)
            handle = self.handles[passes]
        at, size, stream, held = workspace(self.bytes[passes], number, self.plans.values())
        status = _backward(handle, x_at, w_at, gy_at, gx_at, gw_at, gbias_at, 0, at, size, stream)
        if status:
            raise failure(status)
        return gx, gw, gbias


    def transposed(self, x, w, bias):
        """The data gradient of x, plus a bias."""
        y, _, _ = self.backward(None, w, x, True, False, False)
        return y if bias is None else y.add_(bias.view(self.of_channels))

    def transposed_gradients(self, x, w, g, need_x, need_w, need_bias):
        """As `backward`, of `transposed`: for g, the gradient of its result.

        Also returns None if plans are not made yet, and cannot be."""
        g = g.resolve_neg()
        try:
            if not (g.is_contiguous(memory_format=self.y_format) if self.x.last else g.is_contiguous()):
                g = g.contiguous(memory_format=self.y_format if self.x.last else torch.contiguous_format)
            g.data_ptr()
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError:  # as in backward()
            return None
        for passes in {1 if need_x else 0, 4 if need_w else 0} - {0} - set(self.handles):
            if self.number >= 0 and capturing():
                return None  # a capture does not allow to load kernels
            self.prepare(passes)
        return (self.forward(g, w, None) if need_x else None,
                self.backward(g, None, x, False, True, False)[1] if need_w else None,
                g.sum(self.but_channels, dtype=self.weight_dtype) if need_bias else None)


# The kinds of calls that torch computes, and why.
fallbacks = {}
_entries = {}
_lock = threading.Lock()
GRADIENTS_ONLY = 8  # beside the bits of passes
epoch = object()  # part of every key; a new one makes all entries that layers remember out of date


def forget():
    global epoch
    with _lock:
        epoch = object()
        _entries.clear()
        fallbacks.clear()


tuning.forgetters.append(forget)


def look_up(x, w, bias, config, need, exact):
    """The Entry of a call, with the plans that it needs; None if torch has to compute the call.

    config  (stride, pads before then after, dilation, groups, mode)
    need    bits of the passes of the gradients that will be needed; with GRADIENTS_ONLY there is no forward pass
    exact   whether 16-bit tensors are computed in FP32 inside"""
    dtype = x.dtype
    # is_contiguous() is faster than stride().
    key = (x.shape, x.is_contiguous() or x.stride(), w.shape, w.is_contiguous() or w.stride(), dtype, w.dtype, x.device,
           w.device, config, need, precision() if dtype is _float32 else exact,
           None if bias is None else (bias.dtype, bias.shape, bias.device), epoch)
    try:
        return _entries[key]
    except KeyError:
        return _make(key, x, w, bias, config, need, exact)


def math_of(dtype, kind, exact):
    """The math mode of a call on a kind of device."""
    if dtype in SHORT:
        return "default" if exact else "half"
    return "tf32" if kind == "cuda" and dtype == _float32 and allows_tf32() else "default"


def entry_of(x, w, config, device, exact):
    """The Entry of a call on a device, without plans yet. Only the shapes, strides and types of x and w are read."""
    return Entry(x.shape, x.stride(), w.shape, w.stride(), x.dtype, w.dtype, device, config, exact,
                 is_last(x) or is_last(w))


def _make(key, x, w, bias, config, need, exact):
    if x.dim() != w.dim():
        return None  # x is unbatched or wrong
    if x.is_cuda and capturing():
        return None  # a capture does not allow to load kernels; the same call outside of it gets an entry
    reason = _unsuitable(x, w, bias, config[3])
    entry = lacking = None
    if reason is None:
        try:
            entry = entry_of(x, w, config, x.device, exact)
            for passes in {need & 6, 0 if need & GRADIENTS_ONLY else 1} - {0}:
                entry.prepare(passes)
        except (Error, ValueError, MemoryError) as error:
            lacking = entry if lacks_memory(error) else None
            entry, reason = None, str(error)
    kind = tuple(x.shape), tuple(w.shape), x.dtype, x.device, config
    with _lock:
        if len(_entries) >= plans.limit:
            _entries.clear()
            fallbacks.clear()
        said = kind in fallbacks
        if entry is None:
            fallbacks[kind] = reason
        _entries[key] = entry
    if lacking is not None and not said:
        _warn(lacking, reason)
    return entry


def lacks_memory(error):
    # On a CPU torch's allocator raises a RuntimeError like any other.
    return isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)) or "DefaultCPUAllocator" in str(error)


def _warn(entry, reason):
    size = max(entry.bytes.values(), default=0)
    warnings.warn("conv_fft: memory was lacking for the layer %s%s: %s; torch computes it from now on"
                  % (entry.problem.line, " with a workspace of %d bytes" % size if size else "",
                     reason.strip().partition("\n")[0]), RuntimeWarning, stacklevel=2)


def give_up(entry, error):
    """Leave all later calls of an entry to torch: each new try would be slow. Errors that are neither the library's nor
    of lacking memory are raised again."""
    global epoch
    memory = lacks_memory(error)
    if not memory and not isinstance(error, Error):
        raise error
    with _lock:
        epoch = object()
        for key, found in list(_entries.items()):
            del _entries[key]
            _entries[(*key[:-1], epoch)] = None if found is entry else found
        said = entry.kind in fallbacks
        fallbacks[entry.kind] = str(error)
    if memory and not said:
        _warn(entry, str(error))


def _unsuitable(x, w, bias, groups):
    """Why torch has to compute a call or report its error, whatever the library supports; None if it need not."""
    if x.dtype not in DTYPES:
        return "tensors are of %s" % x.dtype
    if x.device.type not in ("cuda", "cpu"):
        return "tensors are on the device %s" % x.device
    if 0 in x.shape or 0 in w.shape:
        return "a tensor is empty"
    if x.dim() != w.dim() or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        return "the shapes do not fit"
    if (x.dtype != w.dtype and not has_fp32_weights(x.dtype, w.dtype)) or x.device != w.device:
        return "the types or devices differ"
    if bias is not None and (bias.dtype != w.dtype or bias.device != w.device or tuple(bias.shape) != (w.shape[0],)):
        return "the bias does not fit"
    return None
