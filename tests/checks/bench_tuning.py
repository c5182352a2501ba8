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
CANDIDATES = "case,pass,predicted_ms,measured_ms,strategy"


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
    table = os.path.join(directory, "candidates.csv")
    ended = run(directory, "--device=cpu", "--count=1", "--exhaustive-milliseconds=500", "--candidates", table, path)
    with open(table, encoding="ascii") as file:
        lines = file.read().splitlines()
    timed = sum(int(row.split(",")[5]) for row in ended.stdout.splitlines() if row.startswith("a,"))
    good = re.compile(r"a,(forward|backward),-?[0-9.]+,[0-9.]+,[a-z0-9]+[^,]*")
    if ended.returncode != 0 or lines[0] != CANDIDATES or not lines[1].startswith("# CPU"):
        yield f"candidates: status {ended.returncode}, {lines[:2]}, {ended.stderr!r}"
    if timed < 2 or len(lines) - 2 != timed or not all(good.fullmatch(line) for line in lines[2:]):
        yield f"{timed} strategies were timed, but the table of candidates has {lines[2:]}"
    for status, arguments in [(0, ["--help"]), (2, []), (2, ["--again", path]), (2, ["--count=0", path]),
                              (2, ["--device=gpu", path]),
                              (1, ["--device=cpu", "--count=1", "--candidates",
                                   os.path.join(directory, "missing", "table.csv"), path]),
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
