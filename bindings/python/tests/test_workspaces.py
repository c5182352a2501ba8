# SPDX-License-Identifier: Apache-2.0
"""Workspaces on the CPU: one for each thread, kept from call to call."""
import os
import threading
from ctypes import c_char

import conv_fft
import numpy
import pytest
from conv_fft import _workspaces

MIB = 1 << 20
LINE = "in=1x16x20x20 out=16 kernel=5x5 pad=2"


@pytest.fixture(autouse=True)
def fresh():
    conv_fft.free_workspaces()
    yield
    conv_fft.free_workspaces()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def touch(size):
    """A workspace of which each page has been written; its address."""
    found = _workspaces.workspace(size)
    memory = (c_char * size).from_address(found[0].value)
    for at in range(0, size, 4096):
        memory[at] = b"1"
    return found[0].value


def in_a_thread(call):
    """The result of a call in a new thread."""
    results = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


def test_calls_of_a_thread_share_the_largest():
    small = touch(3 * MIB)
    assert touch(2 * MIB) == small == touch(4 * MIB)
    before = resident()
    large = touch(100 * MIB)
    assert resident() - before > 90 * MIB
    for size in 1, 50 * MIB, 100 * MIB:
        found = _workspaces.workspace(size)
        assert found[0].value == large and found[1].value == found[3] >= 100 * MIB
        del found
    assert resident() - before < 110 * MIB  # the smaller one is gone
    conv_fft.free_workspaces()
    assert resident() - before < 10 * MIB


def test_plans_use_it_and_give_it_back(random):
    """Plans of several kinds hold no more than the largest workspace of all."""
    plans = [conv_fft.Plan("in=%dx32x56x56 out=32 kernel=15x15 pad=7" % batch, "cpu", passes="forward",
                           tuning="off") for batch in (8, 16, 32)]
    largest = max(plan.workspace[1] for plan in plans)
    assert largest > 16 * MIB
    before = resident()
    for plan in 2 * plans:
        x = numpy.ones(plan.problem.input_shape, "f")
        plan.forward(x, numpy.ones(plan.problem.weight_shape, "f"), out=numpy.empty(plan.output_shape, "f"))
        assert _workspaces.workspace(1)[3] >= plan.workspace[1]
    del x
    assert _workspaces.workspace(1)[3] < largest + 4 * MIB and len(_workspaces._holders) >= 1
    assert resident() - before > largest // 2
    conv_fft.plans.clear()
    assert _workspaces._own.holder.found[2] is None


def test_threads_share_none_and_take_theirs_along():
    holders, own = len(_workspaces._holders), touch(64 * MIB)
    wait, held, addresses = threading.Barrier(3), threading.Event(), []

    def run():
        addresses.append(touch(64 * MIB))
        wait.wait()
        held.wait()

    before = resident()
    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait.wait()
    places = sorted([own, *addresses])
    assert all(second - first >= 64 * MIB for first, second in zip(places, places[1:]))
    assert resident() - before > 100 * MIB
    held.set()
    for thread in threads:
        thread.join()
    assert resident() - before < 20 * MIB and len(_workspaces._holders) <= holders + 1


def test_another_thread_frees_it_in_the_middle_of_calls(random):
    plan = conv_fft.Plan(LINE, "cpu", passes="forward", tuning="off")
    x, w = (random.standard_normal(shape).astype("f") for shape in ((1, 16, 20, 20), (16, 16, 5, 5)))
    exact, stop = plan.forward(x, w), threading.Event()

    def free():
        while not stop.is_set():
            conv_fft.free_workspaces()

    thread = threading.Thread(target=free)
    thread.start()
    try:
        for _ in range(200):
            assert numpy.array_equal(plan.forward(x, w), exact)
    finally:
        stop.set()
        thread.join()


def test_a_child_has_a_copy():
    at = touch(MIB)
    child = os.fork()
    if child == 0:
        c_char.from_address(at).value = b"2"
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert c_char.from_address(at).value == b"1" and _workspaces.workspace(1)[0].value == at


def test_a_lack_of_memory(random):
    small = touch(MIB)
    with pytest.raises(MemoryError, match="no memory for a workspace of 1152921504606846976 bytes"):
        _workspaces.workspace(1 << 60)
    assert in_a_thread(lambda: touch(MIB)) and small and _workspaces._own.holder.found[2] is None
    x, w = random.standard_normal((1, 2, 9, 9)), random.standard_normal((2, 2, 5, 5))
    assert conv_fft.forward(x, w).shape == (1, 2, 5, 5)  # the next call makes a new one
