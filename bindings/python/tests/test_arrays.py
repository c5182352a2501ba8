# SPDX-License-Identifier: Apache-2.0
"""conv_fft.forward, .backward and Plan on arrays of every installed package."""
import copy
import functools
import importlib.util
import pickle
import threading

import conv_fft
import numpy
import pytest
import reference
from conftest import HAS_GPU, HAS_TORCH

EPS = {"float32": 2.0 ** -23, "float64": 2.0 ** -52, "float16": 2.0 ** -10}


def bound(dtype):
    return 12 * EPS[dtype] if dtype != "float16" else EPS[dtype]


def draw(random, rank):
    """A random valid layer."""
    while True:
        groups = int(random.choice([1, 1, 2, 3]))
        share, out = int(random.integers(1, 4)), int(random.integers(1, 4))
        n, kernel = random.integers(1, 14, rank), random.integers(1, 8, rank)
        stride, dilation = random.integers(1, 4, rank), random.integers(1, 3, rank)
        before, after = random.integers(0, 4, rank), random.integers(0, 4, rank)
        if all(n + before + after > dilation * (kernel - 1)):
            break
    x = random.standard_normal((int(random.integers(1, 4)), groups * share, *n))
    w = random.standard_normal((groups * out, share, *kernel))
    lists = [tuple(int(v) for v in values) for values in (stride, before, after, dilation)]
    return x, w, random.standard_normal(groups * out), lists, groups


