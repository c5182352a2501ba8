#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tuning_program.py PROGRAM ROOT: conv-fft tune, cache and bench on the CPU: good lines run beside bad ones, an interrupted run goes on where
it was, records survive export, clear and merge, damage is found; every line of networks/ is a problem."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import zlib

PROGRAM, ROOT = sys.argv[1:3]
LAYERS = ["a in=1x2x9x9 kernel=3x3", "b in=1x2x10x10 kernel=3x3", "c in=1x2x11x11 kernel=3x3"]


class Place:
    """A directory with a cache of its own."""

    def __init__(self, directory):
        self.directory = directory
        self.environment = {**os.environ, "CONV_FFT_CACHE_DIR": self.path("cache"), "CONV_FFT_TUNE_PATH": "",
                            "CONV_FFT_RECORD": "", "OMP_WAIT_POLICY": "passive"}

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text)
        return self.path(name)

    def run(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], env=self.environment, capture_output=True, text=True, timeout=100)

    def records(self):
        """The records in the cache directory."""
        files = [name for name in os.listdir(self.path("cache")) if name.endswith(".jsonl")]
        lines = [line for name in files for line in open(os.path.join(self.path("cache"), name), encoding="ascii")]
        return [json.loads(line) for line in lines if "problem" in line]


def expect(place, arguments, status, output="", error=""):
    """The faults of a run: its status, and patterns that its output and its messages must have."""
    ended = place.run(*arguments)
    said = f"conv-fft {' '.join(arguments)}: status {ended.returncode}, {ended.stdout!r}, {ended.stderr!r}"
    if ended.returncode != status or not re.search(output, ended.stdout, re.M) or not re.search(error, ended.stderr, re.M):
        yield said


def tune_faults(place):
    net = place.write("net.txt", "\n".join(["# a network", LAYERS[0], "worse in=1x2", LAYERS[1], "oops", ""]))
    yield from expect(place, ["tune", "--device=cpu", net], 1, r"^a +forward(.|\n)*^a +backward(.|\n)*^b +forward",
                      r"net.txt:3: in is \"1x2\"; it must be(.|\n)*net.txt:5: ")
    if len(place.records()) != 4:
        yield f"tune: {len(place.records())} records instead of 4"
    yield from expect(place, ["tune", "--device=cpu", place.path("missing")], 2, "^$", "cannot read")
    yield from expect(place, ["tune", "--device=cpu", place.directory], 2, "^$", "cannot read")
    # One that has records already is not measured again; with too little time the cost model decides, and says so.
    before = place.records()
    good = place.write("good.txt", LAYERS[0])
    yield from expect(place, ["tune", "--device=cpu", good], 0, "^a +forward +[0-9.]+ ")
    if place.records() != before:
        yield "tune measures what has a record"
    large = place.write("large.txt", "large in=8x32x64x64 out=32 kernel=5x5")
    yield from expect(place, ["tune", "--device=cpu", "--milliseconds=1", large], 0, "the cost model's", "too short to time")
    yield from expect(place, ["bench", "--device=cpu", "--measure=2", good], 0, "^a +backward +[0-9.]+ ")
    yield from expect(place, ["tune", "--device=cpu", "--quality", "--count=1", good], 0, "^# measure took ")


def interrupt_faults(place):
    count = 200
    net = place.write("many.txt", "".join(f"l{i} in=1x2x{9 + i}x9 kernel=3x3\n" for i in range(count)))
    command = [PROGRAM, "tune", "--device=cpu", "--count=6", net]
    first = subprocess.Popen([PROGRAM, "tune", "--device=cpu", net], env=place.environment, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    while len(re.findall("^l", first.stdout.readline())) == 0:
        time.sleep(0.01)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=100)
    done = len(place.records()) // 2
    if first.returncode != 1 or "goes on from there" not in said or not 0 < done < count:
        yield f"interrupted: status {first.returncode}, {done} layers, {said!r}"
    again = subprocess.run(command, env=place.environment, capture_output=True, text=True, timeout=100)
    if again.returncode != 0 or len(place.records()) != 2 * max(done, 6):
        yield f"continued: status {again.returncode}, {len(place.records())} records after {2 * done}"


