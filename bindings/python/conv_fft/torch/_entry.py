# SPDX-License-Identifier: Apache-2.0
"""One kind of call - shapes, strides, type, device, parameters - with everything that can be known before the tensors are."""
import threading

import torch

from .. import _structs as structs
from .. import tuning
from .._library import failure, lib
from ..errors import Error
from ..plan import plans
from ..problem import Problem

DTYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float64: "float64"}
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
MODES = ("zeros", "circular", "reflect", "replicate")

_forward, _backward = lib.conv_fft_forward, lib.conv_fft_backward
_empty_like, _float32 = torch.empty_like, torch.float32
_capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None) or (lambda: False)

if hasattr(torch._C, "_get_fp32_precision_getter"):
    _precision = torch._C._get_fp32_precision_getter

    def allows_tf32():
        return _precision("cuda", "conv") == "tf32"
else:
    allows_tf32 = torch._C._get_cudnn_allow_tf32

if hasattr(torch._C, "_cuda_getCurrentRawStream"):
    current_stream = torch._C._cuda_getCurrentRawStream
else:
    def current_stream(index):
        return torch.cuda.current_stream(index).cuda_stream


def is_last(t):
    """In torch's channels_last, and not in both formats at once."""
    return t.dim() in FORMATS and not t.is_contiguous() and t.is_contiguous(memory_format=FORMATS[t.dim()])


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


class Placement:
    """How a tensor of the caller's strides reaches the library: as it lies, or as a contiguous copy."""

    def __init__(self, shape, strides):
        self.shape = tuple(shape)
        self.first = _lies(shape, strides, False)
        # A tensor that is both is taken for the usual one.
        self.last = not self.first and _lies(shape, strides, True)
        self.copied = not (self.first or self.last)
        self.strides = dense_strides(shape, self.last)


class Entry:
    """Runs the passes of one kind of call. Plans are made by `prepare`; a call after that only fills in addresses."""

    def __init__(self, x_shape, x_strides, w_shape, w_strides, dtype, device, config, math, y_last):
        stride, pads, dilation, groups, mode = config
        rank = len(x_shape) - 2
        self.x, self.w = Placement(x_shape, x_strides), Placement(w_shape, w_strides)
        self.config, self.dtype, self.device = config, dtype, device
        self.number = device.index if device.type == "cuda" else structs.DEVICE_CPU
        layout = "last" if y_last else "first"
        in_order = (lambda shape: (shape[0], *shape[2:], shape[1])) if y_last else tuple
        w_order = (lambda shape: (shape[0], *shape[2:], shape[1])) if self.w.last else tuple
        self.problem = Problem(in_order(self.x.shape), w_order(self.w.shape), stride=stride, padding=tuple(zip(pads[:rank], pads[rank:])),
                               dilation=dilation, groups=groups, padding_mode=MODES[mode], layout=layout,
                               weight_layout="last" if self.w.last else "first", dtype=DTYPES[dtype], math=math,
                               x_stride=self.x.strides if self.x.last != y_last else None)
        y = self.problem.output_shape
        self.y_shape = (y[0], y[-1], *y[1:-1]) if y_last else y
        self.y_strides = dense_strides(self.y_shape, y_last)
        self.y_format = FORMATS[rank + 2] if y_last else torch.contiguous_format
        # An array like x is made sooner than one that is described.
        self.like_x = (self.y_shape, self.y_strides) == (self.x.shape, self.x.strides) and not self.x.copied
        self.plans, self.handles, self.bytes = {}, {}, {}

    def prepare(self, passes):
        """Make the plan of a set of passes. Raises conv_fft.Error."""
        if passes not in self.handles:
            # Of two threads that come here at once both take the plan that is kept.
            plan = self.plans.setdefault(passes, plans.get(self.problem, self.number, passes, trusted=True))
            self.bytes[passes] = plan.workspace[passes]
            self.handles[passes] = plan.handle

    def _place(self, passes):
        """The workspace of a call, the tensor that holds it, and the stream."""
        size = self.bytes[passes]
        stream = None
        if self.number >= 0:
            stream = current_stream(self.number)
            if _capturing():
                _captured.update(self.plans.values())
            elif 0 < size <= SMALL:
                held = _small_workspace(self.number, stream, self.device)
                return held.data_ptr(), size, stream, held
        if not size:
            return None, 0, stream, None
        held = torch.empty((size,), dtype=torch.uint8, device=self.device)
        return held.data_ptr(), size, stream, held

    def forward(self, x, w, bias):
        if self.x.copied:
            x = x.contiguous()
        if self.w.copied:
            w = w.contiguous()
        if bias is not None and not bias.is_contiguous():
            bias = bias.contiguous()
        y = _empty_like(x) if self.like_x else x.new_empty_strided(self.y_shape, self.y_strides)
        workspace, size, stream, held = self._place(1)  # held until the call has been made
        status = _forward(self.handles[1], x.data_ptr(), w.data_ptr(), None if bias is None else bias.data_ptr(), y.data_ptr(),
                          workspace, size, stream)
        if status:
            raise failure(status)
        return y

    def backward(self, gy, x, w, need_x, need_w, need_bias):
        """(gx, gw, gbias), None for what is not needed. x is read for gw, w for gx; either may be None otherwise."""
        gy = gy.contiguous(memory_format=self.y_format)
        gx = gw = gbias = None
        x_at = w_at = gx_at = gw_at = gbias_at = None
        passes = 0
        if need_x:
            passes = 2
            w = w.contiguous() if self.w.copied else w
            gx = gy.new_empty_strided(self.x.shape, self.x.strides)
            w_at, gx_at = w.data_ptr(), gx.data_ptr()
        if need_w:
            passes |= 4
            x = x.contiguous() if self.x.copied else x
            gw = gy.new_empty_strided(self.w.shape, self.w.strides)
            x_at, gw_at = x.data_ptr(), gw.data_ptr()
        if need_bias:
            gbias = gy.new_empty((self.w.shape[0],))
            gbias_at = gbias.data_ptr()
        set_ = passes or 2
        if set_ not in self.handles:
            self.prepare(set_)
        workspace, size, stream, held = self._place(set_)
        status = _backward(self.handles[set_], x_at, w_at, gy.data_ptr(), gx_at, gw_at, gbias_at, 0, workspace, size, stream)
        if status:
            raise failure(status)
        return gx, gw, gbias