def check_all(x, w, bias, gy, y, gradients, lists, groups, dtype):
    stride, before, after, dilation = lists
    rule = (stride, before, after, dilation, groups)
    reference.close(y, reference.forward(x, w, bias, *rule), reference.forward(abs(x), abs(w), abs(bias), *rule),
                    bound(dtype))
    gx, gw, gbias = gradients
    reference.close(gx, reference.data_gradient(x.shape, gy, w, *rule),
                    reference.data_gradient(x.shape, abs(gy), abs(w), *rule), bound(dtype))
    reference.close(gw, reference.weight_gradient(x, gy, w.shape, *rule),
                    reference.weight_gradient(abs(x), abs(gy), w.shape, *rule), bound(dtype))
    axes = (0, *range(2, x.ndim))
    reference.close(gbias, gy.sum(axes), abs(gy).sum(axes), bound(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_numpy_random_layers(rank, dtype, random):
    for _ in range(25):
        x, w, bias, lists, groups = draw(random, rank)
        x, w, bias = (a.astype(dtype) for a in (x, w, bias))
        options = dict(stride=lists[0], padding=tuple(zip(*lists[1:3])), dilation=lists[3], groups=groups)
        y = conv_fft.forward(x, w, bias, **options)
        gy = random.standard_normal(y.shape).astype(dtype)
        check_all(x, w, bias, gy, y, conv_fft.backward(x, w, gy, **options), lists, groups, dtype)


@pytest.mark.parametrize("mode", ["zeros", "circular", "reflect", "replicate"])
def test_numpy_padding_modes(mode, random):
    x, w = random.standard_normal((2, 3, 11, 12)), random.standard_normal((4, 3, 5, 4))
    y = conv_fft.forward(x, w, padding=((2, 1), (3, 0)), padding_mode=mode)
    rule = ((1, 1), (2, 3), (1, 0), (1, 1), 1, mode)
    reference.close(y, reference.forward(x, w, None, *rule), reference.forward(abs(x), abs(w), None, *rule),
                    bound("float64"))


def test_numpy_same_and_valid(random):
    x, w = random.standard_normal((1, 2, 9, 9)), random.standard_normal((2, 2, 4, 3))
    assert conv_fft.forward(x, w, padding="same", dilation=2).shape == x.shape
    assert conv_fft.forward(x, w, padding="valid").shape == (1, 2, 6, 7)
    with pytest.raises(ValueError, match="stride"):
        conv_fft.forward(x, w, padding="same", stride=2)


def test_numpy_views_are_read_where_they_lie(random):
    base = random.standard_normal((3, 5, 20, 24))
    w = random.standard_normal((4, 5, 3, 3))
    for x in (base[:, :, ::2, 3:15], base.transpose(0, 1, 3, 2), base[::-1], numpy.broadcast_to(base[:1], base.shape)):
        exact = conv_fft.forward(numpy.ascontiguousarray(x), w)
        numpy.testing.assert_allclose(conv_fft.forward(x, w), exact, atol=1e-12)
    last = numpy.ascontiguousarray(base.transpose(0, 2, 3, 1))
    y = conv_fft.forward(last, w.transpose(0, 2, 3, 1), layout="last")
    numpy.testing.assert_allclose(y.transpose(0, 3, 1, 2), conv_fft.forward(base, w), atol=1e-12)
    y = conv_fft.forward(last[:, ::2, 1:], w.transpose(0, 2, 3, 1), layout="last", stride=(1, 2))
    numpy.testing.assert_allclose(y.transpose(0, 3, 1, 2), conv_fft.forward(base[:, :, ::2, 1:], w, stride=(1, 2)),
                                  atol=1e-12)
    wide = numpy.zeros((3, 4, 18, 50))
    assert conv_fft.forward(base, w, out=wide[..., 1:45:2]).base is wide
    numpy.testing.assert_allclose(wide[..., 1:45:2], conv_fft.forward(base, w), atol=1e-12)
    assert not wide[..., ::2].any()


def test_numpy_arrays_that_have_to_be_copied(random):
    x, w, bias = (random.standard_normal(s) for s in ((2, 3, 9, 9), (64, 3, 3, 3), (64,)))
    exact = conv_fft.forward(x, w, bias, stride=numpy.int64(2))
    # A plan of the same passes has the same strategy as the call.
    plan = conv_fft.Plan(conv_fft.Problem(x.shape, w.shape, dtype="float64", stride=2), "cpu", passes="forward")
    unaligned = numpy.zeros(x.nbytes + 1, "u1")[1:].view("f8").reshape(x.shape)
    unaligned[:] = x
    for there in ((x[::-1].copy()[::-1], w, bias), (x, w[::-1].copy()[::-1], bias), (x, w, bias[::-1].copy()[::-1]),
                  (x.astype(x.dtype.newbyteorder()), w, bias), (unaligned, w, bias)):
        numpy.testing.assert_array_equal(plan.forward(*there), exact)
        numpy.testing.assert_array_equal(conv_fft.forward(*there, stride=2), exact)
    # Results are written in place, or the call is refused.
    constant = numpy.empty(exact.shape)
    constant.flags.writeable = False
    for y in (constant, numpy.empty(exact.shape)[..., ::-1], numpy.empty(exact.shape, exact.dtype.newbyteorder())):
        with pytest.raises(ValueError, match="must be writable"):
            conv_fft.forward(x, w, stride=2, out=y)
        with pytest.raises(ValueError, match="must be writable"):
            plan.forward(x, w, out=y)


def test_numpy_strides_that_the_library_has_no_word_for(random):
    """Strides that are all 0, strides of a bias, and strides of an array that is read and whose gradient is written."""
    x, w, bias = (random.standard_normal(s) for s in ((2, 3, 9, 9), (4, 3, 3, 3), (8,)))
    one = numpy.broadcast_to(numpy.float64(1), x.shape)
    plan = conv_fft.Plan(conv_fft.Problem(x.shape, w.shape, dtype="float64"), "cpu")
    exact = conv_fft.forward(numpy.ones(x.shape), w, bias[::2].copy())
    for run in (conv_fft.forward, plan.forward):
        numpy.testing.assert_array_equal(run(one, w, bias[::2]), exact)
        numpy.testing.assert_array_equal(run(x, numpy.broadcast_to(numpy.float64(1), w.shape)),
                                         conv_fft.forward(x, numpy.ones(w.shape)))
    gy = numpy.broadcast_to(numpy.float64(1), exact.shape)
    exact = conv_fft.backward(x, w, numpy.ones(gy.shape))
    for found in (conv_fft.backward(x, w, gy), plan.backward(x, w, gy),
                  conv_fft.backward(numpy.asfortranarray(x), w, gy),
                  conv_fft.backward(x, w.transpose(3, 2, 1, 0).copy().transpose(3, 2, 1, 0), gy)):
        for a, b in zip(found, exact):
            numpy.testing.assert_array_equal(a, b)
            assert a.flags.c_contiguous
    with pytest.raises(ValueError, match="gbias must be dense"):
        plan.backward(x, w, gy, out={"bias": bias[::2]})


def test_results_have_memory_of_their_own(random):
    plan = conv_fft.Plan("in=2x4x9x9 out=4 kernel=3x3 pad=1 dtype=fp64", "cpu")
    x, w, gy, bias = (random.standard_normal(s) for s in ((2, 4, 9, 9), (4, 4, 3, 3), (2, 4, 9, 9), (4,)))
    both = numpy.zeros(x.size + 8)
    near = [both[at:at + x.size].reshape(x.shape) for at in (0, 8)]
    for run in (plan.forward, functools.partial(conv_fft.forward, padding=1)):
        with pytest.raises(ValueError, match="out shares memory with x"):
            run(x, w, out=x)
        with pytest.raises(ValueError, match="out shares memory with x"):
            run(near[0], w, out=near[1])
        with pytest.raises(ValueError, match="out shares memory with bias"):
            run(x, w, near[1].ravel()[:4], out=near[0])
    part = near[1].ravel()[:w.size].reshape(w.shape)
    for out, said in (({"x": gy}, r"out\['x'\] shares memory with gy"), ({"w": w}, r"out\['w'\] shares memory with w"),
                      ({"x": near[0], "w": part}, r"out\['w'\] shares memory with out\['x'\]"),
                      ({"w": w.copy(), "bias": bias, "x": x}, r"out\['x'\] shares memory with x")):
        with pytest.raises(ValueError, match=said):
            plan.backward(x, w, gy, out=out)
    exact, gradients = plan.forward(x, w), plan.backward(x, w, gy)
    # Arrays of one buffer that are disjoint: its first and last channels, and every other element.
    wide = random.standard_normal((2, 8, 9, 9))
    wide[:, :4] = x
    numpy.testing.assert_allclose(conv_fft.forward(wide[:, :4], w, padding=1, out=wide[:, 4:]), exact, rtol=1e-12)
    last = random.standard_normal((2, 9, 9, 8))
    last[..., ::2] = x.transpose(0, 2, 3, 1)
    y = conv_fft.forward(last[..., ::2], w, padding=1, layout="last", weight_layout="first", out=last[..., 1::2])
    numpy.testing.assert_allclose(y.transpose(0, 3, 1, 2), exact, atol=1e-12)
    flat = numpy.empty(w.size + 4)
    gw, gbias = flat[4:].reshape(w.shape), flat[:4]
    assert plan.backward(x, w, gy, out={"w": gw, "bias": gbias})[1] is gw
    numpy.testing.assert_array_equal(gw, gradients[1])
    numpy.testing.assert_array_equal(gbias, gradients[2])


def test_views_are_apart_only_if_they_are(random):
    """Compares `apart` with the exact answer. It is never worse than to compare ranges of addresses."""
    memory, kind, seen = numpy.zeros(600, "f"), conv_fft.arrays.kind_of(numpy.zeros(1), "x"), set()

    def view():
        shape, strides = random.integers(1, 4, 3), random.choice([0, 1, 2, 3, 6, 12, 24], 3)
        a = memory[random.integers(0, 200):].view(random.choice(["f4", "f2"]))
        return numpy.lib.stride_tricks.as_strided(a, shape, strides * a.itemsize)
    for _ in range(3000):
        one, other = view(), view()
        apart = conv_fft.arrays.apart(kind.view(one), kind.view(other))
        # Otherwise a View is of a copy.
        if one.size == 1 or other.size == 1 or any(one.strides) and any(other.strides):
            shared = numpy.shares_memory(one, other)
            assert not (apart and shared) and (apart or numpy.may_share_memory(one, other))
            seen.add((apart, shared, numpy.may_share_memory(one, other)))
    assert {(True, False, True), (True, False, False), (False, True, True)} <= seen


def test_gradients_are_named():
    plan = conv_fft.Plan("in=1x1x9 kernel=3 pad=1 dtype=fp64", "cpu")
    x, w, gy = numpy.ones((1, 1, 9)), numpy.ones((1, 1, 3)), numpy.ones((1, 1, 9))
    for found in (plan.backward(x, w, gy, need="bias"), conv_fft.backward(x, w, gy, need="bias", padding=1)):
        assert found[0] is found[1] is None and found[2].tolist() == [9]
    for arguments, said in ((dict(need="xw"), "need is 'xw'"), (dict(need=("x", "b")), r"need is \('x', 'b'\)"),
                            (dict(out={"gx": x}), "out is {'gx'"), (dict(accumulate=["y"]), r"accumulate is \['y'\]"),
                            (dict(need="x", out={"w": w.copy()}), "out names w, which need does not"),
                            (dict(accumulate=("w",), out={"w": None}), "accumulate names w, which out does not")):
        with pytest.raises(ValueError, match=said):
            plan.backward(x, w, gy, **arguments)
    with pytest.raises(ValueError, match="need is 'xw'"):
        conv_fft.backward(x, w, gy, need="xw", padding=1)


def test_types_of_no_number():
    for dtype in ("V0", "V4", "i4", "U1"):
        with pytest.raises(ValueError, match="^x has the dtype "):
            conv_fft.forward(numpy.zeros((1, 1, 9), dtype), numpy.zeros((1, 1, 3), dtype))

    class Void:
        __cuda_array_interface__ = {"shape": (1, 1, 9), "typestr": "|V0", "strides": (0, 0, 0), "data": (0, False)}
    with pytest.raises(ValueError, match="^x has the dtype "):
        conv_fft.forward(Void(), Void())


def test_numpy_half_gives_weight_gradients_in_float32_if_asked(random):
    x, w = (random.standard_normal(s).astype("float16") for s in ((2, 3, 9, 9), (4, 3, 3, 3)))
    y = conv_fft.forward(x, w)
    _, gw, gbias = conv_fft.backward(x, w, y, weight_grad_dtype="float32")
    assert y.dtype == numpy.float16 and gw.dtype == gbias.dtype == numpy.float32
    rule = ((1, 1), (0, 0), (0, 0), (1, 1), 1)
    reference.close(gw, reference.weight_gradient(x, y, w.shape, *rule),
                    reference.weight_gradient(abs(x), abs(y), w.shape, *rule), bound("float16"))


def test_plan_accumulates_and_writes_where_it_is_told(random):
    plan = conv_fft.Plan("in=2x3x9x9 out=4 kernel=3x3 pad=1 dtype=fp64", "cpu")
    x, w, gy = (random.standard_normal(s) for s in ((2, 3, 9, 9), (4, 3, 3, 3), (2, 4, 9, 9)))
    _, gw, _ = plan.backward(x, w, gy)
    total = numpy.ones_like(w)
    none, again, _ = plan.backward(x, None, gy, need=("w",), out={"w": total}, accumulate=("w",))
    assert none is None and again is total
    numpy.testing.assert_allclose(total, gw + 1, rtol=1e-12)
    assert plan.describe("backward")["stages"] and plan.profile("forward", 2)["measured_ms"] >= 0
    assert plan.workspace[1] >= 0 and plan.output_shape == (2, 4, 9, 9)
    plan.close()


def test_threads_share_a_plan(random):
    x, w = random.standard_normal((2, 4, 20, 20)), random.standard_normal((4, 4, 5, 5))
    exact = conv_fft.forward(x, w)
    wrong = []

    def run():
        for _ in range(20):
            if not numpy.array_equal(conv_fft.forward(x, w), exact):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_plan_cache_is_bounded():
    cache = conv_fft.PlanCache(limit=3)
    kept = [cache.get(conv_fft.Problem((1, 1, 9 + i), (1, 1, 3)), "cpu", 1) for i in range(5)]
    assert len(cache) == 3 and cache.get(kept[4].problem, "cpu", 1) is kept[4]
    assert cache.get(kept[0].problem, "cpu", 1) is not kept[0]


def test_a_copy_of_a_plan_is_the_plan():
    """Two plans with one handle would free it twice."""
    plan = conv_fft.Plan("in=1x1x30 kernel=3", "cpu")
    held = copy.deepcopy({"plan": plan, "context": plan.context})
    assert held["plan"] is plan and copy.copy(plan) is plan and held["context"] is plan.context
    with pytest.raises(TypeError, match="pickle its problem"):
        pickle.dumps(plan)
    assert pickle.loads(pickle.dumps((plan.problem, plan.context))) == (plan.problem, plan.context)


def test_plans_that_nobody_holds_are_given_back():
    from conv_fft import plan
    conv_fft.Plan("in=1x1x30 kernel=3", "cpu")
    assert len(plan._retired) == 1
    conv_fft.Plan("in=1x1x30 kernel=3", "cpu")
    assert len(plan._retired) == 1


# ------------------------------------------------------------------------------------------- other packages

def to_numpy(a):
    return numpy.asarray(a.copy_to_host() if hasattr(a, "copy_to_host") else a.get() if hasattr(a, "get") else
                         a.cpu() if hasattr(a, "cpu") else a)


def makers():
    """Functions from NumPy to each package's arrays. Packages that are not installed are skipped."""
    def torch_cpu(a):
        import torch
        return torch.tensor(a)

    def torch_gpu(a):
        import torch
        return torch.tensor(a, device="cuda")

    def cupy(a):
        import cupy
        return cupy.asarray(a)

    def numba(a):
        from numba import cuda
        return cuda.to_device(a)

    def jax(a):
        import jax.numpy as jnp
        return jnp.asarray(a)

    for maker, package, needs_gpu in ((torch_cpu, "torch", False), (torch_gpu, "torch", True), (cupy, "cupy", True),
                                      (numba, "numba", True), (jax, "jax", False)):
        missing = (importlib.util.find_spec(package) is None or (needs_gpu and not HAS_GPU)
                   or (package == "torch" and not HAS_TORCH))
        reason = "%s%s" % (package, " and a GPU" if needs_gpu else "")
        yield pytest.param(maker, marks=pytest.mark.skipif(missing, reason=reason))


@pytest.mark.parametrize("make", list(makers()))
def test_package(make, random):
    x, w, bias = (random.standard_normal(s).astype("f") for s in ((2, 4, 15, 17), (6, 2, 5, 3), (6,)))
    lists = ((1, 1), (2, 1), (2, 1), (1, 1))
    there = [make(a) for a in (x, w, bias)]
    y = conv_fft.forward(*there, padding=(2, 1), groups=2)
    assert type(y) is type(there[0])
    gy = random.standard_normal((2, 6, 15, 17)).astype("f")
    gradients = conv_fft.backward(*there[:2], make(gy), padding=(2, 1), groups=2)
    check_all(x, w, bias, gy, to_numpy(y), [to_numpy(g) for g in gradients], lists, 2, "float32")
    # The second call finds its plan, and memory that was used before.
    numpy.testing.assert_array_equal(to_numpy(conv_fft.forward(*there, padding=(2, 1), groups=2)), to_numpy(y))


class Exchanged:
    """An array of an unknown package, with DLPack and nothing else."""

    def __init__(self, a):
        self.a = a

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()

    def __dlpack__(self, stream=None):
        return self.a.__dlpack__()


def test_any_package_with_dlpack(random):
    """Arrays of an unknown package are read in place, with their strides. Results need out=."""
    x, w = random.standard_normal((2, 4, 30))[..., ::2], random.standard_normal((6, 4, 5))
    y = Exchanged(numpy.zeros((2, 6, 11)))
    assert conv_fft.forward(Exchanged(x), Exchanged(w), out=y) is y
    numpy.testing.assert_allclose(y.a, conv_fft.forward(x, w), atol=1e-12)
    with pytest.raises(TypeError, match="out="):
        conv_fft.forward(Exchanged(x), Exchanged(w))


@pytest.mark.skipif(not HAS_GPU, reason="no GPU")
def test_a_stream_of_the_callers(random):
    import torch
    x = torch.randn(4, 8, 64, 64, device="cuda")
    w = torch.randn(8, 8, 9, 9, device="cuda")
    exact = conv_fft.forward(x, w)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    found = conv_fft.forward(x, w, stream=stream)
    with torch.cuda.stream(stream):
        other = conv_fft.forward(x, w)
    stream.synchronize()
    assert torch.equal(found, exact) and torch.equal(other, exact)
