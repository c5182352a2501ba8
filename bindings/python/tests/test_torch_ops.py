# SPDX-License-Identifier: Apache-2.0
"""The operators in PyTorch: fake tensors, compile, autograd twice, autocast, torch.func, graphs, serialisation."""
import concurrent.futures
import copy
import io

import pytest
from conftest import GPU, HAS_TORCH

if HAS_TORCH:
    import conv_fft.torch as ours
    import torch
    from conv_fft import _torch_memory
    from torch import nn

# stride, padding before and after, dilation, groups, mode.
PARAMETERS = [((1, 1), (1, 1, 1, 1), (1, 1), 2, 0), ((2, 1), (2, 0, 1, 3), (1, 2), 1, 0),
              ((1, 1), (1, 2, 2, 1), (1, 1), 2, 1), ((1, 1), (2, 2, 2, 2), (1, 1), 4, 2),
              ((1, 2), (1, 1, 1, 1), (1, 1), 1, 3)]


def side_by_side(device, *calls):
    """Makes the first calls of a test in parallel. On a GPU they compile its kernels, which takes most of its time."""
    if device == "cuda":
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            for job in [pool.submit(call) for call in calls]:
                job.result()


def operands(parameters, device, last=False):
    """Small tensors, as gradcheck() makes two calls for each element."""
    torch.manual_seed(0)
    groups = parameters[3]
    x = torch.randn(2, 4, 5, 4, dtype=torch.float64, device=device)
    w = torch.randn(4, 4 // groups, 3, 3, dtype=torch.float64, device=device)
    if last:
        x, w = (t.contiguous(memory_format=torch.channels_last) for t in (x, w))
    bias = torch.randn(4, dtype=torch.float64, device=device, requires_grad=True)
    return x.requires_grad_(), w.requires_grad_(), bias


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("parameters", PARAMETERS)
def test_opcheck(parameters, last, device):
    x, w, bias = operands(parameters, device, last)
    ops = torch.ops.conv_fft
    gy = torch.randn_like(ops.forward(x, w, bias, *parameters)).requires_grad_()
    masks = [True, True, True], [True, False, False], [False, True, True]
    side_by_side(device, *(lambda wanted=wanted: ops.backward(x, w, gy, *parameters, wanted) for wanted in masks))
    torch.library.opcheck(ops.forward.default, (x, w, bias, *parameters))
    torch.library.opcheck(ops.forward.default, (x, w, None, *parameters))
    for wanted in masks:
        torch.library.opcheck(ops.backward.default, (x, w, gy, *parameters, wanted))
    torch.library.opcheck(ops.backward_data.default, (w, gy, [5, 4], *parameters))


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_gradcheck(parameters, device):
    x, w, bias = operands(parameters, device)
    for call in (lambda *t: torch.ops.conv_fft.forward(*t, *parameters),
                 lambda *t: ours.functional.convolution(*t, parameters)):
        assert torch.autograd.gradcheck(call, (x, w, bias))
        assert torch.autograd.gradgradcheck(call, (x, w, bias))
    gy = torch.randn_like(torch.ops.conv_fft.forward(x, w, None, *parameters)).requires_grad_()
    if parameters[4] == 0:
        assert torch.autograd.gradcheck(lambda *t: torch.ops.conv_fft.backward_data(*t, [5, 4], *parameters), (w, gy))
        assert torch.autograd.gradgradcheck(lambda *t: torch.ops.conv_fft.backward_data(*t, [5, 4], *parameters),
                                            (w, gy))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_gradcheck_of_transposed_calls(groups, last, device):
    x, w, bias = operands((0, 0, 0, 2), device, last)  # w is read as (in_channels, out_channels / groups, ...)
    bias = torch.randn(2 * groups, dtype=torch.float64, device=device, requires_grad=True)

    def call(x, w, bias):
        return ours.functional.conv_transpose2d(x, w, bias, stride=2, padding=1, output_padding=1, groups=groups)
    assert torch.autograd.gradcheck(call, (x, w, bias))
    assert torch.autograd.gradgradcheck(call, (x, w, bias))
    y = call(x, w, bias)
    gy = torch.randn(3, *y.shape, dtype=torch.float64, device=device)
    many = torch.autograd.grad(y, (x, w, bias), gy, is_grads_batched=True, retain_graph=True)
    for number, one in enumerate(gy):
        for a, b in zip(torch.autograd.grad(y, (x, w, bias), one, retain_graph=True), many):
            torch.testing.assert_close(a, b[number])
    x = x.detach().requires_grad_()
    gradient = torch.randn_like(y)
    for g in (gradient.transpose(2, 3).contiguous().transpose(2, 3), torch._neg_view(-gradient)):
        for a, b in zip(torch.autograd.grad(call(x, w, bias), (x, w, bias), g),
                        torch.autograd.grad(call(x, w, bias), (x, w, bias), gradient)):
            torch.testing.assert_close(a, b)


def test_a_gradient_that_does_not_fit_is_refused(device):
    x, w, _ = operands(PARAMETERS[0], device)
    for gy in (torch.randn(2, 4, 5, 5, device=device).double(), torch.randn(2, 4, 5, 4, device=device)):
        with pytest.raises(RuntimeError, match="gy has the shape"):
            torch.ops.conv_fft.backward(x, w, gy, *PARAMETERS[0], [True, True, True])
        with pytest.raises(RuntimeError, match="gy has the shape"):
            torch.ops.conv_fft.backward_data(w, gy, [5, 4], *PARAMETERS[0])
    with pytest.raises(RuntimeError, match=r"^conv_fft::backward\(x, w, gy, ...\): gy has the shape"):
        torch.ops.conv_fft.backward(torch.randn_like(x), x, w, *PARAMETERS[0], [True, True, True])
    with pytest.raises(RuntimeError, match=r"^conv_fft::backward_data\(w, gy, size, ...\): gy has the shape"):
        torch.ops.conv_fft.backward_data(torch.randn_like(x), w, [9, 9], *PARAMETERS[0])


def network(device):
    torch.manual_seed(0)
    return nn.Sequential(ours.Conv2d(3, 8, 5, padding=2), nn.ReLU(), ours.Conv2d(8, 8, 7, padding="same", groups=8,
                                                                                 padding_mode="circular"),
                         ours.ConvTranspose2d(8, 4, 4, stride=2, padding=1), nn.Flatten(1), nn.LazyLinear(5)).to(device)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile(backend, device):
    if backend == "inductor" and device == "cpu" and not _has_compiler():
        pytest.skip("no C++ compiler")
    net = network(device)
    x, wide = torch.randn(2, 3, 12, 12, device=device), torch.randn(2, 8, 12, 12, device=device, requires_grad=True)
    side_by_side(device, lambda: net[0](x), lambda: net[2](wide), lambda: net[3](wide).sum().backward())
    net.zero_grad()
    y = net(x)
    y.square().sum().backward()
    gradients = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    torch._dynamo.reset()
    compiled = torch.compile(net, fullgraph=True, backend=backend)
    again = compiled(x)
    again.square().sum().backward()
    torch.testing.assert_close(again, y, rtol=1e-4, atol=1e-5)
    for p, gradient in zip(net.parameters(), gradients):
        torch.testing.assert_close(p.grad, gradient, rtol=1e-3, atol=1e-4)


def _has_compiler():
    import shutil
    return shutil.which("g++") or shutil.which("clang++")


@pytest.mark.parametrize("device", [GPU])
def test_compile_with_cuda_graphs(device):
    """torch's own graphs check that their pool of memory holds no tensors but theirs."""
    net = network(device)
    x = torch.randn(2, 3, 12, 12, device=device)
    _torch_memory._kept.__dict__.clear()
    torch._dynamo.reset()
    compiled = torch.compile(net, fullgraph=True, mode="reduce-overhead")

    def step(model):
        net.zero_grad()
        y = model(x)
        y.square().sum().backward()
        return [y.detach().clone(), *(p.grad.clone() for p in net.parameters())]

    found = []
    for _ in range(4):  # the first warms up, the second is captured, the others are replayed
        torch.compiler.cudagraph_mark_step_begin()
        found.append(step(compiled))
    expected = step(net)
    for results in found:
        for result, right in zip(results, expected):
            torch.testing.assert_close(result, right, rtol=1e-3, atol=1e-4)


def test_compile_with_dynamic_shapes(device):
    layer = ours.Conv2d(3, 4, 5, padding=2).to(device)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager", dynamic=True)
    inputs = [torch.randn(2, 3, extent, extent + 1, device=device) for extent in (9, 12, 17)]
    side_by_side(device, *(lambda x=x: layer(x) for x in inputs))
    for x in inputs:
        torch.testing.assert_close(compiled(x), layer(x))


def test_export(device):
    layer = ours.Conv2d(3, 4, 5, padding=2).to(device)
    x = torch.randn(2, 3, 9, 9, device=device)
    program = torch.export.export(layer, (x,))
    assert any("conv_fft" in str(node.target) for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(x), layer(x))


def test_autocast(device):
    layer = ours.Conv2d(8, 8, 7, padding=3).to(device)
    x = torch.randn(2, 8, 15, 15, device=device)
    side_by_side(device, *(lambda dtype=dtype: copy.deepcopy(layer).to(dtype)(x.to(dtype))
                           for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64)))
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast(device, dtype=dtype):
            y = layer(x)
        assert y.dtype == dtype
        y.float().square().sum().backward()
        assert layer.weight.grad.dtype == torch.float32
        torch.testing.assert_close(y.float(), layer(x), rtol=0.05, atol=0.05)
    with torch.autocast(device, dtype=torch.bfloat16):
        double = ours.Conv2d(8, 8, 7, padding=3).to(device).double()
        with torch.autocast(device, enabled=False):
            assert double(x.double()).dtype == torch.float64


