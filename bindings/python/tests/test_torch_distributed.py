# SPDX-License-Identifier: Apache-2.0
"""Two processes train in parallel (gloo on the CPU): records of one serve both, gradients are equal and those of one process."""
import os
import subprocess
import sys
import textwrap

RANK = textwrap.dedent("""
    import os, sys
    os.environ["CONV_FFT_CACHE_DIR"] = os.path.join(sys.argv[2], "cache" + sys.argv[1])
    import conv_fft, conv_fft.torch, torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    rank = int(sys.argv[1])
    dist.init_process_group("gloo", init_method="file://" + os.path.join(sys.argv[2], "store"), rank=rank, world_size=2)
    torch.manual_seed(0)
    layer = conv_fft.torch.Conv2d(3, 4, 5, padding=2).double()
    images = torch.randn(4, 3, 12, 12, dtype=torch.float64)
    mine = images[2 * rank:2 * rank + 2]
    if rank == 0:
        with conv_fft.autotune(milliseconds=300):
            layer(mine).sum().backward()
    layer.zero_grad()
    count = conv_fft.torch.share_records(device="cpu")
    assert count >= 2, count
    before = conv_fft.cache.stats("cpu")["hits"]
    parallel = DistributedDataParallel(layer)
    parallel(mine).square().sum().backward()
    assert conv_fft.cache.stats("cpu")["hits"] >= before + 2
    found = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    (layer(images).square().sum() / 2).backward()
    for p, gradient in zip(layer.parameters(), found):
        torch.testing.assert_close(p.grad, gradient)
    strategies = sorted(r["strategy"] for r in conv_fft.cache.records("cpu"))
    everyone = [None, None]
    dist.all_gather_object(everyone, (strategies, [g.tolist() for g in found]))
    assert everyone[0] == everyone[1]
    print("rank", rank, "good")
    dist.destroy_process_group()
""")


def test_two_ranks(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, str(rank), str(tmp_path)], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) for rank in range(2)]
    for number, rank in enumerate(ranks):
        said, error = rank.communicate(timeout=200)
        assert "rank %d good" % number in said, error