# A workspace of at most this many bytes is kept, one for each thread and stream, rather than asked for at each call.
SMALL = 4 << 20
_kept = threading.local()


def _small_workspace(number, stream, device):
    """Kernels of one stream follow each other, and a call enqueues all of its own before its thread makes the next."""
    kept = _kept.__dict__
    held = kept.get((number, stream))
    if held is None:
        if len(kept) > 64:
            kept.clear()
        held = kept[number, stream] = torch.empty(SMALL, dtype=torch.uint8, device=device)
    return held


# Plans whose kernels are part of a captured graph: it may be replayed as long as the process lives.
_captured = set()
# Kinds of calls that torch itself computes, and why.
fallbacks = {}
_entries = {}
_lock = threading.Lock()
LIMIT = 4096


def forget():
    with _lock:
        _entries.clear()
        fallbacks.clear()


tuning.forgetters.append(forget)


def look_up(x, w, bias, config, need):
    """The Entry of a call, with the plans that it needs; None where torch has to do it.

    config  (stride, pads before then after, dilation, groups, mode), need the passes of the gradients that will be wanted."""
    dtype = x.dtype
    # That a tensor is contiguous is known sooner than its strides are.
    key = (x.shape, x.is_contiguous() or x.stride(), w.shape, w.is_contiguous() or w.stride(), dtype, w.dtype, x.device, w.device, config,
           need, dtype is _float32 and allows_tf32(), None if bias is None else (bias.dtype, bias.shape, bias.device))
    try:
        return _entries[key]
    except KeyError:
        return _make(key, x, w, bias, config, need)


def entry_of(x, w, config, device):
    """The Entry of a call on a device, without plans yet; of x and w only what describes them is looked at."""
    math = "tf32" if device.type == "cuda" and x.dtype == torch.float32 and allows_tf32() else "default"
    return Entry(x.shape, x.stride(), w.shape, w.stride(), x.dtype, device, config, math, is_last(x) or is_last(w))


def _make(key, x, w, bias, config, need):
    device_type = x.device.type
    if device_type == "cuda" and _capturing():
        return None  # kernels cannot be loaded now, and the same call outside a capture can have them
    reason = _unsuitable(x, w, bias, config[3])
    entry = None
    if reason is None:
        try:
            entry = entry_of(x, w, config, x.device)
            for passes in {1, need} - {0}:
                entry.prepare(passes)
        except (Error, ValueError) as error:
            entry, reason = None, str(error)
    with _lock:
        if len(_entries) >= LIMIT:
            _entries.clear()
            fallbacks.clear()
        if entry is None:
            fallbacks[tuple(x.shape), tuple(w.shape), x.dtype, x.device, config] = reason
        _entries[key] = entry
    return entry


def give_up(entry, error):
    """Leave the calls of an entry to torch from now on: mostly its workspace does not fit, and trying that each time is slow."""
    with _lock:
        for key in [key for key, found in _entries.items() if found is entry]:
            _entries[key] = None
    fallbacks[entry.x.shape, entry.w.shape, entry.dtype, entry.device, entry.config] = str(error)


def _unsuitable(x, w, bias, groups):
    """Why torch has to do it, whatever the library can, or has to say what is wrong; None if neither."""
    if x.dtype not in DTYPES:
        return "tensors are of %s" % x.dtype
    if x.device.type not in ("cuda", "cpu"):
        return "tensors are on the device %s" % x.device
    if 0 in x.shape or 0 in w.shape:
        return "a tensor is empty"
    if x.dim() != w.dim() or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        return "the shapes do not fit"
    if x.dtype != w.dtype or x.device != w.device:
        return "the types or devices differ"
    if bias is not None and (bias.dtype != w.dtype or bias.device != w.device or tuple(bias.shape) != (w.shape[0],)):
        return "the bias does not fit"
    return None
