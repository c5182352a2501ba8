# SPDX-License-Identifier: Apache-2.0
"""What a layer remembers of its last call. A call like it takes one check of its tensors and a few of torch's state."""
import torch
import torch.autograd.forward_ad as forward_ad

from .. import _torch_memory
from . import _entry
from ._precision import in_force

_modes_active = getattr(torch._C, "_len_torch_dispatch_stack", None)
_recording, _autocast_dtype, _arithmetic = torch.is_grad_enabled, torch.get_autocast_dtype, _entry.precision
# Faster than Tensor.to().
_CASTS = {torch.float16: torch.Tensor.half, torch.bfloat16: torch.Tensor.bfloat16,
          torch.float32: torch.Tensor.float, torch.float64: torch.Tensor.double}


def _other_call(x, w, bias):
    return None


class Site:
    """What a layer remembers. A copied or unpickled Site is empty.

    settings    the attributes of the layer that config was made from, and its precision
    config      that of functional.config_of(); None if torch has to report an error
    again       returns the result of a call like the last one, and None for any other call"""

    __slots__ = ("settings", "weight_shape", "config", "again")

    def __init__(self, settings=None, weight_shape=None, config=None):
        self.settings, self.weight_shape, self.config, self.again = settings, weight_shape, config, _other_call

    def __reduce__(self):
        return Site, ()

    def remember(self, x, w, bias, entry, how, recorded, autocasts, epoch):
        """Remember a call that autograd records or not, and that `entry` computes.

        x, w, bias  as given by the caller: x may still have to be cast to the type of autocast, if that is on
        how         _ops.CONVOLUTION or TRANSPOSED
        epoch       _entry.epoch before the entry was looked up"""
        fits = _torch_memory.check_of(*(t for t in (x, w, bias) if t is not None))
        if fits is not None and _modes_active is not None:
            self.again = _again(fits, x, bias, entry, how[recorded], autocasts, epoch, self.settings[-1])


def _again(fits, x, bias, entry, compute, autocasts, epoch, precision):
    recording, has_bias, kind = _recording(), bias is not None, x.device.type
    dtype = _autocast_dtype(kind) if autocasts else None
    cast = None if x.dtype is entry.dtype else _CASTS[entry.dtype]
    # The name of the precision in force; None: the call does not depend on it.
    name = None if entry.dtype not in _entry.SHORT or precision is not None else in_force()[0]
    arithmetic = _arithmetic() if kind == "cuda" and entry.dtype is torch.float32 else None

    def again(x, w, bias):
        if (not (fits(x, w, bias) if has_bias else bias is None and fits(x, w))
                or _recording() is not recording or _entry.epoch is not epoch or _modes_active()
                or forward_ad._current_level >= 0
                or dtype is not None and _autocast_dtype(kind) is not dtype
                or name is not None and in_force()[0] != name
                or arithmetic is not None and _arithmetic() != arithmetic):
            return None
        if cast is not None:
            x = cast(x)
        return compute(x, w, bias, entry)

    return again
