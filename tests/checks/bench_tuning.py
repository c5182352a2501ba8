#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_tuning.py PROGRAM

bench_tuning compares the modes off and measure with mode exhaustive, and refuses wrong options.
"""
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
COLUMNS = "case,pass,winner_ms,off_ms,measure_ms,timed,reach,measure_s,exhaustive_s,winner,off,measure"


def run(directory, *arguments):
    environment = {**os.environ, "CONV_FFT_CACHE_DIR": os.path.join(directory, "cache"), "CONV_FFT_TUNE_PATH": "",
                   "CONV_FFT_RECORD": ""}
    return subprocess.run([PROGRAM, *arguments], env=environment, capture_output=True, text=True, timeout=100)


def faults(directory):
    path = os.path.join(directory, "net.txt")
    with open(path, "w", encoding="ascii") as file:
        file.write("a in=1x2x9x9 kernel=3x3\nb in=1x2x10x10 kernel=3x3\n")
    ended = run(directory, "--device=cpu", "--count=1", path)
    rows = re.findall("^(a|b),(forward|backward),", ended.stdout, re.M)
    begins = ended.stdout.startswith(COLUMNS + "\n# CPU")
    if ended.returncode != 0 or not begins or rows != [("a", "forward"), ("a", "backward")]:
        yield f"one layer: status {ended.returncode}, {ended.stdout!r}, {ended.stderr!r}"
    if not re.search("^# measure took ", ended.stdout, re.M):
        yield f"no times of the searches: {ended.stdout!r}"
    for status, arguments in [(0, ["--help"]), (2, []), (2, ["--again", path]), (2, ["--count=0", path]),
                              (2, ["--device=gpu", path]),
                              (1, [os.path.join(directory, "missing")])]:
        ended = run(directory, *arguments)
        if ended.returncode != status or bool(ended.stderr) != (status != 0):
            yield f"{arguments} ends with status {ended.returncode}: {ended.stderr!r}"


def main():
    with tempfile.TemporaryDirectory() as directory:
        found = list(faults(directory))
    print("\n".join(found) or "bench_tuning: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
