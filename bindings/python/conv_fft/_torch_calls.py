# SPDX-License-Identifier: Apache-2.0
"""Calls of a plan with torch tensors like those of an earlier call.

The first call with tensors of some shapes, strides, types and devices checks them against the plan. Later calls with
tensors like these check only that the results share no memory with the others, which takes a tenth of the time."""
import torch

from . import _structs as structs
from ._library import check, lib
from ._torch_memory import allocator, check_of, workspace

_TENSORS = (torch.Tensor, torch.nn.Parameter)
_LIMIT = 8  # calls that a plan remembers of each kind
_changed = torch.autograd.graph.increment_version
NAMES = ("x", "w", "bias")


def _bytes(a):
    """The bytes from the first to the last element."""
    if 0 in a.shape:
        return 0
    return a.element_size() * (1 + sum(stride * (extent - 1) for stride, extent in zip(a.stride(), a.shape)))


def _made(a):
    """What a new tensor like a result is made from."""
    return tuple(a.shape), a.stride(), a.dtype


def _remember(plan, kind, tensors, results):
    """Note that the plan takes these tensors: a call with them has just been checked, and has succeeded.

    kind    which tensors there are, and what is wanted
    results the tensors that were returned, and None for those that were not wanted"""
    if not all(type(a) in _TENSORS and not a.is_neg() for a in tensors):
        return
    fits = check_of(*tensors)
    if fits is not None:
        known = fits, [_bytes(a) for a in tensors], [None if a is None else _made(a) for a in results]
        plan.known_calls[kind] = (known, *plan.known_calls.get(kind, ())[:_LIMIT - 1])


def _known(plan, kind, tensors):
    for known in plan.known_calls.get(kind, ()):
        if known[0](*tensors):
            return known
    return None


def _apart(addresses, sizes, inputs):
    """Whether no result shares a byte with another tensor. The first `inputs` tensors are no results."""
    for number in range(inputs, len(addresses)):
        begin = addresses[number]
        end = begin + sizes[number]
        for other in range(number):
            if addresses[other] < end and begin < addresses[other] + sizes[other]:
                return False
    return True


def _forward_kind(x, w, bias, out):
    return (("forward", bias is None, out is None), [a for a in (x, w, bias, out) if a is not None])


def remember_forward(plan, x, w, bias, out, y):
    _remember(plan, *_forward_kind(x, w, bias, out), (y,))


def forward(plan, x, w, bias, out):
    """The result, or None if the plan knows no such call."""
    kind, tensors = _forward_kind(x, w, bias, out)
    known = _known(plan, kind, tensors)
    if known is None:
        return None
    addresses = [a.data_ptr() for a in tensors]
    if out is None:
        y = allocator(plan.device)(*known[2][0])
        y_at = y.data_ptr()
    else:
        y, y_at = out, addresses[-1]
        if not _apart(addresses, known[1], len(tensors) - 1):
            return None
    at, size, stream, held = workspace(plan.workspace[structs.FORWARD], plan.device, (plan,))
    check(lib.conv_fft_forward(plan.handle, addresses[0], addresses[1], None if bias is None else addresses[2], y_at,
                               at, size, stream))
    del held
    if out is not None:
        _changed(out)  # autograd then refuses values that it saved before
    return y


def _backward_kind(x, w, gy, need, out, accumulate):
    given = [out.get(name) for name in NAMES]
    kind = ("backward", x is None, w is None, *(name in need for name in NAMES), *(g is None for g in given),
            *(name in accumulate for name in NAMES))
    return kind, [a for a in (x, w, gy, *given) if a is not None]


def remember_backward(plan, x, w, gy, need, out, accumulate, results):
    _remember(plan, *_backward_kind(x, w, gy, need, out, accumulate), results)


def backward(plan, x, w, gy, need, out, accumulate):
    """(gx, gw, gbias), or None if the plan knows no such call."""
    kind, tensors = _backward_kind(x, w, gy, need, out, accumulate)
    known = _known(plan, kind, tensors)
    if known is None:
        return None
    addresses = [a.data_ptr() for a in tensors]
    inputs = 3 - (x is None) - (w is None)
    if not _apart(addresses, known[1], inputs):
        return None
    rest, results, result_at, flags, given = iter(addresses), [], [], 0, []
    x_at, w_at, gy_at = (None if a is None else next(rest) for a in (x, w, gy))
    make = allocator(plan.device)
    for number, (name, made) in enumerate(zip(NAMES, known[2])):
        result = out.get(name)
        if result is not None:
            given.append(result)
            result_at.append(next(rest))
            flags |= (name in accumulate) << number
        elif made is not None:
            result = make(*made)
            result_at.append(result.data_ptr())
        else:
            result_at.append(None)
        results.append(result)
    pass_ = (structs.BACKWARD_DATA if known[2][0] else 0) | (structs.BACKWARD_WEIGHTS if known[2][1] else 0)
    at, size, stream, held = workspace(plan.workspace[pass_] if pass_ else 0, plan.device, (plan,))
    check(lib.conv_fft_backward(plan.handle, x_at, w_at, gy_at, *result_at, flags, at, size, stream))
    del held
    for result in given:
        _changed(result)
    return tuple(results)
