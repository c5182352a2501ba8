# SPDX-License-Identifier: Apache-2.0
"""Arrays of other packages without copies: their addresses, their streams, and memory from their allocators.

NumPy arrays are in host memory. Arrays of torch, CuPy, numba, JAX and others with DLPack or `__cuda_array_interface__`
may be in device memory. A package is imported only if the caller has imported it."""
import contextlib

from . import _cuda, _dlpack
from . import _structs as structs
from . import _workspaces
from ._library import check, lib


class View:
    """The place of an array in memory. strides count elements; device is -2 for the host."""

    __slots__ = ("pointer", "shape", "strides", "dtype", "device", "owner")

    def __init__(self, pointer, shape, strides, dtype, device, owner):
        self.pointer, self.shape, self.strides = pointer, shape, strides
        self.dtype, self.device, self.owner = dtype, device, owner


def dense(shape):
    """The element strides of a C-contiguous array."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def is_dense(shape, strides):
    """Whether an array is C-contiguous. Axes of extent 1 may have any stride."""
    return all(extent <= 1 or one == other for extent, one, other in zip(shape, strides, dense(shape))) or 0 in shape


def _reach(seen, period):
    """The bytes from the first to the last element, without axes whose stride is a multiple of a period."""
    item = structs.ITEM_BYTES[seen.dtype]
    return item * (1 + sum([stride * (extent - 1) for stride, extent in zip(seen.strides, seen.shape)
                            if stride * item % period]))


def apart(one, other):
    """Whether two views without negative strides share no byte.

    True if one ends before the other begins, or if they are disjoint within each period of a stride, as different
    channels of one buffer are. Other disjoint views are reported as shared."""
    for period in (1 << 62, *(stride * structs.ITEM_BYTES[one.dtype] for stride in one.strides if stride)):
        if _reach(one, period) <= (other.pointer - one.pointer) % period <= period - _reach(other, period):
            return True
    return 0 in one.shape or 0 in other.shape


def address_of_stream(stream):
    """The handle of a stream: an int, or a stream of torch, CuPy or numba."""
    for name in ("cuda_stream", "ptr", "handle"):
        stream = getattr(stream, name, stream)
    return getattr(stream, "value", stream) or 0


class Kind:
    """What most packages have in common."""

    def target(self, a, name="out"):
        """The View of the caller's array for a result."""
        return self.view(a, name)

    def dense(self, name, seen):
        """The View of the same elements in a dense array."""
        if not is_dense(seen.shape, seen.strides):
            raise ValueError("%s has the element strides %s; it must be dense if gx and gw are both needed"
                             % (name, seen.strides))
        return seen

    def stream(self, like):
        return 0

    def on(self, stream, like):
        """A context in which memory is allocated for use on a stream."""
        return contextlib.nullcontext()

    def written(self, a):
        """Called when a result stands in the caller's own array."""

    def finish(self, result, device):
        return result