def cache_faults(place):
    net, other = place.write("net.txt", "\n".join(LAYERS)), place.write("one.txt", LAYERS[1])
    all_file, some = place.path("all.jsonl"), place.path("some.jsonl")
    yield from expect(place, ["cache", "list"], 1, "^$", "does not exist yet")
    yield from expect(place, ["tune", "--device=cpu", net], 0)
    yield from expect(place, ["cache", "list"], 0, r"tuning-.*\.jsonl: 6 records")
    yield from expect(place, ["cache", "show", "--device=cpu"], 0, "^6 records of this device$")
    yield from expect(place, ["cache", "export", "--device=cpu", all_file], 0)
    yield from expect(place, ["cache", "export", "--device=cpu", some, other], 0)
    yield from expect(place, ["cache", "export", "--device=cpu", net], 1, "^$", "not a file of tuning records")
    yield from expect(place, ["cache", "verify"], 0, "^0 lines cannot be verified$")
    yield from expect(place, ["cache", "clear"], 0, "^1 files removed$")
    yield from expect(place, ["cache", "show", "--device=cpu"], 0, "^0 records of this device$")
    yield from expect(place, ["cache", "merge", "--device=cpu", some], 0)
    yield from expect(place, ["cache", "show", "--device=cpu"], 0, "^2 records of this device$")
    yield from expect(place, ["cache", "merge", "--device=cpu", "--policy=mine", all_file], 0)
    yield from expect(place, ["cache", "show", "--device=cpu"], 0, "^6 records of this device$")
    yield from expect(place, ["cache", "merge", "--device=cpu", net], 1, "^$", "no tuning record of this device")
    name = [name for name in os.listdir(place.path("cache")) if name.endswith(".jsonl")][0]
    with open(os.path.join(place.path("cache"), name), "a", encoding="ascii") as file:
        file.write("garbage\n")
        content = '"problem":"of a later kind"}'
        file.write(f'{{"crc":"{zlib.crc32(content.encode()):08x}",{content}\n')
    yield from expect(place, ["cache", "verify"], 1, r"jsonl:8: its CRC is wrong(.|\n)*jsonl:9: it is whole(.|\n)*^2 lines cannot")
    yield from expect(place, ["cache", "show", "--device=cpu"], 0, "^6 records of this device$")
    for wrong in [[], ["unheard-of"], ["list", "more"], ["merge"], ["export"]]:
        yield from expect(place, ["cache", *wrong], 2, "^$", "^conv-fft: ")


def path_faults(place):
    """Records of a read-only folder are found, and what is missed is noted as lines that tune can read."""
    one, two = place.write("one.txt", LAYERS[0]), place.write("two.txt", "\n".join(LAYERS[:2]))
    yield from expect(place, ["tune", "--device=cpu", one], 0)
    shipped = place.path("shipped")
    os.mkdir(shipped)
    yield from expect(place, ["cache", "export", "--device=cpu", os.path.join(shipped, "one.jsonl")], 0)
    yield from expect(place, ["cache", "clear"], 0)
    place.environment |= {"CONV_FFT_TUNE_PATH": shipped, "CONV_FFT_RECORD": place.path("missed.txt")}
    yield from expect(place, ["bench", "--device=cpu", "--measure=1", two], 0)
    with open(place.path("missed.txt"), encoding="ascii") as file:
        missed = file.read().split("\n")
    if len(missed) != 2 or not missed[0].startswith("in=1x2x10x10 "):
        yield f"missed problems: {missed}"
    place.environment |= {"CONV_FFT_TUNE_PATH": "", "CONV_FFT_RECORD": ""}
    yield from expect(place, ["tune", "--device=cpu", place.path("missed.txt")], 0, "^line-1 +forward")


def network_faults(place):
    for name in sorted(os.listdir(os.path.join(ROOT, "networks"))):
        with open(os.path.join(ROOT, "networks", name), encoding="ascii") as file:
            lines = [line.split("#")[0].strip() for line in file]
        names = [line.split()[0] for line in lines if line]
        repeated = sorted({n for n in names if names.count(n) > 1})
        if not names or repeated:
            yield f"networks/{name}: {len(names)} layers, these names twice: {repeated}"
        tuned = place.run("explain", "--device=cpu", "--file=" + os.path.join(ROOT, "networks", name))
        if tuned.returncode != 0:
            yield f"networks/{name}: {tuned.stderr}"


def main():
    found = []
    for check in [tune_faults, interrupt_faults, cache_faults, path_faults, network_faults]:
        with tempfile.TemporaryDirectory() as directory:
            found += check(Place(directory))
    print("\n".join(found) or "tuning program: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
