# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training of the same networks (DDP over NCCL), on one GPU and on several."""
import copy
import tempfile

import conv_fft.torch
import torch
import torch.distributed as dist
from network_steps import CASES, Training, make_model
from timing import median_ms, set_torch
from torch import multiprocessing
from torch.nn.parallel import DistributedDataParallel


def choose(plain, case, precision, last, options):
    """The layers that convert() changes. Rank 0 measures and sends them to all ranks."""
    chosen = [None]
    if dist.get_rank() == 0:
        training = Training(copy.deepcopy(plain), case, precision, last)
        with training.autocast():
            chosen = [conv_fft.torch.convert(training.model,
                                             lambda name, layer: max(layer.kernel_size) >= options.least,
                                             inputs=(training.x,)).changed]
    dist.broadcast_object_list(chosen)
    return set(chosen[0])


def train_parallel(model, group, case, precision, last, options):
    """The median milliseconds of a step, and the loss of the first."""
    rank = dist.get_rank()
    # Each GPU has its own statistics of normalisations. To broadcast hundreds of small tensors at each step would cost
    # the host more than the step's own calls.
    parallel = DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=True, broadcast_buffers=False,
                                       static_graph=True, process_group=group)
    training = Training(parallel, case, precision, last)
    ms = median_ms(training.step, 0, warm_up=3, least=options.steps)
    sums = torch.stack([p.detach().double().sum() for p in model.parameters()])
    first = sums.clone()
    dist.broadcast(first, 0, group)
    if not torch.equal(sums, first):
        raise SystemExit("bench_torch.py: the parameters of rank %d are not those of rank 0" % rank)
    return ms, training.losses[0].item()


def run_rank(rank, count, store, case, last, options, results):
    """One process of `count`. The first trains alone, then all train together. Rank 0 records the times."""
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=store, rank=rank, world_size=count,
                            device_id=torch.device("cuda", rank))
    alone = dist.new_group([0])
    for precision in options.precision:
        set_torch(precision, options.search)
        plain = make_model(case, last)
        changed = choose(plain, case, precision, last, options)
        for members, group in ((1, alone), (count, dist.group.WORLD)):
            for impl in ("torch", "ours") if rank < members else ():
                model = copy.deepcopy(plain)
                if impl == "ours":
                    conv_fft.torch.convert(model, lambda name, layer: name in changed)
                found = train_parallel(model, group, case, precision, last, options)
                if rank == 0:
                    results[precision, members, impl] = (*found, len(changed))
            dist.barrier()
    dist.destroy_process_group()


def run_gpus(case, last, options):
    """{precision: rows} of data-parallel training on one GPU and on several."""
    with multiprocessing.Manager() as manager, tempfile.TemporaryDirectory() as folder:
        results = manager.dict()
        multiprocessing.spawn(run_rank, (options.gpus, "file://%s/store" % folder, case, last, options, results),
                              options.gpus)
        found = dict(results)
    rows = {precision: [] for precision in options.precision}
    for (precision, count, impl), (ms, loss, changed) in sorted(found.items()):
        theirs = found[precision, count, "torch"][1]
        rows[precision].append(["steps", case, "step-gpus%d" % count, precision, "last" if last else "first", impl,
                                "%.4f" % ms, "0", "%.2e" % (abs(loss - theirs) / theirs),
                                "%d layers" % changed if impl == "ours" else ""])
        print("# %s %s, %d GPUs, %s: %.2f ms a step, %.0f samples a second, %.0f %% of %d times one GPU" % (
            case, precision, count, impl, ms, CASES[case][1][0] * count / ms * 1e3,
            100 * found[precision, 1, impl][0] / ms, count), flush=True)
    return rows
