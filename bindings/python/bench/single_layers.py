# SPDX-License-Identifier: Apache-2.0
"""Single layers of networks/*.txt beside torch's implementations."""
import pathlib
import time

import conv_fft
import conv_fft.torch
import torch
from conv_fft.torch import _entry
from timing import AUTOCAST, graphed_ms, median_ms, set_torch
from torch import nn

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, **AUTOCAST}
NETWORKS = pathlib.Path(__file__).resolve().parents[3] / "networks"
CONVOLUTIONS = {1: nn.functional.conv1d, 2: nn.functional.conv2d, 3: nn.functional.conv3d}


def layers_of(suite):
    """{name: (shape of x, shape of w, parameters as conv_fft.torch takes them)}."""
    found = {}
    for line in (NETWORKS / (suite + ".txt")).read_text().splitlines():
        if line and not line.startswith("#"):
            name, text = line.split(None, 1)
            problem = conv_fft.Problem.parse(text)
            p, rank = problem.struct, problem.rank
            found[name] = (problem.input_shape, problem.weight_shape,
                           (tuple(p.stride[:rank]), (*p.pad_before[:rank], *p.pad_after[:rank]),
                            tuple(p.dilation[:rank]), p.groups, 0))
    return found


def by_conv_fft(x, w, config):
    return conv_fft.torch.functional.convolution(x, w, None, config)


def by_torch(x, w, config):
    stride, pads, dilation, groups, _ = config
    rank = len(stride)
    return CONVOLUTIONS[rank](x, w, None, stride, pads[:rank], dilation, groups)


def by_torch_fft(x, w, config):
    """Causal 1-D depthwise layers by torch.fft. The taps are in the order of a convolution, not a correlation."""
    size = 2 * x.shape[-1]
    xs, ws = (torch.fft.rfft(t if t.dtype is torch.float64 else t.float(), n=size) for t in (x, w[:, 0]))
    return torch.fft.irfft(xs * ws, n=size)[..., :x.shape[-1]].to(x.dtype)


