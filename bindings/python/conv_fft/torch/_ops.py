# SPDX-License-Identifier: Apache-2.0
"""The registered operators conv_fft::forward, ::backward and ::backward_data, which torch.compile, export and modes
see.

Each has a fake implementation, and its gradient consists of the others. stride, dilation: one per axis. padding: before
each axis, then after each. mode: an index of _entry.MODES. exact: whether 16-bit tensors are computed in FP32 inside.
Beside FP16 and BF16 tensors, w and bias may be of FP32, and so are their gradients then. torch computes the calls that
the library does not support."""
import contextlib

import torch
import torch.nn.functional as F

from . import _entry

_library = torch.library.Library("conv_fft", "DEF")
_tags = tuple(tag for tag in (getattr(torch.Tag, name, None)
                              for name in ("pt2_compliant_tag", "needs_fixed_stride_order")) if tag)
_parameters = "int[] stride, int[] padding, int[] dilation, int groups, int mode"
_exact = "bool exact=False"
_library.define("forward(Tensor x, Tensor w, Tensor? bias, %s, %s) -> Tensor" % (_parameters, _exact), tags=_tags)
# Gradients that are not wanted are returned empty. x is read for the gradient of w only, and w for that of x only.
_library.define("backward(Tensor x, Tensor w, Tensor gy, %s, bool[] wanted, %s) -> (Tensor, Tensor, Tensor)"
                % (_parameters, _exact), tags=_tags)
# The gradient of an x of `size` spatial extents: a transposed convolution.
_library.define("backward_data(Tensor w, Tensor gy, SymInt[] size, %s, %s) -> Tensor" % (_parameters, _exact),
                tags=_tags)

_CONVOLUTIONS = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
_Tensor, _recording = torch.Tensor, torch.is_grad_enabled
# After one of these torch computes the call, unless _entry.give_up() raises it again. It does so after the `except`:
# within it the error would hold the memory of the failed call.
FAILURES = (RuntimeError, MemoryError)


def _config(stride, padding, dilation, groups, mode):
    return tuple(stride), tuple(padding), tuple(dilation), groups, mode


def by_torch(x, w, bias, stride, padding, dilation, groups, mode):
    """The same convolution, computed by torch."""
    rank = len(stride)
    before, after = padding[:rank], padding[rank:]
    if _entry.has_fp32_weights(x.dtype, w.dtype):
        w, bias = w.to(x.dtype), None if bias is None else bias.to(x.dtype)
    if mode == 0 and tuple(before) == tuple(after):
        return _CONVOLUTIONS[rank](x, w, bias, stride, before, dilation, groups)
    pairs = [pad for axis in reversed(range(rank)) for pad in (before[axis], after[axis])]
    x = F.pad(x, pairs, mode=_entry.MODES[mode]) if mode else F.pad(x, pairs)
    return _CONVOLUTIONS[rank](x, w, bias, stride, 0, dilation, groups)


@contextlib.contextmanager
def _autograd():
    """Within this, autograd records, also below it: within an operator's implementation."""
    key = torch._C.DispatchKey.AutogradFunctionality
    excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(key)
    torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)
    try:
        yield
    finally:
        torch._C._dispatch_tls_set_dispatch_key_excluded(key, excluded)


def _gradients_by_torch(x, w, gy, config, wanted):
    with torch.enable_grad(), _autograd():
        inputs = [t.detach().requires_grad_() for t in (x, w)]
        bias = torch.zeros(w.shape[0], dtype=w.dtype, device=w.device, requires_grad=True)
        y = by_torch(*inputs, bias, *config)
    sources = [t for t, need in zip((*inputs, bias), wanted) if need]
    found = iter(torch.autograd.grad(y, sources, gy))
    return tuple(next(found) if need else None for need in wanted)


