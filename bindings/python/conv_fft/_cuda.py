# SPDX-License-Identifier: Apache-2.0
"""The two things that the CUDA driver itself is asked for: to wait for a device, and which device an address is of."""
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
    if driver.cuDeviceGet(ctypes.byref(handle), device) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle):
        return 1
    driver.cuCtxPushCurrent_v2(context)
    try:
        return function(driver)
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
        driver.cuDevicePrimaryCtxRelease_v2(handle)


def synchronize(device):
    """Wait for all work of a device; False if it cannot be waited for, as while a graph is captured."""
    mode = ctypes.c_int(2)  # relaxed: a capture by another thread is left alone
    try:
        _open().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        try:
            return _within(device, lambda driver: driver.cuCtxSynchronize()) == 0
        finally:
            _open().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    except (OSError, AttributeError):
        return False


def device_of(pointer):
    """The ordinal of the GPU that an address is of."""
    ordinal = ctypes.c_int()
    if _open().cuPointerGetAttribute(ctypes.byref(ordinal), 9, ctypes.c_uint64(pointer)):  # DEVICE_ORDINAL
        raise ValueError("0x%x is no memory of a GPU" % pointer)
    return ordinal.value
