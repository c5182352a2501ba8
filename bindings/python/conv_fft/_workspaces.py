# SPDX-License-Identifier: Apache-2.0
"""The workspaces of calls on a CPU: each thread has one, as large as its largest call needed.

malloc maps memory of more than 32 MiB anew for each call, and the system clears each of its pages. That took two fifths
of such a call. The calls of a thread run one after the other, so they can share a workspace. Two threads share none."""
import contextlib
import mmap
import threading
import weakref
from ctypes import addressof, c_char, c_size_t, c_void_p

from ._library import lock

STEP = 2 << 20  # bytes; of a huge page


class _Holder:
    """What one thread has: (address, bytes, what keeps the memory alive, bytes as an int). It goes with the thread."""

    __slots__ = ("found", "__weakref__")


_own = threading.local()
_holders = weakref.WeakSet()
_NOTHING = c_void_p(), c_size_t(), None, -1


def _map(size):
    try:
        # Private: after a fork, parent and child have a copy each.
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        raise MemoryError("no memory for a workspace of %d bytes" % size) from None


def _grow(size):
    holder = getattr(_own, "holder", None)
    if holder is None:
        holder = _Holder()
        with lock:
            _holders.add(holder)
        _own.holder = holder
    holder.found = _NOTHING  # frees the smaller one first
    size = -(-size // STEP) * STEP
    memory = _map(size)
    with contextlib.suppress(AttributeError, OSError):  # where there are no huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    # ctypes takes its own objects faster than integers.
    holder.found = found = c_void_p(addressof(c_char.from_buffer(memory))), c_size_t(size), memory, size
    return found


def workspace(size):
    """(address, bytes, what keeps the memory alive, bytes as an int) of at least `size` bytes, for ctypes.

    The caller holds the result until its call has returned: free_workspaces() may run in another thread meanwhile."""
    try:
        found = _own.holder.found
    except AttributeError:
        return _grow(size)
    return found if found[3] >= size else _grow(size)


def free_workspaces() -> None:
    """Free the memory that threads hold for their calls on the CPU. Calls that run at the moment finish with it.

    Each thread holds one workspace, of the bytes that its largest call needed (`Plan.workspace`). It is freed when the
    thread ends, by this call, and by `conv_fft.plans.clear()`. The next call of a thread makes a new one."""
    with lock:
        for holder in list(_holders):
            holder.found = _NOTHING