class Layer:
    """One layer and its operands."""

    def __init__(self, function, shapes, dtype, last):
        self.function, (x_shape, w_shape, self.config) = function, shapes
        generator = torch.Generator(device="cuda").manual_seed(1)
        self.x, self.w = (torch.randn(shape, device="cuda", generator=generator).to(dtype)
                          for shape in (x_shape, w_shape))
        self.w /= self.w[0].numel() ** 0.5
        if function is by_torch_fft:
            self.w = self.w.flip(-1)
        if last:
            self.x, self.w = (t.to(memory_format=FORMATS[t.dim()]) for t in (self.x, self.w))
        for t in (self.x, self.w):
            t.requires_grad_()
        with torch.no_grad():
            self.gy = torch.empty_like(self.forward()).normal_(generator=generator)

    def forward(self):
        return self.function(self.x, self.w, self.config)

    def forward_alone(self):
        with torch.no_grad():
            return self.forward()

    def training(self):
        y = self.forward()
        return (y, *torch.autograd.grad(y, (self.x, self.w), self.gy))

    def gradient(self, of_x):
        """One of both gradients, without autograd."""
        wanted = [of_x, not of_x, False]
        x, w, (stride, pads, dilation, groups, mode) = self.x.detach(), self.w.detach(), self.config
        if self.function is by_conv_fft:
            return torch.ops.conv_fft.backward(x, w, self.gy, stride, pads, dilation, groups, mode, wanted)
        rank = len(stride)
        return torch.ops.aten.convolution_backward(self.gy, x, w, None, stride, pads[:rank], dilation, False,
                                                   [0] * rank, groups, wanted)

    def passes(self):
        """{name: (a call, whether it is measured eagerly as well)}."""
        found = {"forward": (self.forward_alone, True), "training": (self.training, True)}
        if self.function is by_torch_fft or self.is_long():
            return found
        return {**found, "bprop": (lambda: self.gradient(True), False),
                "accgrad": (lambda: self.gradient(False), False)}

    def errors(self, passes):
        """{pass: relative error of the first channels}. For both gradients it is the larger of the two errors."""
        few = min(4, self.w.shape[0])
        of_x, of_w = (slice(None), slice(few)), slice(few)
        x, w = (t.detach()[part].double().contiguous().requires_grad_() for t, part in ((self.x, of_x), (self.w, of_w)))
        exact = by_torch_fft if self.function is by_torch_fft or self.is_long() else by_torch
        flipped = exact is by_torch_fft and self.function is not by_torch_fft
        y = exact(x, w.flip(-1) if flipped else w, (*self.config[:3], few, 0))
        wanted = (y, *torch.autograd.grad(y, (x, w), self.gy[:, :few].double()))
        if "training" in passes:
            found = self.training()
        else:
            found = (self.forward_alone(), self.gradient(True)[0] if "bprop" in passes else None,
                     self.gradient(False)[1] if "accgrad" in passes else None)
        of = {name: ((a[part] - b).norm() / b.norm()).item() for name, a, b, part in
              zip(("forward", "bprop", "accgrad"), found, wanted, (of_x, of_x, of_w)) if a is not None}
        return {**of, "training": max(of.get("bprop", 0), of.get("accgrad", 0))}

    def is_long(self):
        pads = self.config[1]
        return pads[:len(pads) // 2] != pads[len(pads) // 2:]


def times_of(layer, passes, options):
    """{pass: milliseconds} of eager calls and of replayed graphs."""
    found = {}
    for name in passes:
        run, eager = layer.passes()[name]
        if eager:
            found[name] = median_ms(run, options.seconds / 2)
        found[name + "-graph"] = graphed_ms(run, options.seconds / 2)
    return found


def bearable(function, shapes, dtype, last, options):
    """The passes that take less than the limit. One image shows that, before cuDNN's search runs them on all images."""
    (x_shape, *rest), search, names = shapes, torch.backends.cudnn.benchmark, []
    torch.backends.cudnn.benchmark = False
    try:
        for name, (run, _) in Layer(function, ((1, *x_shape[1:]), *rest), dtype, last).passes().items():
            for _ in range(2):  # the first loads libraries and kernels
                torch.cuda.synchronize()
                begin = time.perf_counter()
                run()
                torch.cuda.synchronize()
                seconds = (time.perf_counter() - begin) * x_shape[0]
                if seconds > 30 * options.limit:
                    return names
            if seconds <= options.limit:
                names.append(name)
    finally:
        torch.backends.cudnn.benchmark = search
    return names


def run_layer(suite, name, shapes, precision, options):
    """Rows of one layer and precision, for each memory format of ours."""
    print("# %s %s %s" % (suite, name, precision), flush=True)
    set_torch(precision, options.search)
    dtype, formats = DTYPES[precision], [False, True] if len(shapes[0]) in FORMATS else [False]
    best, errors = {}, {}
    if suite == "longconv":
        variants = [("torch.fft", by_torch_fft, True, False)]
    else:
        variants = [(("cuDNN allowed" if cudnn else "own kernels") + ", channels last" * last, by_torch, cudnn, last)
                    for cudnn in (False, True) for last in formats]
    for what, function, cudnn, last in variants:
        torch.backends.cudnn.enabled = cudnn
        try:
            passes = bearable(function, shapes, dtype, last, options)
            if not passes:
                print("#     torch, %s: takes more than %g s, left out" % (what, options.limit), flush=True)
                continue
            layer = Layer(function, shapes, dtype, last)
            found = times_of(layer, passes, options)
            errors[what] = layer.errors(passes)
            print("#     torch, %s: %s" % (what, ", ".join("%s %.4f" % item for item in found.items())), flush=True)
            for passname, ms in found.items():
                best[passname] = min(best.get(passname, (ms, what)), (ms, what))
        except torch.cuda.OutOfMemoryError:
            print("#     torch, %s: out of memory" % what, flush=True)
        finally:
            torch.backends.cudnn.enabled = True
            layer = None
            torch.cuda.empty_cache()
    rows = []
    for last in formats:
        layer = Layer(by_conv_fft, shapes, dtype, last)
        layer.training()
        if conv_fft.torch.fallbacks():
            raise SystemExit("bench_torch.py: torch computes %s itself: %s" % (name, conv_fft.torch.fallbacks()))
        found, error = times_of(layer, layer.passes(), options), layer.errors(("training",))
        plans = {"forward": (1, "forward"), "training": (6, "backward"), "bprop": (2, "backward_data"),
                 "accgrad": (4, "backward_weights")}
        for passname, ms in found.items():
            kind, layout = passname.removesuffix("-graph"), "last" if last else "first"
            number, described = plans[kind]
            plan = _entry.look_up(layer.x, layer.w, None, shapes[2], number, False).plans[number]
            rows.append(["torch-" + suite, name, passname, precision, layout, "ours", "%.4f" % ms,
                         str(plan.workspace[number]), "%.2e" % error[kind], plan.describe(described)["strategy"]])
            line = "#   %s %s: ours %.4f ms" % (layout, passname, ms)
            if passname in best:
                theirs, what = best[passname]
                rows.append(["torch-" + suite, name, passname, precision, layout, "torch", "%.4f" % theirs, "0",
                             "%.2e" % errors[what][kind], what.replace(",", "")])
                line += ", torch (%s) %.4f: %.2fx" % (what, theirs, theirs / ms)
            print(line, flush=True)
        layer = None
        torch.cuda.empty_cache()
    return rows
