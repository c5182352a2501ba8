# SPDX-License-Identifier: Apache-2.0
"""torch's convolution layers, computed by conv_fft if supported.

The layers are subclasses: constructor, parameters, state_dict and initialisation are torch's. torch computes the cases
that the library does not support (an empty tensor, complex numbers, torch.func, ...). No call raises that torch
accepts."""
import types
from typing import List, Optional

import torch
from torch import nn

from . import functional
from ._entry import MODES
from ._precision import Layer, is_exact
from ._site import Site

_compiling, _tracing, _eager = torch.compiler.is_compiling, torch._C._get_tracing_state, functional.eager
_dynamo = torch.compiler.is_dynamo_compiling
_MODES = {name: number for number, name in enumerate(MODES)}


def _config_of(weight_shape, stride, padding, dilation, groups, mode):
    return functional.config_of(weight_shape, stride, padding, dilation, groups, _MODES[mode])


def _named(function):
    """A method of torch's under the name by which torch.jit.script() looks for it."""
    return types.FunctionType(function.__code__, function.__globals__, "_of_torch", function.__defaults__,
                              function.__closure__)


class _Convolution(Layer):
    _conv_fft_site = Site()

    def forward(self, input):
        # torch.jit.script() compiles the first branch and does not look at the second.
        if torch.jit.is_scripting():
            return self._of_torch(input, self.weight, self.bias)
        else:
            # nn.Module.__getattr__() is slow, so parameters are read directly. torch reads a weight that is no
            # parameter.
            parameters = self._parameters
            if _dynamo() or "weight" not in parameters or "bias" not in parameters:
                return super().forward(input)
            return self._conv_forward(input, parameters["weight"], parameters["bias"])

    def _conv_forward(self, input, weight, bias):
        if not _dynamo():
            site, precision = self._conv_fft_site, self._conv_fft_precision
            if site.settings == (self.stride, self.padding, self.dilation, self.groups, self.padding_mode, precision):
                y = site.again(input, weight, bias)
                if y is not None:
                    return y
        y = NotImplemented
        if _compiling():
            config = _config_of(weight.shape, self.stride, self.padding, self.dilation, self.groups, self.padding_mode)
            if config is not None:
                y = functional.convolution(input, weight, bias, config, self._conv_fft_precision)
        elif _tracing() is None:  # while traced, extents are tensors, and no site may hold them
            settings = (self.stride, self.padding, self.dilation, self.groups, self.padding_mode, precision)
            if site.settings != settings or site.weight_shape != weight.shape:
                config = _config_of(weight.shape, *settings[:-1])
                site = self.__dict__["_conv_fft_site"] = Site(settings, weight.shape, config)
            if site.config is not None:
                y = _eager(input, weight, bias, site.config, is_exact(precision), site)
        return super()._conv_forward(input, weight, bias) if y is NotImplemented else y


class Conv1d(_Convolution, nn.Conv1d):
    """torch.nn.Conv1d: arguments, parameters and results are its own, computed by conv_fft if supported."""

    _of_torch = _named(nn.Conv1d._conv_forward)


class Conv2d(_Convolution, nn.Conv2d):
    """torch.nn.Conv2d: arguments, parameters and results are its own, computed by conv_fft if supported."""

    _of_torch = _named(nn.Conv2d._conv_forward)


class Conv3d(_Convolution, nn.Conv3d):
    """torch.nn.Conv3d: arguments, parameters and results are its own, computed by conv_fft if supported."""

    _of_torch = _named(nn.Conv3d._conv_forward)


class _Transposed(Layer):
    _conv_fft_site = Site()

    def forward(self, input, output_size: Optional[List[int]] = None):
        if torch.jit.is_scripting():
            return self._of_torch(input, output_size)
        else:
            parameters = self._parameters
            site = None
            if output_size is None and not _dynamo() and "weight" in parameters and "bias" in parameters:
                site = self._conv_fft_site
                settings = (self.stride, self.padding, self.dilation, self.groups, self.output_padding,
                            self._conv_fft_precision)
                if site.settings != settings:
                    site = self.__dict__["_conv_fft_site"] = Site(settings)
                y = site.again(input, parameters["weight"], parameters["bias"])
                if y is not None:
                    return y
            more = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size,
                                        len(self.kernel_size), self.dilation)
            y = functional.transposed(input, self.weight, self.bias, self.stride, self.padding, more, self.groups,
                                      self.dilation, self._conv_fft_precision, site)
            return super().forward(input, output_size) if y is NotImplemented else y


class ConvTranspose1d(_Transposed, nn.ConvTranspose1d):
    """torch.nn.ConvTranspose1d: arguments, parameters and results are its own, computed by conv_fft if supported."""

    _of_torch = _named(nn.ConvTranspose1d.forward)


class ConvTranspose2d(_Transposed, nn.ConvTranspose2d):
    """torch.nn.ConvTranspose2d: arguments, parameters and results are its own, computed by conv_fft if supported."""

    _of_torch = _named(nn.ConvTranspose2d.forward)


class ConvTranspose3d(_Transposed, nn.ConvTranspose3d):
    """torch.nn.ConvTranspose3d: arguments, parameters and results are its own, computed by conv_fft if supported."""

    _of_torch = _named(nn.ConvTranspose3d.forward)


# torch's layer, ours.
PAIRS = [(nn.Conv1d, Conv1d), (nn.Conv2d, Conv2d), (nn.Conv3d, Conv3d), (nn.ConvTranspose1d, ConvTranspose1d),
         (nn.ConvTranspose2d, ConvTranspose2d), (nn.ConvTranspose3d, ConvTranspose3d)]
OURS = dict(PAIRS)
THEIRS = {ours: theirs for theirs, ours in PAIRS}