class Numpy(Kind):
    def view(self, a, name="an array"):
        import numpy
        if not isinstance(a, numpy.ndarray):
            raise TypeError("%s is of type %s; it must be a NumPy array, as others are" % (name, type(a).__name__))
        if isinstance(a, numpy.ma.MaskedArray):
            raise TypeError("%s is a NumPy masked array, whose mask would be ignored; pass %s.filled(0)" % (name, name))
        item = a.itemsize or 1
        # In the C API strides that are all 0 mean dense, and a bias has no strides.
        if (not (a.flags.aligned and a.dtype.isnative) or any(stride % item or stride < 0 for stride in a.strides)
                or a.size > 1 and (not any(a.strides) or a.ndim == 1 and a.strides != (item,))):
            a = numpy.array(a, a.dtype.newbyteorder("="), order="C")
        return View(a.ctypes.data, a.shape, tuple(stride // item for stride in a.strides), a.dtype.name,
                    structs.DEVICE_CPU, a)

    def target(self, a, name="out"):
        seen = self.view(a, name)
        if not a.flags.writeable or seen.owner is not a:
            raise ValueError("%s has shape %s, element type %s and byte strides %s; it must be writable, aligned and "
                             "in native byte order, with strides that are not negative and not all 0; gbias must be "
                             "dense" % (name, a.shape, a.dtype, a.strides))
        return seen

    def dense(self, name, seen):
        import numpy
        return seen if is_dense(seen.shape, seen.strides) else self.view(numpy.ascontiguousarray(seen.owner))

    def empty(self, shape, dtype, like):
        import numpy
        kind = like.owner.dtype if like.dtype == dtype else numpy.dtype(dtype)
        return numpy.empty(shape, kind)


class Torch(Kind):
    def view(self, a, name="an array"):
        import torch
        if not isinstance(a, torch.Tensor):
            raise TypeError("%s is of type %s; it must be a torch tensor, as others are" % (name, type(a).__name__))
        a = a.detach().resolve_neg()  # a tensor may be the negative of its memory, as the imaginary part of a conjugate
        device = a.device.index if a.device.type == "cuda" else structs.DEVICE_CPU
        if a.device.type not in ("cuda", "cpu"):
            raise TypeError("%s is on the device %s; it must be on a CUDA GPU or on the CPU" % (name, a.device))
        return View(a.data_ptr(), tuple(a.shape), tuple(a.stride()), str(a.dtype).partition(".")[2], device, a)

    def target(self, a, name="out"):
        seen = self.view(a, name)
        if a.is_neg():
            raise ValueError("%s has is_neg() True; its memory must hold its values" % name)
        return seen

    def written(self, a):
        import torch
        torch.autograd.graph.increment_version(a)  # autograd then refuses values of the tensor that it saved before

    def empty(self, shape, dtype, like):
        import torch
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.owner.device)

    def memory(self, size, like):
        import torch
        memory = torch.empty(size, dtype=torch.uint8, device=like.owner.device)
        return memory.data_ptr(), memory

    def stream(self, like):
        import torch
        return 0 if like.device < 0 else torch.cuda.current_stream(like.device).cuda_stream

    def on(self, stream, like):
        import torch
        if like.device < 0 or stream == self.stream(like):
            return contextlib.nullcontext()
        return torch.cuda.stream(torch.cuda.ExternalStream(stream, device=like.device))


# The interface's names of types. It has none for bfloat16.
_TYPESTRS = {"<f%d" % size: name for name, size in structs.ITEM_BYTES.items() if name != "bfloat16"}


