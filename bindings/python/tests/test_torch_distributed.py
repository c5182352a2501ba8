# SPDX-License-Identifier: Apache-2.0
"""Two processes train in parallel, over gloo on the CPU and over NCCL on two GPUs. Both use the records of one, and
their gradients equal those of a single process."""
import os
import subprocess
import sys
import textwrap

import pytest
from conftest import HAS_GPU, HAS_TORCH

TWO_GPUS = False
if HAS_TORCH and HAS_GPU:
    import torch
    TWO_GPUS = torch.cuda.device_count() >= 2

RANK = textwrap.dedent("""
    import os, sys
    rank, folder, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    os.environ["CONV_FFT_CACHE_DIR"] = os.path.join(folder, "cache%d" % rank)
    import conv_fft, conv_fft.torch, torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    device = torch.device("cpu") if kind == "cpu" else torch.device("cuda", rank)
    if kind == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if kind == "cpu" else "nccl", rank=rank, world_size=2,
                            init_method="file://" + os.path.join(folder, "store"))
    torch.manual_seed(0)
    net = torch.nn.Sequential(conv_fft.torch.Conv2d(3, 4, 5, padding=2), torch.nn.Tanh(),
                              conv_fft.torch.Conv2d(4, 4, 9, padding=4, groups=4)).double().to(device)
    images = torch.randn(4, 3, 12, 12, dtype=torch.float64).to(device)
    mine = images[2 * rank:2 * rank + 2]
    if rank == 0:
        with conv_fft.autotune(milliseconds=300 if kind == "cpu" else 40000):
            net(mine).sum().backward()
    net.zero_grad()
    count = conv_fft.torch.share_records(device=device)
    assert count >= 4, count
    before = conv_fft.cache.stats(device)["hits"]
    parallel = DistributedDataParallel(net)
    for _ in range(2):  # the second step reduces gradients in the order in which the first made them
        net.zero_grad()
        parallel(mine).square().sum().backward()
    assert conv_fft.cache.stats(device)["hits"] >= before + 4
    assert not conv_fft.torch.fallbacks()
    found = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    (net(images).square().sum() / 2).backward()
    for p, gradient in zip(net.parameters(), found):
        torch.testing.assert_close(p.grad, gradient)
    strategies = sorted(r["strategy"] for r in conv_fft.cache.records(device))
    everyone = [None, None]
    dist.all_gather_object(everyone, (strategies, [g.tolist() for g in found]))
    assert everyone[0] == everyone[1]
    print("rank", rank, "good")
    dist.destroy_process_group()
""")


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not TWO_GPUS,
                                                                                       reason="no two GPUs"))])
def test_two_ranks(kind, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if kind == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = ""
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, str(rank), str(tmp_path), kind], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(2)]
    for number, rank in enumerate(ranks):
        said, error = rank.communicate(timeout=200)
        assert "rank %d good" % number in said, error