def test_double_backward_of_a_gradient_penalty(device):
    found = {}
    for kind in (nn.Conv2d, ours.Conv2d):
        torch.manual_seed(1)
        layer = kind(3, 4, 5, padding=2).double().to(device)
        x = torch.randn(2, 3, 9, 9, dtype=torch.float64, device=device, requires_grad=True)
        (gx,) = torch.autograd.grad(layer(x).tanh().sum(), x, create_graph=True)
        gx.square().sum().backward()
        found[kind] = [x.grad, layer.weight.grad, layer.bias.grad]
    for one, other in zip(*found.values()):
        torch.testing.assert_close(one, other)


def test_func(device):
    layer = ours.Conv2d(3, 4, 5, padding=2).double().to(device)
    theirs = nn.Conv2d(3, 4, 5, padding=2).double().to(device)
    theirs.load_state_dict(layer.state_dict())
    x = torch.randn(4, 3, 9, 9, dtype=torch.float64, device=device)

    def loss(net):
        return lambda parameters, x: torch.func.functional_call(net, parameters, (x,)).square().sum()

    def per_sample(net):
        parameters = {name: p.detach() for name, p in net.named_parameters()}
        return torch.func.vmap(torch.func.grad(loss(net)), in_dims=(None, 0))(parameters, x[:, None])
    for name, gradient in per_sample(theirs).items():
        torch.testing.assert_close(per_sample(layer)[name], gradient)
    _, tangent = torch.func.jvp(layer, (x,), (x,))
    torch.testing.assert_close(tangent, theirs(x) - theirs(torch.zeros_like(x)))
    torch._dynamo.reset()
    compiled = torch.compile(lambda parameters: torch.func.grad(lambda p: loss(layer)(p, x))(parameters),
                             fullgraph=True, backend="aot_eager")
    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    for name, gradient in torch.func.grad(lambda p: loss(theirs)(p, x))(parameters).items():
        torch.testing.assert_close(compiled(parameters)[name], gradient)


