# SPDX-License-Identifier: Apache-2.0
"""conv_fft for PyTorch: layers and functions that replace torch's.

    import conv_fft.torch
    table = conv_fft.torch.convert(model, inputs=(x,))      layers that become faster, in place; revert(model) undoes it
    layer = conv_fft.torch.Conv2d(384, 384, 31, padding="same", groups=384)
    y = conv_fft.torch.functional.conv2d(x, w, padding=15, groups=384)

Autograd (also twice), autocast, torch.compile, CUDA graphs, channels_last, torch.backends.cudnn.allow_tf32 and the
deterministic mode work as with torch's layers. Equal inputs always give the same bits. `fallbacks()` lists the kinds of
calls that torch computes, and why."""
import torch as _torch

if tuple(int(part) for part in _torch.__version__.split("+")[0].split(".")[:2]) < (2, 6):
    raise ImportError("conv_fft.torch needs torch 2.6 or newer; this is %s" % _torch.__version__)

from . import functional  # noqa: E402
from ._precision import precision  # noqa: E402
from .causal import CausalConv1d  # noqa: E402
from .conversion import Conversion, convert, revert  # noqa: E402
from .distributed import share_records  # noqa: E402
from .modules import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d  # noqa: E402


def fallbacks():
    """The kinds of calls that torch computes itself: {(shape of x, of w, dtype, device, parameters): why}."""
    from ._entry import fallbacks as found
    return dict(found)


__all__ = ["CausalConv1d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
           "Conversion", "convert", "fallbacks", "functional", "precision", "revert", "share_records"]
