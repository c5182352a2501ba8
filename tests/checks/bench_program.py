#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_program.py PROGRAM BUSY FAKES

bench_conv may measure parts of a suite in several processes or runs. They all write one file of results, each row once.
Rows that exist are not measured again. Options that make no sense are refused. FAKES is the folder of the substitutes:
a oneDNN that does not fit is refused, and the program goes on without it. The causal operations of a substitute cuDNN
compute on the host; the library's kernels compute nothing there.
"""
import csv
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM, BUSY, FAKES = sys.argv[1:]
NAMES = ["a", "b", "c", "d", "e"]
OPTIONS = ["--seconds", "0.001", "--commit", "c0ffee", "--threads", "1"]


def command(folder, *arguments):
    return [PROGRAM, "--suite", "small=%s" % (folder / "layers.txt"), *OPTIONS, *arguments]


def run(folder, *arguments, libraries=None):
    environment = os.environ if libraries is None else {**os.environ, "CONV_FFT_LIBRARY_PATH": libraries}
    return subprocess.run(command(folder, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=100, env=environment)


def rows_of(path):
    lines = path.read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def keys_of(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


def part_faults(folder):
    out = folder / "conv.csv"
    passes = ["--pass", "fprop,accgrad", "--out", str(out)]
    shards = [subprocess.Popen(command(folder, *passes, "--shard", "%d/2" % number), stderr=subprocess.DEVNULL)
              for number in (1, 2)]
    if any([shard.wait(timeout=100) for shard in shards]):
        yield "a shard fails"
    keys = keys_of(rows_of(out), "case", "pass", "impl")
    expected = {(name, of) for name in NAMES for of in ("fprop", "accgrad")}
    if len(keys) != len(set(keys)) or {key[:2] for key in keys} != expected:
        yield f"two shards give {sorted(keys)}"

    before = out.read_text()
    if run(folder, *passes, "--resume").returncode != 0 or out.read_text() != before:
        yield "--resume measures what is there"
    run(folder, *passes, "--resume", "--commit", "another", "--minutes", "1e-9")
    if out.read_text() != before:
        yield "a case begins after the time is up"
    run(folder, *passes, "--resume", "--commit", "another", "--case", "b")
    if "commit another" not in out.read_text() or sorted(keys_of(rows_of(out), "case", "pass", "impl")) != sorted(keys):
        yield "--resume does not measure anew what another commit measured"
    if list(folder.glob("*.new")):
        yield "a temporary file stays"


def kept_faults(folder):
    out = folder / "kept.csv"
    ended = run(folder, "--pass", "backward-kept", "--case", "b", "--out", str(out))
    rows = {row["impl"]: row for row in rows_of(out)}
    if ended.returncode != 0 or set(rows) != {"ours-staged", "unkept", "transforms"}:
        yield f"kept spectra: {ended.stderr}, {sorted(rows)}"
    elif rows["ours-staged"]["strategy"] != rows["unkept"]["strategy"]:
        yield f"kept spectra change the strategy: {rows}"
    elif "transform x" not in rows["transforms"]["strategy"] or "transform w" not in rows["transforms"]["strategy"]:
        yield f"the transforms of the backward pass: {rows['transforms']}"


def stage_faults(folder):
    out, layers = folder / "stages.csv", folder / "long.txt"
    layers.write_text("long in=1x1x2000 out=1 kernel=999 pad=same\n")
    ended = subprocess.run([PROGRAM, "--suite", str(layers), *OPTIONS, "--stages", "--pass", "fprop,backward", "--out",
                            str(out)], capture_output=True, text=True, timeout=100)
    rows = rows_of(out)
    names = {passname: [row["impl"] for row in rows if row["pass"] == passname] for passname in ("fprop", "backward")}
    if ended.returncode != 0 or names["fprop"] != ["stage transform w", "stage transform x", "stage product y",
                                                   "stage inverse y"]:
        yield f"stages: {ended.stderr}, {names}"
    if not {"stage transform gy", "stage product gx", "stage product gw"} <= set(names["backward"]):
        yield f"stages of both gradients: {names}"
    yield from (f"a stage without a budget: {row}" for row in rows
                if not re.match(r"[1-9]\d* bytes [1-9]\d* operations of staged ", row["strategy"])
                or float(row["ms"]) < 0)


def family_faults(folder):
    """The best candidate of each family has one row. The CPU has two families."""
    out = folder / "families.csv"
    ended = run(folder, "--families", "--pass", "fprop,backward", "--case", "b", "--out", str(out))
    ours = [(row["pass"], row["impl"]) for row in rows_of(out) if row["impl"].startswith("ours")]
    ours.sort(key=lambda row: (row[0] != "fprop", row[1]))
    if ended.returncode != 0 or ours != [(name, impl) for name in ("fprop", "backward")
                                         for impl in ("ours-spatial", "ours-staged")]:
        yield f"families: {ended.stderr}, {ours}"


def onednn_faults(folder):
    """If this system has a oneDNN that fits, that is found after the one that does not."""
    arguments = ["--pass", "fprop", "--case", "b"]
    fits = ", oneDNN 3." in run(folder, *arguments).stdout
    for name, reason in [("old_onednn", "oneDNN 3 is needed, found 2.6.3 ("),
                         ("onednn_without_openmp", "oneDNN with OpenMP is needed, found 3.6.3 "),
                         ("lacking_onednn", "has no function dnnl_engine_create")]:
        ended = run(folder, *arguments, libraries=f"{FAKES}/{name}")
        told = re.findall("^bench_conv: no oneDNN to compare with: .*" + re.escape(reason), ended.stderr, re.M)
        if ended.returncode != 0 or len(told) != (0 if fits else 1):
            yield f"{name}: {ended.stderr}"
        expected = {", no oneDNN\n": not fits, ",onednn,": fits, ",onednn-blocked,": fits, ",direct,": True}
        if any((text in ended.stdout) != there for text, there in expected.items()):
            yield f"{name} gives {ended.stdout}"


def causal(folder, libraries, *arguments):
    """The rows of cuDNN by (case, pass), and what the program wrote."""
    layers = folder / "causal.txt"
    layers.write_text("short in=2x3x40 out=3 kernel=4 pad=3:0 groups=3\nfft in=1x2x1024 out=2 kernel=512 pad=511:0 "
                      "groups=2\neither in=1x2x256 out=2 kernel=128 pad=127:0 groups=2\n"
                      "neither in=1x2x64 out=2 kernel=9 pad=8:0 groups=2\n")
    folders = [f"{FAKES}/{name}" for name in [*libraries, "large_gpu"]]
    environment = {**os.environ, "CONV_FFT_LIBRARY_PATH": ":".join(folders),
                   "CONV_FFT_CACHE_DIR": str(folder / "cache")}
    ended = subprocess.run([PROGRAM, "--suite", str(layers), *OPTIONS, "--device", "0", *arguments],
                           capture_output=True, text=True, timeout=100, env=environment)
    lines = (line for line in ended.stdout.splitlines() if not line.startswith("#"))
    return {(row["case"], row["pass"]): row for row in csv.DictReader(lines) if row["impl"] == "cudnn"}, ended


def causal_faults(folder):
    """Both ways of cuDNN, which read taps in opposite orders, in both layouts and with weights of 16 bits."""
    for arguments, limit, expected in [
            (["--case", "short", "--class", "bf16", "--pass", "fprop,accgrad"], 4e-3,
             {("short", "fprop"): "cudnnCausalConv1dForward", ("short", "accgrad"): "cudnnCausalConv1dBackward"}),
            (["--case", "short", "--layout", "last", "--pass", "fprop,backward"], 1e-6,
             {("short", "fprop"): "cudnnCausalConv1dNwhForward",
              ("short", "backward"): "cudnnCausalConv1dNwhBackward"}),
            (["--case", "fft", "--pass", "fprop,backward"], 1e-6,
             {("fft", "fprop"): "cudnnFFTCausalConv1dForward", ("fft", "backward"): "cudnnFFTCausalConv1dBackward"}),
            (["--case", "fft", "--class", "fp16", "--pass", "accgrad"], 1e-3,
             {("fft", "accgrad"): "cudnnFFTCausalConv1dBackward"}),
            # The other operation adds in any order, and tuned plans do not.
            (["--case", "either", "--tune", "--pass", "accgrad"], 1e-6,
             {("either", "accgrad"): "cudnnFFTCausalConv1dBackward"}),
            (["--case", "neither", "--pass", "fprop"], 0, {})]:
        rows, ended = causal(folder, ["with_causal"], *arguments)
        if {key: row["strategy"] for key, row in rows.items()} != expected or any(
                not float(row["rel_l2"]) < limit for row in rows.values()):
            yield f"causal layers with {arguments}: {rows}, {ended.stderr}"
        if "causal operations" in ended.stdout or ("no causal operation computes" in ended.stderr) != (not expected):
            yield f"what is said of causal layers with {arguments}: {ended.stdout}, {ended.stderr}"
    tried = re.findall(r"cudnn either: cudnn(FFT)?CausalConv1dForward takes",
                       causal(folder, ["with_causal"], "--case", "either", "--pass", "fprop", "--verbose")[1].stderr)
    if tried != ["", "FFT"]:
        yield f"for 128 taps these operations are tried: {tried}"
    if ", causal operations from another folder\n" not in causal(
            folder, ["with_cudnn", "with_causal"], "--case", "short", "--pass", "fprop")[1].stdout:
        yield "the head does not say that cuDNN has two folders"
    rows, ended = causal(folder, ["lacking_causal"], "--case", "short", "--pass", "fprop")
    if rows or "has no function cudnnFFTCausalConv1dBackward" not in ended.stderr:
        yield f"an older cuDNN: {ended.stderr}"


def known_faults(folder):
    """A search that has no time tries what earlier results name for the pass, or one algorithm if they name none."""
    layers, known = folder / "known.txt", folder / "known.csv"
    layers.write_text("a in=2x4x12x12 out=3 kernel=3x3 pad=1\n")
    known.write_text("suite,case,pass,precision,layout,impl,ms,workspace_bytes,rel_l2,strategy\n# suite known\n"
                     "known,a,bprop,fp32,first,cudnn,1,0,1,graph:3\nknown,a,fprop,fp32,first,ours,1,0,1,graph:3\n"
                     'known,a,fprop,fp32,first,cudnn,1,0,1,"graph:0:k2=27,k13=-1 (search cut short)"\n'
                     "known,a,fprop,fp32,first,cudnn,1,0,1,graph:2\n")
    for options, expected in [([], ["old:FFT_TILING:fma"]),
                                (["--known", str(known)], ["graph:0:k2=27,k13=-1", "graph:2"])]:
        environment = {**os.environ, "CONV_FFT_LIBRARY_PATH": f"{FAKES}/with_cudnn:{FAKES}/large_gpu",
                       "CONV_FFT_CACHE_DIR": str(folder / "cache")}
        ended = subprocess.run([PROGRAM, "--suite", str(layers), *OPTIONS, "--device", "0", "--pass", "fprop",
                                "--search", "1e-9", "--verbose", *options],
                               capture_output=True, text=True, timeout=100, env=environment)
        tried = re.findall(r"cudnn a: [\d.]+ ms (\S+) \(workspace", ended.stderr)
        if tried != expected:
            yield f"tried with {options}: {tried}, {ended.stderr}"


def refusal_faults(folder):
    for arguments in [["--shard", "0/2"], ["--shard", "3/2"], ["--shard", "1"], ["--resume"], ["--minutes", "0"],
                      ["--class", "fp16"], ["--case", "z"], ["--known", str(folder / "missing.csv")]]:
        ended = run(folder, *arguments)
        if ended.returncode == 0 or not ended.stderr.startswith("bench_conv: "):
            yield f"{arguments} ends with status {ended.returncode}: {ended.stderr}"


def busy_faults():
    """bench_busy: its head, its rows, and arguments that it refuses."""
    def busy(*arguments):
        return subprocess.run([BUSY, *arguments], capture_output=True, text=True, timeout=100)
    ended = busy("1", "in=1x2x9x9 out=2 kernel=3x3")
    lines = ended.stdout.splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    if [(row["pass"], row["programs"]) for row in rows] != [("forward", "1"), ("backward", "1")] or \
            not all(float(row["one_thread_ms"]) > 0 and float(row["two_threads_ms"]) > 0 for row in rows):
        yield f"bench_busy prints {ended.stdout} {ended.stderr}"
    if not re.match(r"# suite busy, commit \S+, 20\d\d-\d\d-\d\d\n# device: .+, \d+ processors\n", ended.stdout):
        yield f"the head of bench_busy: {lines[:4]}"
    for arguments, status, message in [([], 2, "missing"), (["x"], 2, "x"), (["-1"], 2, "-1"), (["65"], 2, "65"),
                                       (["0", "in=0x2"], 1, "")]:
        ended = busy(*arguments)
        if ended.returncode != status or not ended.stderr.startswith("bench_busy: ") or message not in ended.stderr:
            yield f"bench_busy {arguments} ends with status {ended.returncode}: {ended.stderr}"


def main():
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "layers.txt").write_text("".join(
            f"{name} in=2x2x{extent}x9 out=3 kernel=3x2 stride={1 + extent % 2} pad=1:0\n"
            for extent, name in enumerate(NAMES, 6)))
        found = [*part_faults(folder), *kept_faults(folder), *stage_faults(folder), *family_faults(folder),
                 *onednn_faults(folder), *causal_faults(folder), *known_faults(folder),
                 *refusal_faults(folder), *busy_faults()]
    print("\n".join(found) or "bench_conv: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
