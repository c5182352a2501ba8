# SPDX-License-Identifier: Apache-2.0
"""The two direct uses of the CUDA driver: to wait for a device, and to find the device of an address."""
import ctypes

_driver = []


def _open():
    if not _driver:
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) != 0:
            raise OSError("cuInit failed")
        _driver.append(driver)
    return _driver[0]


def _within(device, function):
    """The driver's result of a call with the primary context of a device."""
    driver = _open()
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuDeviceGet(ctypes.byref(handle), device):
        return 1
    if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle):
        return 1
    driver.cuCtxPushCurrent_v2(context)
    try:
        return function(driver)
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
        driver.cuDevicePrimaryCtxRelease_v2(handle)


def synchronize(device):
    """Wait for all work of a device. Returns False if that is not possible, as while a graph is captured."""
    mode = ctypes.c_int(2)  # relaxed: a capture by another thread goes on undisturbed
    try:
        _open().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        try:
            return _within(device, lambda driver: driver.cuCtxSynchronize()) == 0
        finally:
            _open().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    except (OSError, AttributeError):
        return False


def device_of(pointer):
    """The ordinal of the GPU that owns the memory at an address."""
    ordinal = ctypes.c_int()
    if _open().cuPointerGetAttribute(ctypes.byref(ordinal), 9, ctypes.c_uint64(pointer)):  # DEVICE_ORDINAL
        raise ValueError("the address 0x%x is not in the memory of a GPU" % pointer)
    return ordinal.value
