# SPDX-License-Identifier: Apache-2.0
"""The cost of a call besides its kernels."""
import time

import conv_fft.torch
import torch
from timing import median_ms
from torch import nn


def print_overhead():
    """Prints the microseconds of a small layer: called eagerly, of its kernels alone in a replayed graph, and of
    backward passes in the calling thread. It also prints processor times, of the calling thread and of all threads, on
    which other work of the host has less influence."""
    calls = 200
    torch.backends.cudnn.allow_tf32 = False
    for impl, kind in (("torch", nn.Conv2d), ("ours", conv_fft.torch.Conv2d)):
        torch.manual_seed(0)
        layer = kind(32, 32, 7, padding=3, groups=32).cuda()
        x = torch.randn(2, 32, 28, 28, device="cuda")
        parameters = list(layer.parameters())

        def forward():
            for _ in range(calls):
                layer(x)

        def both():
            for _ in range(calls):
                layer(x).backward(gy)

        def gradients():
            for _ in range(calls):
                torch.autograd.grad(layer(x), parameters, gy)

        def gradients_here():
            with torch.autograd.set_multithreading_enabled(False):
                gradients()
        with torch.no_grad():
            gy = torch.randn_like(layer(x))
        found = {}
        for name, run, grad in (("forward", forward, False), ("forward-recorded", forward, True),
                                ("forward+backward", both, True), ("forward+gradients", gradients, True),
                                ("the same in one thread", gradients_here, True)):
            with torch.set_grad_enabled(grad):
                found[name] = median_ms(run, 0.5) / calls * 1e3
                thread, process = [], []
                for _ in range(7):
                    torch.cuda.synchronize()  # this spins, and its time must not count
                    begin = time.thread_time(), time.process_time()
                    run()
                    thread.append(time.thread_time() - begin[0])
                    process.append(time.process_time() - begin[1])
                found[name + ", thread"], found[name + ", process"] = (min(t) / calls * 1e6 for t in (thread, process))
        for name, run, grad in (("forward-graph", forward, False), ("forward+gradients-graph", gradients, True)):
            with torch.set_grad_enabled(grad):
                side = torch.cuda.Stream()
                with torch.cuda.stream(side):
                    run()
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    run()
            found[name] = median_ms(graph.replay, 0.5) / calls * 1e3
        print("# %s: a call of 32x7x7 depthwise on 2x32x28x28 takes, in us:" % impl)
        for name, us in found.items():
            print("#   %-34s %8.2f" % (name, us))
        print("#   over its kernels: forward %.2f, forward+gradients %.2f" % (found["forward"] - found["forward-graph"],
              found["forward+gradients"] - found["forward+gradients-graph"]), flush=True)