def gradients(x, w, gy, config, wanted, exact):
    """(gx, gw, gbias), with None for those that are not wanted. Called only while autograd records nothing."""
    need = (2 if wanted[0] else 0) | (4 if wanted[1] else 0)
    entry = _entry.look_up(x, w, None, config, need | _entry.GRADIENTS_ONLY, exact)
    if entry is not None:
        try:
            found = entry.backward(x, w, gy, *wanted)
            if found is not None:
                return found
        except FAILURES as error:
            _entry.give_up(entry, error)
    return _gradients_by_torch(x, w, gy, config, wanted)


# ---------------------------------------------------------------------------------------- what runs

def _output_format(x, w):
    return _entry.FORMATS[x.dim()] if _entry.is_last(x) or _entry.is_last(w) else torch.contiguous_format


def _forward(x, w, bias, stride, padding, dilation, groups, mode, exact=False):
    x, w, bias = (None if t is None else t.detach().resolve_neg() for t in (x, w, bias))
    config = _config(stride, padding, dilation, groups, mode)
    entry = _entry.look_up(x, w, bias, config, 0, exact)
    y = by_torch(x, w, bias, *config) if entry is None else convolution(x, w, bias, entry)
    return y.contiguous(memory_format=_output_format(x, w))


def _check_gradient(operator, x, w, gy, stride, padding, dilation):
    """Autograd passes a gy that fits. Other callers of the operator might not."""
    shape = (x.shape[0], w.shape[0], *output_extents(x, w, stride, padding, dilation))
    if tuple(gy.shape) != shape or gy.dtype != x.dtype or gy.device != x.device:
        raise RuntimeError("conv_fft::%s: gy has the shape %s, type %s and device %s; it must have %s, %s and %s, as x "
                           "has the shape %s and w has %s" %
                           (operator, tuple(gy.shape), gy.dtype, gy.device, shape, x.dtype, x.device, tuple(x.shape),
                            tuple(w.shape)))


def _backward(x, w, gy, stride, padding, dilation, groups, mode, wanted, exact=False):
    _check_gradient("backward(x, w, gy, ...)", x, w, gy, stride, padding, dilation)
    with torch.no_grad():
        found = gradients(x, w, gy, _config(stride, padding, dilation, groups, mode), wanted, exact)
    shapes = _gradient_formats(x, w)
    return tuple(gy.new_empty(0) if g is None else g.contiguous(memory_format=form) for g, form in zip(found, shapes))


def _gradient_formats(x, w):
    return [_entry.FORMATS[t.dim()] if _entry.is_last(t) else torch.contiguous_format
            for t in (x, w)] + [torch.contiguous_format]


def _input_shape(w, gy, size, groups):
    return (gy.shape[0], w.shape[1] * groups, *size)


def result_of(w, gy, size, groups):
    """A tensor like the result of backward_data. Only its shape, strides and type are read."""
    dtype = gy.dtype if _entry.has_fp32_weights(gy.dtype, w.dtype) else w.dtype
    return torch.empty(_input_shape(w, gy, size, groups), dtype=dtype, device=w.device,
                       memory_format=_output_format(gy, w))


def _backward_data(w, gy, size, stride, padding, dilation, groups, mode, exact=False):
    x = result_of(w, gy, size, groups)
    _check_gradient("backward_data(w, gy, size, ...)", x, w, gy, stride, padding, dilation)
    with torch.no_grad():
        config = _config(stride, padding, dilation, groups, mode)
        gx, _, _ = gradients(x, w, gy, config, (True, False, False), exact)
    return gx.contiguous(memory_format=_output_format(gy, w))


for _name, _function in (("forward", _forward), ("backward", _backward), ("backward_data", _backward_data)):
    for _key in ("CPU", "CUDA"):
        _library.impl(_name, _function, _key)


# -------------------------------------------------------------------------------------- what is traced

def output_extents(x, w, stride, padding, dilation):
    rank = len(stride)
    return [(x.shape[2 + a] + padding[a] + padding[rank + a] - dilation[a] * (w.shape[2 + a] - 1) - 1) // stride[a] + 1
            for a in range(rank)]


