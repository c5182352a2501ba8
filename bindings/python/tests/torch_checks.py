# SPDX-License-Identifier: Apache-2.0
"""What the tests of torch's layers share: errors beside torch's own layers in double precision, and choices by a generator."""
from conftest import HAS_TORCH

if HAS_TORCH:
    import torch


def exactness(dtype):
    """The library's promise, of norms; torch's FP32 results on a GPU may be those of TF32, so torch computes in FP64 here."""
    return {torch.float64: 1e-13, torch.float32: 3e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[dtype]


def assert_close(found, exact, dtype, what):
    error = (found.double() - exact.double()).norm().item()
    # The results of a sum that nearly cancels are compared with its terms' size: at least 1 for these inputs.
    assert error <= exactness(dtype) * max(exact.double().norm().item(), exact.numel() ** 0.5), "%s: %g of %g" % (
        what, error, exact.norm().item())


def chooser(generator):
    def pick(*choices):
        return choices[int(torch.randint(len(choices), (), generator=generator))]
    return pick


def results(layer, x, gy):
    """y and the gradients of what requires one."""
    wanted = [t for t in (x, *layer.parameters()) if t.requires_grad]
    y = layer(x)
    gy = torch.randn(y.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64).to(y) if gy is None else gy
    return [y.detach(), *(torch.autograd.grad(y, wanted, gy) if wanted else ())], gy
