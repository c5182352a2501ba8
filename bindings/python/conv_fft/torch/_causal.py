# SPDX-License-Identifier: Apache-2.0
"""Depthwise causal 1-D convolutions: of whole sequences, and step by step with a state."""
from __future__ import annotations

from typing import Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor

from . import functional  # which imports this file: its names are read at calls only

ACTIVATIONS = (None, "silu", "swish")
LAYOUTS = ("ncl", "nlc")


def check_choice(name, value, allowed):
    if value is not None and not isinstance(value, str) or value not in allowed:
        raise ValueError("%s is %r; it must be %s" % (name, value, " or ".join(repr(word) for word in allowed)))


def _check_tensor(name, value, dims):
    if not isinstance(value, Tensor):
        raise TypeError("%s is a %s; it must be a torch.Tensor" % (name, type(value).__name__))
    if value.dim() not in dims:
        raise ValueError("%s has %d dimensions; it must have %s" % (name, value.dim(), " or ".join(map(str, dims))))
    if not value.is_floating_point():
        raise TypeError("%s is of %s; it must be of a floating-point type" % (name, value.dtype))


def _check(x, weight, bias, activation, dims, channel_axis):
    """Raises an error unless x, weight and bias fit."""
    check_choice("activation", activation, ACTIVATIONS)
    _check_tensor("x", x, dims)
    _check_tensor("weight", weight, (2,))
    channels = x.shape[channel_axis]
    if channels < 1:
        raise ValueError("x has 0 channels; it must have at least 1")
    if weight.shape[0] != channels or weight.shape[1] < 1:
        raise ValueError("weight has the shape %s; it must have (%d, K) with K at least 1"
                         % (tuple(weight.shape), channels))
    if bias is not None:
        _check_tensor("bias", bias, (1,))
        if bias.shape[0] != channels:
            raise ValueError("bias has the shape %s; it must have (%d,)" % (tuple(bias.shape), channels))
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and t.device != x.device:
            raise ValueError("%s is on the device %s; it must be on that of x, %s" % (name, t.device, x.device))
        if t is not None and t.dtype != x.dtype and not functional.autocasts(x.device.type):
            raise TypeError("%s is of %s; without autocast it must be of the type of x, %s" % (name, t.dtype, x.dtype))


def _check_state(name, state, x, channels, least, most=None):
    _check_tensor(name, state, (3,))
    length = state.shape[2]
    if (state.shape[0] != x.shape[0] or state.shape[1] != channels or length < least
            or most is not None and length > most):
        raise ValueError("%s has the shape %s; it must have (%d, %d, %d%s)"
                         % (name, tuple(state.shape), x.shape[0], channels, least, " or more" if most is None else ""))
    if state.device != x.device:
        raise ValueError("%s is on the device %s; it must be on that of x, %s" % (name, state.device, x.device))


def _convolve(x, weight, bias, before, precision):
    """The convolution of x (N, C, L), with `before` zeros before its first sample."""
    weight, channels = weight.unsqueeze(1), weight.shape[0]
    length = x.shape[2] + before - weight.shape[2] + 1
    if length > 0:
        y = functional.convolution(x, weight, bias, ((1,), (before, 0), (1,), channels, 0), precision)
        if y is not NotImplemented:
            return y
    # torch refuses signals that are shorter than the kernel. One more zero makes a result of one sample.
    x = F.pad(x, (before + (0 if length > 0 else 1), 0))
    return F.conv1d(x, weight, bias, groups=channels).narrow(2, 0, length)


def _activated(y, activation):
    return y if activation is None else F.silu(y)


def _whole(x, weight, bias, activation, initial_states, return_final_states, layout, precision=None):
    check_choice("layout", layout, LAYOUTS)
    _check(x, weight, bias, activation, (3,), 1 if layout == "ncl" else 2)
    if layout == "nlc":
        x = x.transpose(1, 2)
    taps, length, before = weight.shape[1], x.shape[2], weight.shape[1] - 1
    if initial_states is not None:
        _check_state("initial_states", initial_states, x, x.shape[1], taps - 1, taps - 1)
        x = torch.cat((initial_states.to(x.dtype), x), 2)
        before = 0
    y = _activated(_convolve(x, weight, bias, before, precision), activation)
    y = y.transpose(1, 2) if layout == "nlc" else y
    if not return_final_states:
        return y
    if initial_states is None and length < taps - 1:
        return y, F.pad(x, (taps - 1 - length, 0))
    # A copy: the caller may change it in place, and autograd has kept x.
    last = x.narrow(2, x.shape[2] - taps + 1, taps - 1)
    return y, last.clone(memory_format=torch.contiguous_format)


def _step(x, conv_state, weight, bias, activation, precision=None):
    _check(x, weight, bias, activation, (2, 3), 1)
    taps, channels = weight.shape[1], weight.shape[0]
    _check_state("conv_state", conv_state, x, channels, taps - 1)
    one, state = x.dim() == 2, conv_state.shape[2]
    if one:
        x = x.unsqueeze(2)
    held = conv_state.detach()
    window = torch.cat((held.to(x.dtype), x), 2)
    with torch.no_grad():  # a state of another type is not rounded to x's
        held = window if held.dtype == x.dtype else torch.cat((held, x.to(held.dtype)), 2)
        conv_state.copy_(held.narrow(2, x.shape[2], state))
    used = window.narrow(2, state - taps + 1, taps - 1 + x.shape[2])
    if x.shape[2] == 1:
        y = _one_sample(used, weight, bias)
    else:
        y = _convolve(used, weight, bias, 0, precision)
    y = _activated(y, activation)
    return y.squeeze(2) if one else y


def _one_sample(window, weight, bias):
    """The result of one sample. A sum of products needs no transform and no plan."""
    window, weight, bias = functional.autocast(window.device.type, window, weight, bias)
    exact = torch.promote_types(window.dtype, torch.float32)
    y = (window.to(exact) * weight.to(exact)).sum(2, keepdim=True)
    return (y if bias is None else y + bias.to(exact).unsqueeze(1)).to(window.dtype)


def causal_conv1d(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None, activation: Optional[str] = None,
                  initial_states: Optional[Tensor] = None, return_final_states: bool = False,
                  layout: str = "ncl") -> Union[Tensor, Tuple[Tensor, Tensor]]:
    """A depthwise convolution in which no result depends on later samples: y[t] = bias + sum_k w[k] x[t - K + 1 + k].

    x               (N, C, L); for layout "nlc" (N, L, C)
    weight, bias    (C, K), and (C,) or None
    activation      None, "silu", or "swish", which is the same
    initial_states  (N, C, K - 1) in both layouts: the samples before x, the oldest first; None: zeros
    Returns y, of x's shape. With return_final_states it returns (y, the last K - 1 samples), which are the
    initial_states of what follows x. Gradients reach all tensors. Raises TypeError and ValueError for arguments that do
    not fit."""
    return _whole(x, weight, bias, activation, initial_states, return_final_states, layout)


def causal_conv1d_update(x: Tensor, conv_state: Tensor, weight: Tensor, bias: Optional[Tensor] = None,
                         activation: Optional[str] = None) -> Tensor:
    """The results of `causal_conv1d` for the next samples of a sequence.

    x           (N, C): one sample; (N, C, T): T samples
    conv_state  (N, C, S) with S at least K - 1: the samples before x, the oldest first. It is changed in place: x is
                appended, and the oldest samples are dropped. No gradient reaches it
    The other arguments are those of `causal_conv1d`. Returns y, of x's shape."""
    return _step(x, conv_state, weight, bias, activation)