def test_many_gradients_at_once(device):
    """vmap over backward passes: gy is batched, x and w are not."""
    found = {}
    for kind in (nn.Conv2d, ours.Conv2d):
        torch.manual_seed(1)
        layer = kind(3, 4, 5, padding=2).double().to(device)
        x = torch.randn(2, 3, 9, 9, dtype=torch.float64, device=device, requires_grad=True)
        y = layer(x)
        gy = torch.randn(3, *y.shape, dtype=torch.float64, device=device)
        sources = [x, *layer.parameters()]
        found[kind] = [*torch.autograd.grad(y, sources, gy, is_grads_batched=True, retain_graph=True),
                       *torch.vmap(lambda g: torch.autograd.grad(y, sources, g, retain_graph=True))(gy)]
    for one, other in zip(*found.values()):
        torch.testing.assert_close(one, other)


def other_tracers():
    """torch.jit.script(), torch.fx, and torch.export as torch.onnx uses it: all of them see torch's operators."""
    def script(net, x, _):
        file = io.BytesIO()
        torch.jit.save(torch.jit.script(net), file)
        file.seek(0)
        return torch.jit.load(file)

    def symbolic(net, x, _):
        return torch.fx.symbolic_trace(net)

    def onnx(net, x, monkeypatch):
        monkeypatch.setattr(ours.functional, "_for_onnx", lambda: True)
        program = torch.export.export(net, (x,), strict=False)
        assert not any("conv_fft" in str(node.target) for node in program.graph.nodes)
        return program.module()
    return [script, symbolic, onnx]


@pytest.mark.parametrize("trace", other_tracers())
def test_other_tracers(trace, device, monkeypatch):
    net = nn.Sequential(ours.Conv2d(3, 4, 5, padding="same", padding_mode="circular"), nn.ReLU(),
                        ours.Conv2d(4, 4, 3, groups=2),
                        ours.ConvTranspose2d(4, 2, 4, stride=2, output_padding=1)).double().to(device)
    x = torch.randn(2, 3, 9, 9, dtype=torch.float64, device=device)
    y = net(x)  # a trace must not contain what the layers remember of this call
    torch.testing.assert_close(trace(net, x, monkeypatch)(x), y)
    assert type(net[0]) is ours.Conv2d


