#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples.py ROOT LIBRARY FAKES WORK

The examples in C compile without a warning, as users compile them, and print the right results. The example for a GPU
runs on the GPU of FAKES, whose kernels do nothing, and without a GPU, where it has to say so. An example in C or Python
has less than 120 lines, and examples/README.md lists it. CC in the environment is the compiler.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LINES = 120
PYTHON = "bindings/python/examples"
NETWORK = "one in=2x3x20x20 out=4 kernel=9x9 pad=4\n# a comment\n\ntwo in=2x4x20x20 kernel=7x7 pad=3 groups=4\n"
RESULT = r"relative error \d\.\de-0[6-9]\n"
# Each example in C: its arguments, status, and what it prints; of cuda_stream.c on the GPU of FAKES.
RUNS = {
    "layer": ([], 0, f"y +{RESULT}gx +{RESULT}gw +{RESULT}gbias +{RESULT}"),
    "train": ([], 0, r"step   0  loss 1\.(.|\n)*step 100  loss 0\.000\d+, bias 1\.000, w\[4\]\[4\] 1\.000"),
    "transform": ([], 0, r"largest error of a bin \d\.\de-0[67], of an image after both transforms \d\.\de-0[78]"),
    "tune_network": (["network.txt", "5000"], 0, r"CPU(.|\n)*one +forward +\d+\.\d+ ms  (.|\n)*"
                                                 r"two +backward +\d+\.\d+ ms  (.|\n)*^4 records$"),
    "cuda_stream": ([], 1, r"y\[0\]\[0\]\[32\]\[32\] = 0\.000, expected(.|\n)*expected the sum over y, 0\.0"),
}


def list_faults(root):
    listed = (root / "examples/README.md").read_text(encoding="utf-8")
    for path in [*sorted((root / "examples").glob("*.[ch]")), *sorted((root / PYTHON).glob("*.py"))]:
        name, lines = os.path.relpath(path, root / "examples"), path.read_text(encoding="utf-8").count("\n")
        if lines >= LINES:
            yield f"{path.relative_to(root)} has {lines} lines; an example has less than {LINES}"
        if f"]({name})" not in listed:
            yield f"examples/README.md does not list {name}"
    found = {path.stem for path in (root / "examples").glob("*.c")}
    if found != set(RUNS):
        yield f"examples/ has {sorted(found)}; RUNS of this file has {sorted(RUNS)}"


def compiled(root, library, name, work):
    cuda = [f"-I{root / 'tests/fakes'}", str(root / "tests/fakes/cudart.c")] if name.startswith("cuda_") else []
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror",
                    f"-I{root / 'include'}", str(root / "examples" / f"{name}.c"), *cuda, "-o", str(work / name),
                    str(library), f"-Wl,-rpath,{library.parent}", "-lm"], check=True)
    return work / name


def ended(program, work, libraries, *arguments):
    environment = {**os.environ, "CONV_FFT_CACHE_DIR": str(work / "cache"), "CONV_FFT_LIBRARY_PATH": str(libraries),
                   "CONV_FFT_TUNE_PATH": "", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run([str(program), *arguments], cwd=work, env=environment, capture_output=True, text=True,
                          timeout=100)


def run_faults(root, library, fakes, work):
    (work / "network.txt").write_text(NETWORK)
    for name, (arguments, status, printed) in RUNS.items():
        program = compiled(root, library, name, work)
        on_gpu = name.startswith("cuda_")
        run = ended(program, work, fakes / "good" if on_gpu else fakes / "no_gpu", *arguments)
        if run.returncode != status or not re.search(printed, run.stdout, re.M):
            yield f"examples/{name}.c ends with status {run.returncode} and prints\n{run.stdout}{run.stderr}"
        if on_gpu:
            run = ended(program, work, fakes / "no_gpu", *arguments)
            if run.returncode != 1 or run.stdout or not re.match("options.device is 0, a GPU that is not", run.stderr):
                yield f"examples/{name}.c without a GPU: status {run.returncode}\n{run.stdout}{run.stderr}"
    run = ended(work / "tune_network", work, fakes / "no_gpu")
    if run.returncode != 2 or not run.stderr.startswith("usage: "):
        yield f"examples/tune_network.c without arguments: status {run.returncode}\n{run.stdout}{run.stderr}"


def main():
    root, library, fakes, folder = (Path(argument).resolve() for argument in sys.argv[1:5])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        found = [*list_faults(root), *run_faults(root, library, fakes, Path(work))]
    return "\n".join(found) if found else 0


if __name__ == "__main__":
    sys.exit(main())