@torch.library.register_fake("conv_fft::forward", lib=_library)
def _(x, w, bias, stride, padding, dilation, groups, mode, exact=False):
    shape = (x.shape[0], w.shape[0], *output_extents(x, w, stride, padding, dilation))
    return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=_output_format(x, w))


@torch.library.register_fake("conv_fft::backward", lib=_library)
def _(x, w, gy, stride, padding, dilation, groups, mode, wanted, exact=False):
    made = ((x.shape, gy.dtype), (w.shape, w.dtype), ((w.shape[0],), w.dtype))
    return tuple(torch.empty(shape, dtype=dtype, device=gy.device, memory_format=form) if need else gy.new_empty(0)
                 for (shape, dtype), form, need in zip(made, _gradient_formats(x, w), wanted))


@torch.library.register_fake("conv_fft::backward_data", lib=_library)
def _(w, gy, size, stride, padding, dilation, groups, mode, exact=False):
    last = _entry.is_last(gy) or _entry.is_last(w)
    return torch.empty(_input_shape(w, gy, size, groups), dtype=gy.dtype, device=gy.device,
                       memory_format=_entry.FORMATS[gy.dim()] if last else torch.contiguous_format)


# ---------------------------------------------------------------------------------- how it is differentiated

def _sum(*terms):
    terms = [term for term in terms if term is not None]
    total = terms[0] if terms else None
    for term in terms[1:]:
        total = total + term
    return total


def _forward_context(ctx, inputs, output):
    x, w, bias, *parameters, exact = inputs
    ctx.save_for_backward(x, w)
    ctx.parameters, ctx.exact, ctx.has_bias = parameters, exact, bias is not None


def _forward_gradient(ctx, gy):
    x, w = ctx.saved_tensors
    need = ctx.needs_input_grad
    wanted = [need[0], need[1], ctx.has_bias and need[2]]
    found = torch.ops.conv_fft.backward(x, w, gy, *ctx.parameters, wanted, ctx.exact)
    return (*(g if want else None for g, want in zip(found, wanted)), *(None,) * 6)


def _backward_context(ctx, inputs, output):
    x, w, gy, *parameters, wanted, exact = inputs
    ctx.save_for_backward(x, w, gy)
    ctx.parameters, ctx.wanted, ctx.exact = parameters, wanted, exact


def _backward_gradient(ctx, ggx, ggw, ggbias):
    """The gradients of gx = T(w, gy), gw = W(x, gy) and gbias = sum gy, which are all linear in gy."""
    x, w, gy = ctx.saved_tensors
    forward, backward = torch.ops.conv_fft.forward, torch.ops.conv_fft.backward
    ggx, ggw, ggbias = (gg if want else None for gg, want in zip((ggx, ggw, ggbias), ctx.wanted))
    to_x = to_w = to_gy = None
    if ctx.needs_input_grad[0] and ggw is not None:
        to_x = backward(x, ggw, gy, *ctx.parameters, [True, False, False], ctx.exact)[0]
    if ctx.needs_input_grad[1] and ggx is not None:
        to_w = backward(ggx, w, gy, *ctx.parameters, [False, True, False], ctx.exact)[1]
    if ctx.needs_input_grad[2]:
        spread = None if ggbias is None else ggbias.to(gy.dtype).view(1, -1, *(1,) * (gy.dim() - 2)).expand_as(gy)
        to_gy = _sum(None if ggx is None else forward(ggx, w, None, *ctx.parameters, ctx.exact),
                     None if ggw is None else forward(x, ggw, None, *ctx.parameters, ctx.exact), spread)
    return (to_x, to_w, to_gy, *(None,) * 7)


def _data_context(ctx, inputs, output):
    w, gy, size, *parameters, exact = inputs
    ctx.save_for_backward(w, gy)
    ctx.parameters, ctx.exact = parameters, exact