class Interface(Kind):
    """Arrays with `__cuda_array_interface__`, or with DLPack only."""

    def view(self, a, name="an array"):
        described = getattr(a, "__cuda_array_interface__", None)
        if described is None:
            return _dlpack.view(a, View, dense)
        shape = tuple(described["shape"])
        dtype = _TYPESTRS.get(described["typestr"], described["typestr"])
        item = int(described["typestr"][2:]) or 1
        strides = described.get("strides")
        strides = dense(shape) if strides is None else tuple(stride // item for stride in strides)
        pointer = described["data"][0] or 0
        device = self.device(a, pointer)
        return View(pointer, shape, strides, dtype, device, a)

    def device(self, a, pointer):
        return _cuda.device_of(pointer) if pointer else 0

    def stream(self, like):
        """The stream that the array's producer names; the legacy default stream if it names none."""
        described = getattr(like.owner, "__cuda_array_interface__", None) or {}
        return described.get("stream") or 0

    def empty(self, shape, dtype, like):
        raise TypeError("arrays are of type %s, which cannot be created: pass arrays for the results by out="
                        % type(like.owner).__name__)

    def memory(self, size, like):
        raise TypeError("arrays are of type %s, which cannot allocate a workspace: pass torch, CuPy, numba or JAX "
                        "arrays" % type(like.owner).__name__)


class Cupy(Interface):
    def view(self, a, name="an array"):
        seen = super().view(a, name)
        seen.dtype = a.dtype.name
        return seen

    def device(self, a, pointer):
        return a.device.id

    def stream(self, like):
        import cupy
        return cupy.cuda.get_current_stream().ptr

    def empty(self, shape, dtype, like):
        import cupy
        with cupy.cuda.Device(like.device):
            return cupy.empty(shape, like.owner.dtype if dtype == like.dtype else dtype)

    def memory(self, size, like):
        import cupy
        with cupy.cuda.Device(like.device):
            memory = cupy.cuda.alloc(max(size, 1))
        return memory.ptr, memory

    def on(self, stream, like):
        import cupy
        if stream == self.stream(like):
            return contextlib.nullcontext()
        return cupy.cuda.ExternalStream(stream, like.device)


class Numba(Interface):
    """numba waits for the device before it frees memory, so the caller may drop a workspace that is in use."""

    def empty(self, shape, dtype, like):
        from numba import cuda
        return cuda.device_array(shape, dtype)

    def memory(self, size, like):
        from numba import cuda
        memory = cuda.device_array(max(size, 1), "uint8")
        return memory.__cuda_array_interface__["data"][0], memory


class Jax(Interface):
    """JAX has its own streams and immutable arrays. So the work runs on the legacy default stream, which waits for the
    inputs, and the call waits for the work. Results are written into new arrays that nobody else has seen yet."""

    def view(self, a, name="an array"):
        if not hasattr(a, "__dlpack_device__"):
            raise TypeError("%s is a %s, which has no elements yet: call outside jax.jit, grad and vmap"
                            % (name, type(a).__name__))
        return _dlpack.view(a, View, dense, stream=1)

    def target(self, a, name="out"):
        raise TypeError("%s is a JAX array, which is immutable: leave out= away" % name)

    def stream(self, like):
        return 0

    def empty(self, shape, dtype, like):
        import jax
        import jax.numpy as jnp
        place = next(iter(like.owner.devices()))
        with jax.default_device(place):
            made = jnp.empty(shape, jnp.dtype(dtype))
        return made.block_until_ready()

    def memory(self, size, like):
        memory = self.empty((max(size, 1),), "uint8", like)
        return memory.unsafe_buffer_pointer(), memory

    def finish(self, result, device):
        if device >= 0 and not _cuda.synchronize(device):
            raise RuntimeError("waiting for GPU %d failed" % device)
        return result


_kinds = {"numpy": Numpy(), "torch": Torch(), "cupy": Cupy(), "numba": Numba(), "numba_cuda": Numba(), "jaxlib": Jax(),
          "jax": Jax()}
_other = Interface()


def kind_of(a, name):
    for base in type(a).__mro__:
        found = _kinds.get(base.__module__.partition(".")[0])
        if found is not None:
            return found
    if hasattr(a, "__cuda_array_interface__") or hasattr(a, "__dlpack__"):
        return _other
    raise TypeError("%s is of type %s, which is no array of NumPy, torch, CuPy, numba or JAX, and has neither "
                    "__dlpack__ nor __cuda_array_interface__" % (name, type(a).__name__))


def _expect(plan, name, seen, shape, strides, last):
    """Raises unless a view has the shape, the device and the strides of the plan."""
    strides = tuple(strides[:len(shape)])
    if seen.shape != tuple(shape):
        raise ValueError("%s has the shape %s; the plan is for %s" % (name, seen.shape, tuple(shape)))
    if seen.device != plan.device:
        raise ValueError("%s is in %s; the plan is for %s" % (name, _place(seen.device), _place(plan.device)))
    if any(strides):
        wanted = (strides[0], *strides[2:], strides[1]) if last else strides
        good = all(extent <= 1 or one == other for extent, one, other in zip(shape, seen.strides, wanted))
    else:
        good, wanted = is_dense(seen.shape, seen.strides), dense(shape)
    if not good:
        raise ValueError("%s has the element strides %s; the plan is for %s" % (name, seen.strides, wanted))


def _place(device):
    return "host memory" if device < 0 else "memory of GPU %d" % device


def _expect_type(name, seen, dtype):
    if seen.dtype != dtype:
        raise TypeError("%s is of %s; it must be of %s" % (name, seen.dtype, dtype))


class _Operands:
    """The arrays of one call as addresses, checked against the plan."""

    def __init__(self, plan, first, name):
        self.plan, self.kind = plan, kind_of(first, name)
        p, problem = plan.problem.struct, plan.problem
        self.like = None
        self.held = []  # (name, View): keeps copies that a view made alive until the call returns
        self.named = []  # the caller's arrays for results
        self.rules = {"x": (problem.input_shape, p.x_stride, p.tensor_layout),
                      "w": (problem.weight_shape, p.w_stride, p.weight_layout),
                      "y": (plan.output_shape, p.y_stride, p.tensor_layout), "bias": ((p.out_channels,), (0,), 0)}

    def address(self, name, a, what, dtype):
        if a is None:
            return None
        seen = self.kind.view(a, name)
        _expect_type(name, seen, dtype)
        shape, strides, last = self.rules[what]
        _expect(self.plan, name, seen, shape, strides, last)
        if self.like is None:
            self.like = seen
        self.held.append((name, seen))
        return seen.pointer

    def result(self, name, a, what, dtype, given):
        """An array for a result, and its address. given: the caller's name of `a`, if it is not None."""
        shape, strides, last = self.rules[what]
        fresh = a is None
        if fresh:
            if any(strides):
                raise ValueError("%s has the element strides %s in this plan: pass an array for it by out="
                                 % (name, tuple(strides)))
            a = self.kind.empty(shape, dtype, self.like)
            seen = self.kind.view(a)
        else:
            name = given
            seen = self.kind.target(a, name)
        _expect_type(name, seen, dtype)
        _expect(self.plan, name, seen, shape, strides, last)
        if not fresh:
            for other_name, other in self.held:
                if not apart(seen, other):
                    raise ValueError("%s shares memory with %s; an array for a result must share none"
                                     % (name, other_name))
            self.held.append((name, seen))
            self.named.append(a)
        return a, seen.pointer

    def workspace(self, pass_):
        size = self.plan.workspace[pass_]
        if not size:
            return 0, None, None
        if self.plan.device < 0:
            found = _workspaces.workspace(size)
            return found[1], found[0], found
        return (size, *self.kind.memory(size, self.like))

    def finish(self, result):
        for a in self.named:
            self.kind.written(a)
        return self.kind.finish(result, self.plan.device)


def forward(plan, x, w, bias, out, stream):
    plain = stream is None and type(x).__module__.partition(".")[0] == "torch"
    if plain:
        from . import _torch_calls
        y = _torch_calls.forward(plan, x, w, bias, out)
        if y is not None:
            return y
    operands = _Operands(plan, x, "x")
    dtype, weight_dtype = plan.problem.dtype, plan.problem.weight_dtype
    addresses = [operands.address("x", x, "x", dtype), operands.address("w", w, "w", weight_dtype),
                 operands.address("bias", bias, "bias", weight_dtype)]
    stream = operands.kind.stream(operands.like) if stream is None else address_of_stream(stream)
    with operands.kind.on(stream, operands.like):
        y, y_address = operands.result("y", out, "y", dtype, "out")
        size, workspace, held = operands.workspace(structs.FORWARD)
        check(lib.conv_fft_forward(plan.handle, *addresses, y_address, workspace, size, stream))
        del held
    if plain:
        _torch_calls.remember_forward(plan, x, w, bias, out, y)
    return operands.finish(y)


def gradients(names, argument):
    """The set of gradients that an argument names: several of x, w and bias, or one as a str."""
    found = {names} if isinstance(names, str) else set(names)
    if not found <= {"x", "w", "bias"}:
        raise ValueError("%s is %r; it must name some of 'x', 'w' and 'bias'" % (argument, names))
    return found


def backward(plan, x, w, gy, need, out, accumulate, stream):
    need, accumulate = gradients(need, "need"), gradients(accumulate, "accumulate")
    given = {name for name in gradients(out, "out") if out[name] is not None}
    for names, argument, most, other in ((given, "out", need, "need"), (accumulate, "accumulate", given, "out")):
        if not names <= most:
            raise ValueError("%s names %s, which %s does not name"
                             % (argument, " and ".join(sorted(names - most)), other))
    plain = stream is None and type(gy).__module__.partition(".")[0] == "torch"
    if plain:
        from . import _torch_calls
        known = _torch_calls.backward(plan, x, w, gy, need, out, accumulate)
        if known is not None:
            return known
    operands = _Operands(plan, gy, "gy")
    problem = plan.problem
    addresses = [operands.address("gy", gy, "y", problem.dtype)]
    addresses[:0] = [operands.address("x", x, "x", problem.dtype), operands.address("w", w, "w", problem.weight_dtype)]
    kinds = {"x": problem.dtype, "w": problem.weight_grad_dtype, "bias": problem.weight_grad_dtype}
    flags = sum(getattr(structs, "ACCUMULATE_G" + name.upper()) for name in accumulate)
    pass_ = (structs.BACKWARD_DATA if "x" in need else 0) | (structs.BACKWARD_WEIGHTS if "w" in need else 0)
    stream = operands.kind.stream(operands.like) if stream is None else address_of_stream(stream)
    with operands.kind.on(stream, operands.like):
        made = {name: operands.result("g" + name, out.get(name), name, kinds[name], "out[%r]" % name)
                if name in need else (None, None) for name in ("x", "w", "bias")}
        size, workspace, held = operands.workspace(pass_) if pass_ else (0, None, None)
        check(lib.conv_fft_backward(plan.handle, *addresses, *(made[name][1] for name in ("x", "w", "bias")), flags,
                                    workspace, size, stream))
        del held
    operands.finish(None)
    results = tuple(made[name][0] for name in ("x", "w", "bias"))
    if plain:
        _torch_calls.remember_backward(plan, x, w, gy, need, out, accumulate, results)
    return results
