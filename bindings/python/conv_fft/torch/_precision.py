# SPDX-License-Identifier: Apache-2.0
"""conv_fft.torch.precision: whether convolutions of 16-bit tensors may use 16-bit spectra."""
from __future__ import annotations

import contextlib
import contextvars

from .._values import named

# Whether a call computes in FP32 inside, by the name of a precision.
EXACT = {"fast": False, "exact": True}
# The precisions of the contexts that are entered, as (name, those outside): the innermost first.
_entered = contextvars.ContextVar("conv_fft.torch.precision", default=("fast", None))
in_force = _entered.get


def check_precision(name):
    """Raises ValueError if it is neither None nor the name of a precision."""
    if name is not None:
        named(EXACT, name, "precision")


class precision(contextlib.ContextDecorator):
    """The precision of convolutions of FP16 and BF16 tensors, within this context or decorated function.

        with conv_fft.torch.precision("exact"):
            model(x).sum().backward()

    "fast"      spectra of 16 bits where that is faster, sums in FP32: an error of at most 3 roundings to 16 bits
    "exact"     FP32 inside: an error of about one rounding

    The default is "fast". A layer's attribute `precision`, if not None, has priority. Gradients have the precision of
    their forward call, and compiled graphs that of the call that traced them. Each thread, and each asyncio task, has
    contexts of its own. FP32 tensors obey torch's TF32 switch instead. Raises ValueError for another name."""

    def __init__(self, name: str):
        named(EXACT, name, "precision")
        self.name = name

    def __enter__(self):
        _entered.set((self.name, _entered.get()))
        return self

    def __exit__(self, *_):
        _entered.set(_entered.get()[1])

    def __repr__(self):
        return "conv_fft.torch.precision(%r)" % self.name

    @staticmethod
    def now() -> str:
        """The name of the precision that is in force here."""
        return _entered.get()[0]


def is_exact(name=None):
    """Whether a call computes in FP32 inside: by the name of its layer's precision, or of the one in force."""
    return EXACT[in_force()[0] if name is None else name]


def is_exact_traced(name=None):
    """The same while torch.compile traces, which cannot read context variables. The graph keeps the answer."""
    return _context_is_exact() if name is None else EXACT[name]


def _context_is_exact():
    return is_exact()


# As torch.compiler.assume_constant_result() does, which imports torch's compiler. That takes seconds.
_context_is_exact._dynamo_marked_constant = True


class Layer:
    """The attribute `precision` of a layer: "fast", "exact", or None for the precision in force at a call."""

    __jit_unused_properties__ = ["precision"]  # torch.jit.script() would compile the property
    _conv_fft_precision = None

    @property
    def precision(self):
        return self._conv_fft_precision

    @precision.setter
    def precision(self, name):
        set_precision(self, name)


def set_precision(layer, name):
    check_precision(name)
    if name is None:
        layer.__dict__.pop("_conv_fft_precision", None)
    else:
        layer.__dict__["_conv_fft_precision"] = name