def test_calls_on_proxies():
    def net(x, w):
        return ours.functional.conv_transpose1d(ours.functional.conv1d(x, w, padding=2), w, stride=2)
    x, w = torch.randn(2, 3, 20, dtype=torch.float64), torch.randn(3, 3, 5, dtype=torch.float64)
    torch.testing.assert_close(torch.fx.symbolic_trace(net)(x, w), net(x, w))


def test_hooks_checkpointing_copies_and_files(device):
    net = nn.Sequential(ours.Conv2d(3, 4, 5, padding=2), ours.Conv2d(4, 4, 5, padding=2)).to(device)
    x = torch.randn(2, 3, 9, 9, device=device)
    y = net(x)
    y.square().sum().backward()
    plain = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).square().sum().backward()
    assert all(torch.equal(p.grad, gradient) for p, gradient in zip(net.parameters(), plain))
    file = io.BytesIO()
    torch.save(net, file)
    file.seek(0)
    for other in (copy.deepcopy(net), torch.load(file, weights_only=False)):
        assert torch.equal(other(x), y)
    traced = nn.Sequential(*(copy.deepcopy(layer) for layer in net))
    for layer in traced:
        layer.__dict__.pop("_conv_fft_site")  # as if tracing came first
    torch.testing.assert_close(torch.jit.trace(traced, x, check_trace=False)(x), net(x), rtol=1e-3, atol=1e-3)
    assert torch.equal(traced(x), y)  # ours again


def test_inference_mode_and_leaf_gradients(device):
    layer = ours.Conv1d(4, 4, 9, padding=4).to(device)
    x = torch.randn(2, 4, 50, device=device)
    with torch.inference_mode():
        y = layer(x)
    assert y.is_inference() and not layer(x).is_inference()
    torch.testing.assert_close(y, layer(x).detach())
    # gy of a sum is an expanded scalar.
    layer(x).sum().backward()
    torch.testing.assert_close(layer.bias.grad, torch.full((4,), 100.0, device=device))


@pytest.mark.parametrize("device", [GPU])
def test_cuda_graph(device):
    """A whole training step is captured and replayed on other data."""
    net = nn.Sequential(ours.Conv2d(3, 16, 7, padding=3), nn.ReLU(),
                        ours.Conv2d(16, 16, 13, padding=6, groups=16)).cuda()
    twin = copy.deepcopy(net)
    x, wide = torch.randn(4, 3, 32, 32, device="cuda"), torch.randn(4, 16, 32, 32, device="cuda", requires_grad=True)
    side_by_side(device, lambda: net[0](x), lambda: net[2](wide))
    graphed = torch.cuda.make_graphed_callables(net, (x.clone(),))
    for seed in range(3):
        torch.manual_seed(seed)
        data = torch.randn_like(x)
        for model in (graphed, twin):
            model.zero_grad()
            model(data).square().sum().backward()
        # The gradients of a graph are in its memory, so they are compared before it runs again.
        for p, q in zip(graphed.parameters(), twin.parameters()):
            torch.testing.assert_close(p.grad, q.grad)
        torch.testing.assert_close(graphed(data), twin(data))
    # torch computes a call without a plan within a capture, and the capture stays valid.
    layer = ours.Conv2d(3, 5, 9, padding=4).cuda()
    nn.functional.conv2d(x, layer.weight, layer.bias, padding=4)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        y = layer(x)
    graph.replay()
    torch.testing.assert_close(y, layer(x), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("device", [GPU])
def test_another_gpu_than_the_current_one(device):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    layer = ours.Conv2d(4, 4, 7, padding=3)
    x = torch.randn(2, 4, 20, 20, requires_grad=True)
    wanted = [layer(x), *torch.autograd.grad(layer(x).square().sum(), [x, *layer.parameters()])]
    for number in (1, 0, 1):
        layer.to("cuda:%d" % number)
        z = x.detach().to("cuda:%d" % number).requires_grad_()
        found = [layer(z), *torch.autograd.grad(layer(z).square().sum(), [z, *layer.parameters()])]
        for one, other in zip(found, wanted):
            assert one.get_device() == number
            torch.testing.assert_close(one.cpu(), other, rtol=1e-3, atol=1e-3)
    assert torch.cuda.current_device() == 0 and not ours.fallbacks()


@pytest.mark.parametrize("device", [GPU])
def test_other_streams(device):
    layer = ours.Conv2d(16, 16, 9, padding=4).cuda()
    x = torch.randn(8, 16, 64, 64, device="cuda")
    exact = layer(x)
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(3)]
    found = []
    for stream in streams:
        with torch.cuda.stream(stream):
            found.append(layer(x))
    torch.cuda.synchronize()
    assert all(torch.equal(y, exact) for y in found)
