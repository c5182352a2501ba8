# SPDX-License-Identifier: Apache-2.0
"""Random layers of conv_fft.torch against torch's own in double precision."""
import concurrent.futures
import os

import pytest
from conftest import HAS_TORCH, SEED
from torch_checks import assert_close, chooser, results

if HAS_TORCH:
    import conv_fft
    import conv_fft.torch as ours
    import torch
    from conv_fft.torch import _entry
    from torch import nn

# Random layers of each kind and type.
COUNT = int(os.environ.get("CONV_FFT_TEST_COUNT", "60"))
PARTS = 5  # the number of tests, which different processes may run
ALIKE = 6  # this many random layers in a row have the same kernels
KINDS = ["Conv1d", "Conv2d", "Conv3d"]


def draw(generator, rank):
    """Valid random arguments of a layer, with the channels and extents of an input."""
    pick = chooser(generator)

    def axes(*choices):
        return tuple(pick(*choices) for _ in range(rank))
    while True:
        mode = pick("zeros", "zeros", "circular", "reflect", "replicate")
        extent, kernel = axes(*range(3, 17)), axes(1, 2, 3, 4, 5, 7)
        stride, dilation = pick(1, axes(1, 2, 3)), pick(1, axes(1, 2))
        padding = pick(0, "valid", axes(0, 1, 2)) if stride != 1 else pick(0, "same", "valid", axes(0, 1, 2, 3))
        groups = pick(1, 1, 2, 3)
        into, out = groups * pick(1, 2, 4), groups * pick(1, 2, 3)
        wide = [0] * rank if isinstance(padding, str) else [padding] * rank if isinstance(padding, int) else padding
        spans = [(k - 1) * (dilation if dilation == 1 else dilation[a]) + 1 for a, k in enumerate(kernel)]
        fits = all(n + 2 * p >= s for n, p, s in zip(extent, wide, spans))
        # Reflection needs an extent larger than its padding.
        most = [max(p, s // 2 + 1) for p, s in zip(wide, spans)] if padding == "same" else wide
        if fits and (mode == "zeros" or all(p < n for p, n in zip(most, extent))):
            break
    layer = dict(in_channels=into, out_channels=out, kernel_size=kernel, stride=stride, padding=padding,
                 dilation=dilation, groups=groups, padding_mode=mode)
    return layer, (into, *extent)


def arranged(x, how):
    """A tensor with the same values and other strides."""
    if how == "last" and x.dim() > 3:
        return x.contiguous(memory_format=_entry.FORMATS[x.dim()])
    if how == "last":
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if how == "gaps":
        wide = x.new_zeros(*x.shape[:-1], 2 * x.shape[-1])
        wide[..., ::2] = x
        return wide[..., ::2]
    return x


def check_random_layer(kind, dtype, device, seed, shared):
    """Draws a module and its input, and compares it with torch in FP64. Of `shared` seeds in a row the layers differ
    only in the bias, the number of images, the requested gradients and the strides of gy, which need no new kernel."""
    generator = torch.Generator().manual_seed(1000 * KINDS.index(kind) + seed // shared)
    arguments, shape = draw(generator, KINDS.index(kind) + 1)
    how = chooser(generator)("first", "last", "gaps")
    weight_last = chooser(generator)(False, False, True) and len(shape) > 2
    generator = torch.Generator().manual_seed(seed)
    pick = chooser(generator)
    arguments["bias"], batch = pick(True, False), pick(1, 2, 3, 5)
    asked = [pick(False, True, True, True) for _ in range(3)]
    exact = getattr(nn, kind)(**arguments, dtype=torch.float64)
    taps = exact.weight[0].numel()
    with torch.no_grad():
        for parameter in exact.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / taps ** 0.5)
    mine = getattr(ours, kind)(**arguments)
    exact.to(device)
    mine.to(device, dtype)
    mine.load_state_dict(exact.state_dict())
    exact.load_state_dict(mine.state_dict())  # the numbers that fit the type
    for layer in (exact, mine):
        for parameter, ask in zip(layer.parameters(), asked):
            parameter.requires_grad_(ask)
    x = torch.randn(batch, *shape, generator=generator, dtype=torch.float64).to(device, dtype)
    if weight_last:
        mine.to(memory_format=_entry.FORMATS[x.dim()])
    wanted, gy = results(exact, x.double().requires_grad_(asked[2]), None)
    found, _ = results(mine, arranged(x, how).requires_grad_(asked[2]),
                       arranged(gy.to(dtype), pick("first", "last", "gaps")))
    line = "seed %d: %s(%s), input %s, %s" % (seed, kind, arguments, x.shape, how)
    assert found[0].shape == wanted[0].shape and found[0].dtype == dtype
    assert len(found) == 1 + sum(t.requires_grad for t in mine.parameters()) + asked[2]
    for one, other, name in zip(found, wanted, ("y", "gradient 1", "gradient 2", "gradient 3")):
        assert_close(one, other, dtype, "%s: %s" % (line, name))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_random_layers(kind, dtype, part, device, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    conv_fft.tuning.forget_plans()
    on_gpu = device == "cuda"
    # On a GPU compiling takes most of the time. So it runs in several threads, and similar layers share their kernels.
    with concurrent.futures.ThreadPoolExecutor(4 if on_gpu else 1) as pool:
        jobs = [pool.submit(check_random_layer, kind, getattr(torch, dtype), device, seed, ALIKE if on_gpu else 1)
                for seed in range(SEED + part * COUNT // PARTS, SEED + (part + 1) * COUNT // PARTS)]
        for job in jobs:
            job.result()
    assert not _entry.fallbacks, "left to torch: %s" % _entry.fallbacks


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_random_transposed_layers(rank, device):
    kind = "ConvTranspose%dd" % rank
    for seed in range(SEED, SEED + COUNT // 2):
        pick = chooser(torch.Generator().manual_seed(seed // 3))
        stride, groups = pick(1, 2, 3), pick(1, 1, 2)
        arguments = dict(in_channels=groups * pick(1, 2), out_channels=groups * pick(1, 2, 3),
                         kernel_size=pick(2, 3, 4, 5), stride=stride, padding=pick(0, 1),
                         output_padding=pick(*range(stride)), dilation=pick(1, 2), groups=groups)
        extents = [pick(3, 5, 6) for _ in range(rank)]
        generator = torch.Generator().manual_seed(seed)
        pick = chooser(generator)
        arguments["bias"] = pick(True, False)
        torch.manual_seed(seed)
        exact = getattr(nn, kind)(**arguments).double().to(device)
        mine = getattr(ours, kind)(**arguments).double().to(device)
        mine.load_state_dict(exact.state_dict())
        x = torch.randn(pick(1, 2, 3), arguments["in_channels"], *extents, generator=generator, dtype=torch.float64)
        x = x.to(device).requires_grad_()
        wanted, gy = results(exact, x, None)
        found, _ = results(mine, x, gy)
        for one, other in zip(found, wanted):
            assert one.shape == other.shape
            assert_close(one, other, torch.float64, "seed %d: %s" % (seed, arguments))
    y = mine(x, output_size=exact(x, output_size=None).shape[2:])
    assert y.shape == exact(x).shape
