# SPDX-License-Identifier: Apache-2.0
"""Reads an array through DLPack. The capsule is read and given back while the array lives."""
import ctypes

from . import _structs as structs

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
# (DLPack's type code, bits): 2 is float, 4 is bfloat.
TYPES = {(4 if name == "bfloat16" else 2, 8 * size): name for name, size in structs.ITEM_BYTES.items()}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int),
                ("ndim", ctypes.c_int), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def view(a, view_type, dense, stream=None):
    """The View of an array. The array stays the owner: nobody consumes the capsule, so its destructor frees it."""
    device_type, device = a.__dlpack_device__()
    on_gpu = device_type in (CUDA, CUDA_MANAGED)
    if not on_gpu and device_type not in (CPU, CUDA_HOST):
        raise TypeError("%s is on a device of DLPack's kind %d; it must be the host or a CUDA GPU"
                        % (type(a).__name__, device_type))
    capsule = a.__dlpack__(stream=stream) if on_gpu else a.__dlpack__()
    address = _api.PyCapsule_GetPointer(capsule, b"dltensor")
    tensor = Tensor.from_address(address)
    shape = tuple(tensor.shape[:tensor.ndim])
    strides = tuple(tensor.strides[:tensor.ndim]) if tensor.strides else dense(shape)
    kind = TYPES.get((tensor.code, tensor.bits), "kind %d of %d bits" % (tensor.code, tensor.bits))
    return view_type((tensor.data or 0) + tensor.byte_offset, shape, strides, kind,
                     device if on_gpu else structs.DEVICE_CPU, a)
