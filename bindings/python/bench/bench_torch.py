#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times training steps of whole networks with torch's layers and after conv_fft.torch.convert(), single layers beside
torch's implementations, and the host's time of calls.

    python bench_torch.py [--case replknet31b-b32 ...] [--precision fp32 tf32 fp16 ...] [--tune MS] [--gpus N]
                          [--out torch.csv]
    python bench_torch.py --layers longconv depthwise [--case L4096 ...] [--precision fp32 ...] [--out torch.csv]
    python bench_torch.py --host [--device cpu] [--out host.csv]

A step is forward, loss, backward and an update by SGD with momentum, on random images. torch may search cuDNN's
algorithms (cudnn.benchmark, --search). fp16 and bf16 use autocast. Both networks start from the same parameters, and
both losses are printed. A time is the median of the steps that fit into --seconds, by device events. convert() measures
each layer and takes the faster one. With --tune, conv_fft.autotune() measures strategies first, for that many
milliseconds per plan. Rows of a file are replaced case by case. --gpus adds data-parallel training (DDP over NCCL) on
one GPU and on that many, each with a batch of the case's size: rows step-gpusN.

--layers times the layers of networks/longconv.txt beside torch.fft (rfft of both, padded to twice the length, product,
irfft), and those of networks/depthwise.txt beside torch's convolution: its depthwise kernels and cuDNN's (searched as
above), in both memory formats. A row has the fastest of these and names it. Passes: forward, and training (forward and
both gradients); depthwise layers also each gradient alone (bprop-graph, accgrad-graph). Calls are eager and follow each
other; those of -graph are replayed, with 256 MiB written before each so that the cache holds no operands.
Calls that take more than --limit seconds are left out. Errors are relative to double precision, of the first four
channels.

--host times small layers until their calls return: ours and torch's, in FP32 and under autocast, Plan.forward(out=) and
conv_fft_forward(). On a CPU these times include the computation."""
import argparse
import datetime
import pathlib
import subprocess
import sys

import conv_fft
import torch
from conv_fft._context import context
from data_parallel import run_gpus
from host_times import COLUMNS as HOST_COLUMNS
from host_times import HOW, host_rows
from network_steps import CASES, TIMM_CASES, networks, run_case
from single_layers import layers_of, run_layer

COLUMNS = "suite,case,pass,precision,layout,impl,ms,workspace_bytes,rel_l2,strategy"


def write(path, rows, commit, how, suite="steps"):
    """Replaces older rows of the same case and precision. A header is removed with the last of its rows."""
    keys = {tuple(row[:6]) for row in rows}
    kept, header = [], []
    for line in path.read_text().splitlines()[1:] if path.exists() else []:
        if line.startswith("#"):
            header = [line] if line.startswith("# suite") else header + [line]
        elif tuple(line.split(",")[:6]) not in keys:
            kept += [*header, line]
            header = []
    header = header_of(suite, commit, "median of " + how)
    path.write_text("\n".join([COLUMNS, *kept, *header, *(",".join(row) for row in rows)]) + "\n")


def header_of(suite, commit, how, device="cuda"):
    cudnn = torch.backends.cudnn.version() or 0
    where = context("cpu").description if device == "cpu" else "%s, CUDA %s" % (torch.cuda.get_device_name(),
                                                                                torch.version.cuda)
    return ["# suite %s, commit %s, %s" % (suite, commit, datetime.date.today()), "# device: " + where,
            "# libraries: conv_fft %s, torch %s, cuDNN %d.%d.%d"
            % (conv_fft.__version__, torch.__version__, cudnn // 10000, cudnn // 100 % 100, cudnn % 100), "# " + how]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="*", help="networks (%s; with timm also %s), or with --layers the names of "
                        "some; all but those of timm" % (", ".join(networks.CASES), ", ".join(TIMM_CASES)))
    parser.add_argument("--precision", nargs="*", default=["fp32", "tf32", "fp16"],
                        choices=["fp32", "tf32", "fp16", "bf16"])
    parser.add_argument("--layout", default="first", choices=["first", "last"])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--least", type=int, default=2,
                        help="the smallest kernel that convert() may look at (default 2)")
    parser.add_argument("--search", type=int, default=10, metavar="N",
                        help="algorithms of cuDNN that torch may try for each layer "
                        "(cudnn.benchmark_limit; 0: cudnn.benchmark off, as is torch's default)")
    parser.add_argument("--gpus", type=int, default=1, help="data-parallel training on one GPU and on that many")
    parser.add_argument("--steps", type=int, default=10, help="with --gpus: how many steps are measured (default 10)")
    parser.add_argument("--tune", type=int, default=0, metavar="MS")
    parser.add_argument("--graph", action="store_true", help="also measure steps as CUDA graphs (device time only)")
    parser.add_argument("--layers", nargs="+", choices=["longconv", "depthwise"], default=[],
                        help="single layers instead of networks")
    parser.add_argument("--limit", type=float, default=2.0,
                        help="with --layers: the longest call that is measured, in seconds (default 2)")
    parser.add_argument("--host", action="store_true", help="the host's time of calls, instead of the networks")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="with --host (default cuda)")
    parser.add_argument("--table", action="store_true", help="print the table of convert()")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--commit")
    options = parser.parse_args()
    if options.device == "cpu" and not options.host:
        parser.error("--device cpu needs --host")
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("bench_torch.py: there is no GPU")
    commit = options.commit or subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True,
                                              text=True).stdout.strip()
    if options.host:
        torch.backends.cudnn.allow_tf32 = False
        rows = host_rows(options.device)
        if options.out:
            header = header_of("host", commit, HOW, options.device)
            options.out.write_text("\n".join([HOST_COLUMNS, *header, *(",".join(row) for row in rows)]) + "\n")
        return
    for suite in options.layers:
        layers = layers_of(suite)
        for name in options.case or layers:
            for precision in options.precision if name in layers else ():
                rows = run_layer(suite, name, layers[name], precision, options)
                if options.out:
                    write(options.out, rows, commit,
                          "eager calls, and of replayed graphs after 256 MiB written, %g s each, by device "
                          "events, cudnn.benchmark of %d; torch: the fastest of its ways"
                          % (options.seconds / 2, options.search), "torch-" + suite)
    unknown = set(options.case or ()) - set(CASES)
    if unknown and not options.layers:
        parser.error("--case: %s; these are: %s" % (", ".join(unknown), ", ".join(CASES)))
    how = "%s by device events, cudnn.benchmark of %d, SGD with momentum, convert() with measurements"
    for case in () if options.layers else options.case or networks.CASES:
        last = options.layout == "last"
        if options.gpus > 1:
            for rows in run_gpus(case, last, options).values():
                if options.out:
                    write(options.out, rows, commit, how % ("%d steps" % options.steps, options.search))
            continue
        for precision in options.precision:
            rows = run_case(case, precision, last, options)
            torch.cuda.empty_cache()
            if options.out:
                write(options.out, rows, commit, how % ("the steps of %g s" % options.seconds, options.search))


if __name__ == "__main__":
    main()
