# SPDX-License-Identifier: Apache-2.0
"""The layer of depthwise causal 1-D convolutions."""
import math

import torch
from torch import nn

from . import _causal
from ._precision import Layer


class CausalConv1d(Layer, nn.Module):
    """A depthwise causal convolution: functional.causal_conv1d() with parameters.

    Parameters and initialisation are those of torch.nn.Conv1d(channels, channels, kernel_size, groups=channels,
    bias=bias): weight (channels, 1, kernel_size), bias (channels,) or None. Its state_dict fits.

    activation  None, "silu", or "swish", which is the same
    layout      "ncl": tensors are (N, channels, L); "nlc": (N, L, channels)
    Raises TypeError and ValueError for arguments that do not fit."""

    def __init__(self, channels, kernel_size, bias=True, activation=None, layout="ncl", device=None, dtype=None):
        super().__init__()
        for name, value in (("channels", channels), ("kernel_size", kernel_size)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError("%s is %r; it must be an int" % (name, value))
            if value < 1:
                raise ValueError("%s is %d; it must be at least 1" % (name, value))
        _causal.check_choice("activation", activation, _causal.ACTIVATIONS)
        _causal.check_choice("layout", layout, _causal.LAYOUTS)
        self.channels, self.kernel_size, self.activation, self.layout = channels, kernel_size, activation, layout
        self.weight = nn.Parameter(torch.empty((channels, 1, kernel_size), device=device, dtype=dtype))
        self.register_parameter("bias", nn.Parameter(torch.empty((channels,), device=device, dtype=dtype))
                                if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.kernel_size)
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x, initial_states=None, return_final_states=False):
        """y, or (y, final states): as functional.causal_conv1d()."""
        return _causal._whole(x, self.weight.squeeze(1), self.bias, self.activation, initial_states,
                              return_final_states, self.layout, self._conv_fft_precision)

    def initial_state(self, batch, dtype=None):
        """The state before the first sample: zeros (batch, channels, kernel_size - 1).

        dtype   its type; None: the type of the weight"""
        if not isinstance(batch, int) or isinstance(batch, bool):
            raise TypeError("batch is %r; it must be an int" % (batch,))
        if batch < 0:
            raise ValueError("batch is %d; it must be at least 0" % batch)
        return torch.zeros((batch, self.channels, self.kernel_size - 1), device=self.weight.device,
                           dtype=self.weight.dtype if dtype is None else dtype)

    def step(self, x, state):
        """The results for the next samples. The state, of initial_state() or of forward(), is changed in place.

        x   (N, channels): one sample; or T samples in the layer's layout, (N, channels, T) or (N, T, channels)"""
        transposed = self.layout == "nlc" and isinstance(x, torch.Tensor) and x.dim() == 3
        y = _causal._step(x.transpose(1, 2) if transposed else x, state, self.weight.squeeze(1), self.bias,
                          self.activation, self._conv_fft_precision)
        return y.transpose(1, 2) if transposed else y

    def extra_repr(self):
        return "%d, kernel_size=%d, bias=%s, activation=%r, layout=%r" % (
            self.channels, self.kernel_size, self.bias is not None, self.activation, self.layout)
