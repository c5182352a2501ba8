# SPDX-License-Identifier: Apache-2.0
"""Common parts of the tests of torch's layers: errors against double precision, and random choices."""
from conftest import HAS_TORCH

if HAS_TORCH:
    import torch


def exactness(dtype):
    """The library's error bound of norms. torch computes in FP64 here, as its FP32 results on a GPU may be of TF32."""
    return {torch.float64: 1e-13, torch.float32: 3e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[dtype]


def assert_close(found, exact, dtype, what):
    error = (found.double() - exact.double()).norm().item()
    # If the terms of a sum nearly cancel, the error is compared with the terms' size, at least 1 for these inputs.
    assert error <= exactness(dtype) * max(exact.double().norm().item(), exact.numel() ** 0.5), "%s: %g of %g" % (
        what, error, exact.norm().item())


def chooser(generator):
    def pick(*choices):
        return choices[int(torch.randint(len(choices), (), generator=generator))]
    return pick


def results(layer, x, gy):
    """y and the gradients of all tensors that require one."""
    wanted = [t for t in (x, *layer.parameters()) if t.requires_grad]
    y = layer(x)
    if gy is None:
        gy = torch.randn(y.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64).to(y)
    return [y.detach(), *(torch.autograd.grad(y, wanted, gy) if wanted else ())], gy
