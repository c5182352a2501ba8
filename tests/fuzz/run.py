#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py PROGRAM SECONDS: run a libFuzzer program from the seeds and the dictionary beside this file. It fails if the program finds
something, and also if coverage did not lead it: then its inputs would be noise, and no finding would mean nothing."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEAST_GROWTH = 1.1  # edges of the library in the end, over those that the seeds reach; a program without its coverage stays at 1
LEAST_EDGES = 300


def edges(pattern, text):
    found = re.findall(pattern + r".* cov: (\d+)", text)
    return int(found[-1]) if found else 0


def main():
    program, seconds = sys.argv[1:]
    with tempfile.TemporaryDirectory() as corpus:
        command = [program, "-max_total_time=" + seconds, "-max_len=8192", "-seed=1", "-dict=" + str(HERE / "records.dict"),
                   "-artifact_prefix=" + corpus + "/", corpus, str(HERE / "seeds")]
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace")
        said = ended.stderr
        if ended.returncode != 0:
            sys.stdout.write(said)
            for artifact in Path(corpus).glob("*-*"):
                if artifact.name.startswith(("crash-", "leak-", "oom-", "timeout-")):
                    print("the input:", artifact.read_bytes())
            return 1
    begin, end = edges(r"INITED", said), edges(r"DONE", said)
    print(said[-600:])
    print("edges of the library: %d by the seeds, %d in the end" % (begin, end))
    if begin == 0 or end < LEAST_EDGES or end < LEAST_GROWTH * begin:
        print("coverage did not lead the search: at least %d edges, and %g times those of the seeds, are expected"
              % (LEAST_EDGES, LEAST_GROWTH))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