def _data_gradient(ctx, ggx):
    w, gy = ctx.saved_tensors
    to_w = to_gy = None
    if ctx.needs_input_grad[0]:
        to_w = torch.ops.conv_fft.backward(ggx, w, gy, *ctx.parameters, [False, True, False], ctx.exact)[1]
    if ctx.needs_input_grad[1]:
        to_gy = torch.ops.conv_fft.forward(ggx, w, None, *ctx.parameters, ctx.exact)
    return (to_w, to_gy, *(None,) * 7)


torch.library.register_autograd("conv_fft::forward", _forward_gradient, setup_context=_forward_context, lib=_library)
torch.library.register_autograd("conv_fft::backward", _backward_gradient, setup_context=_backward_context, lib=_library)
torch.library.register_autograd("conv_fft::backward_data", _data_gradient, setup_context=_data_context, lib=_library)


class Convolution(torch.autograd.Function):
    """The eager call, which saves the cost of torch's dispatcher. Its backward calls the library; if autograd records
    the backward, it calls the operators."""

    @staticmethod
    def forward(ctx, x, w, bias, entry):
        ctx.save_for_backward(x, w)
        ctx.entry = entry
        return convolution(x, w, bias, entry)

    @staticmethod
    def backward(ctx, gy):
        entry = ctx.entry
        x, w = ctx.saved_tensors
        need_x, need_w, need_bias, _ = ctx.needs_input_grad
        if type(gy) is _Tensor and not _recording():
            failed = False
            try:
                found = entry.backward(x, w, gy, need_x, need_w, need_bias)
            except FAILURES as error:
                _entry.give_up(entry, error)
                failed = True
            if failed:
                found = _gradients_by_torch(x, w, gy, entry.config, (need_x, need_w, need_bias))
            if found is not None:
                return (*found, None)
        gx, gw, gbias = torch.ops.conv_fft.backward(x, w, gy, *entry.config, [need_x, need_w, need_bias],
                                                    entry.exact)
        return gx if need_x else None, gw if need_w else None, gbias if need_bias else None, None


class Transposed(torch.autograd.Function):
    """The same for a transposed convolution."""

    @staticmethod
    def forward(ctx, x, w, bias, entry):
        ctx.save_for_backward(x, w)
        ctx.entry = entry
        return transposed(x, w, bias, entry)

    @staticmethod
    def backward(ctx, g):
        entry = ctx.entry
        x, w = ctx.saved_tensors
        need_x, need_w, need_bias, _ = ctx.needs_input_grad
        if type(g) is _Tensor and not _recording():
            try:
                found = entry.transposed_gradients(x, w, g, need_x, need_w, need_bias)
            except FAILURES as error:
                _entry.give_up(entry, error)
                found = None
            if found is not None:
                return (*found, None)
        ops, last = torch.ops.conv_fft, (*entry.config, entry.exact)
        return (ops.forward(g, w, None, *last) if need_x else None,
                ops.backward(g, w, x, *entry.config, [False, True, False], entry.exact)[1] if need_w else None,
                g.sum(entry.but_channels, dtype=w.dtype) if need_bias else None, None)


def convolution(x, w, bias, entry):
    """The call that autograd does not record."""
    try:
        return entry.forward(x, w, bias)
    except FAILURES as error:
        _entry.give_up(entry, error)
    return by_torch(x, w, bias, *entry.config)


def transposed(x, w, bias, entry):
    try:
        return entry.transposed(x, w, bias)
    except FAILURES as error:
        _entry.give_up(entry, error)
    like = torch.empty_strided(entry.x.shape, entry.x.strides, dtype=x.dtype, device=x.device)
    y, _, _ = _gradients_by_torch(like, w, x, entry.config, (True, False, False))
    return y if bias is None else y.add_(bias.view(entry.of_channels))


def _node(function):
    """autograd.Function.apply() without its support of torch.func, whose calls never use it."""
    # The engine calls apply(). torch's own finds backward() and calls it.
    function._backward_cls.apply = function.backward
    return super(torch.autograd.Function, function).apply


# How an eager call is computed: without autograd, and recorded by it.
CONVOLUTION, TRANSPOSED = (convolution, _node(Convolution)), (transposed, _node(Transposed))
