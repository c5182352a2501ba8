# SPDX-License-Identifier: Apache-2.0
"""Times of calls on a GPU by device events, and what torch may use for them."""
import statistics
import time

import torch

AUTOCAST = {"fp16": torch.float16, "bf16": torch.bfloat16}


def median_ms(run, seconds, warm_up=2, least=5, most=200):
    """The median milliseconds of consecutive runs, as in training: the host waits for the device after the last."""
    for _ in range(warm_up):
        run()
    torch.cuda.synchronize()
    events, end_at = [], time.perf_counter() + seconds
    while len(events) <= least or (time.perf_counter() < end_at and len(events) <= most):
        if events:
            run()
        events.append(torch.cuda.Event(enable_timing=True))
        events[-1].record()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in zip(events, events[1:]))


def graphed_ms(run, seconds, least=5, most=100):
    """The median of replays with a cold cache."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    other = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    times, end_at = [], time.perf_counter() + seconds
    while len(times) < least or (time.perf_counter() < end_at and len(times) < most):
        other.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def set_torch(precision, search):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = search > 0, search
