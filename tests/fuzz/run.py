#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run a libFuzzer program from the seeds and the dictionary beside this file.

It fails if the program finds something. It also fails if coverage did not guide the program, because then its inputs
are noise, and finding nothing proves nothing. CONV_FFT_TEST_SEED chooses where it begins.
"""
import argparse
import base64
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MAX_SECONDS = 86400
MIN_GROWTH = 1.1  # edges reached at the end, over edges that the seeds reach; without coverage the program stays at 1
MIN_EDGES = 300


def seconds_of(text):
    if not text.isdecimal() or not 1 <= int(text) <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds, 1 to {MAX_SECONDS}")
    return int(text)


def seed_of_run():
    """libFuzzer's seeds have 32 bits, and 0 means the time of day."""
    text = os.environ.get("CONV_FFT_TEST_SEED") or "1"
    try:
        seed = int(text, 0)
    except ValueError:
        seed = -1
    if not 0 <= seed < 1 << 64:
        sys.exit(f"CONV_FFT_TEST_SEED={text}: a seed is a whole number of up to 64 bits")
    return (seed ^ seed >> 32) & 0xffffffff or 1


def edges(pattern, text):
    found = re.findall(pattern + r".* cov: (\d+)", text)
    return int(found[-1]) if found else 0


def fuzz(program, seconds, corpus, findings):
    """The exit status of the test."""
    grown = any(corpus.iterdir())  # by an earlier run: this one may find nothing new
    command = [program, f"-max_total_time={seconds}", "-max_len=8192", f"-seed={seed_of_run()}",
               f"-dict={HERE / 'records.dict'}",
               f"-artifact_prefix={findings}/", str(corpus), str(HERE / "seeds")]
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace")
    said = ended.stderr
    if ended.returncode != 0:
        sys.stdout.write(said)
        for found in findings.glob("*-*"):
            if found.name.startswith(("crash-", "leak-", "oom-", "timeout-")):
                data = base64.b64encode(found.read_bytes()).decode()
                print(f"replay: echo {data} | base64 -d > input; {program} input")
        return 1
    begin, end = edges(r"INITED", said), edges(r"DONE", said)
    print(said[-600:])
    print(f"edges of the library: {begin} by the seeds{' and the corpus' if grown else ''}, {end} in the end")
    if begin == 0 or end < MIN_EDGES or (not grown and end < MIN_GROWTH * begin):
        print(f"coverage did not guide the search: at least {MIN_EDGES} edges are expected, and {MIN_GROWTH} times the "
              "edges of the seeds")
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=seconds_of, default=20)
    parser.add_argument("--corpus", type=Path, help="a folder that keeps new and failed inputs for later runs")
    options = parser.parse_args()
    if options.corpus:
        try:
            options.corpus.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(f"--corpus: {error}")
        return fuzz(options.program, options.seconds, options.corpus, options.corpus)
    with tempfile.TemporaryDirectory() as folder:
        corpus, findings = Path(folder, "corpus"), Path(folder, "findings")
        corpus.mkdir()
        findings.mkdir()
        return fuzz(options.program, options.seconds, corpus, findings)


if __name__ == "__main__":
    sys.exit(main())
