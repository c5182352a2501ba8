#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tuning_program.py PROGRAM ROOT

conv-fft tune, explain, cache and bench on the CPU: bad lines do not stop good ones, an interrupted run is continued,
two runs at once lose nothing, records survive export, clear and merge, and damage is found. Every line of networks/ is
a problem, and every file of tuning/ has whole records of its network.
"""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

PROGRAM, ROOT, FAKES = sys.argv[1:4]
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
        with open(self.path(name), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode("ascii"))
        return self.path(name)

    def start(self, *arguments):
        return subprocess.Popen([PROGRAM, *arguments], env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE,
                                text=True)

    def run(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], env=self.environment, capture_output=True, text=True, timeout=100)

    def records(self):
        """The records in the cache directory."""
        if not os.path.isdir(self.path("cache")):
            return []
        files = [name for name in os.listdir(self.path("cache")) if name.endswith(".jsonl")]
        lines = [line for name in files for line in open(os.path.join(self.path("cache"), name), encoding="ascii")]
        return [json.loads(line) for line in lines if "problem" in line]


def expect(place, arguments, status, output="", error=""):
    """The faults of a run: its status, and patterns that its output and its messages must have."""
    ended = place.run(*arguments)
    said = f"conv-fft {' '.join(arguments)}: status {ended.returncode}, {ended.stdout!r}, {ended.stderr!r}"
    texts_fit = re.search(output, ended.stdout, re.M) and re.search(error, ended.stderr, re.M)
    if ended.returncode != status or not texts_fit:
        yield said


def tune_faults(place):
    net = place.write("net.txt", "\n".join(["# a network", LAYERS[0], "worse in=1x2", LAYERS[1], "oops", ""]))
    yield from expect(place, ["tune", "--device=cpu", net], 1, r"^a +forward(.|\n)*^a +both gradients(.|\n)*^b +forw",
                      r"net.txt:3: in is \"1x2\"; it must be(.|\n)*net.txt:5: ")
    if len(place.records()) != 4:
        yield f"tune: {len(place.records())} records instead of 4"
    yield from expect(place, ["tune", "--device=cpu", "in=1x2x9x9", "kernel=3x3"], 0, "^layer +forward", "^$")
    yield from expect(place, ["tune", "--device=cpu", "in=1x2x9x9", "kernel=10x10"], 1, "^$", "kernel")
    yield from expect(place, ["tune", "--device=cpu", place.path("missing")], 1, "^$", "cannot read")
    yield from expect(place, ["tune", "--device=cpu", place.directory], 1, "^$", "cannot read")
    yield from expect(place, ["tune", "--device=cpu", place.path("missing"), net], 1, "^b +forward", "cannot read")
    yield from expect(place, ["tune", "--device=cpu", place.write("none.txt", "# nothing\n")], 1, "^$",
                      "there is no problem line")
    # A layer with records is not measured again. With too little time the cost model decides, with a message.
    before = place.records()
    good = place.write("good.txt", LAYERS[0])
    yield from expect(place, ["tune", "--device=cpu", good], 0, "^a +forward +[0-9.]+ ")
    if place.records() != before:
        yield "tune measures what has a record"
    # The device is printed. Lines of a record log may repeat, and layers of a network may be equal.
    yield from expect(place, ["tune", "--device=cpu", good], 0, r"\A# CPU")
    line = LAYERS[0].removeprefix("a ")
    log = place.write("log.txt", "\n".join([line] * 3 + ["x " + line, "x " + line, "y " + line, line]))
    rows = re.findall("^(\\S+) +forward", place.run("tune", "--device=cpu", log).stdout, re.M)
    if rows != ["line-1", "x", "y"]:
        yield f"rows of repeated lines: {rows}"
    # Without the requested device nothing runs. Bad lines are reported nevertheless.
    yield from expect(place, ["tune", "--device=1023", net], 1, "^$",
                      "net.txt:3: (.|\\n)*net.txt:5: (.|\\n)*no context: options.device is 1023")
    large = place.write("large.txt", "large in=8x32x64x64 out=32 kernel=5x5")
    yield from expect(place, ["tune", "--device=cpu", "--milliseconds=1", large], 1,
                      "^large +forward +not tuned +- +- (.|\\n)*"
                      "^large +both gradients +not tuned ",
                      "tuning forward of in=8x32x64x64 .*too short to time.*; the cost model decides$(.|\\n)*"
                      "^conv-fft: 2 not measured: large forward, large both gradients; ")
    wide = place.write("wide.txt", "".join(f"{n * 'w'} in=8x32x64x64 out={n} kernel=5x5\n" for n in range(20, 32)))
    yield from expect(place, ["tune", "--device=cpu", "--milliseconds=1", wide], 1, "^w+\n +forward +not tuned ",
                      "^conv-fft: 24 not measured: w+ forward, .*, [.]{3}; ")
    empty = place.write("empty.txt", "empty in=0x2x9x9 kernel=3x3")
    yield from expect(place, ["tune", "--device=cpu", empty], 0, "^empty +forward")
    yield from expect(place, ["bench", "--device=cpu", "--measure=2", good], 0, "^a +both gradients +[0-9.]+ ")


def limit_faults(place):
    """Programs with a workspace limit use records without a limit if these fit, and make new records if not."""
    net = place.write("net.txt", "a in=4x4x40x41 kernel=5x5")
    yield from expect(place, ["tune", "--device=cpu", net], 0)
    least = min(record["workspace"] for record in place.records())
    yield from expect(place, ["tune", "--device=cpu", "--workspace-limit=100000000", net], 0, "^a +forward +[0-9.]+ ")
    if len(place.records()) != 2:
        yield f"a limit that changes nothing: {place.records()}"
    limit = least // 2
    tuned = place.run("tune", "--device=cpu", f"--workspace-limit={limit}", net)
    rows = re.findall("^a +(forward|both gradients) +[0-9.]+ +- +- +([0-9.]+)(K|) ", tuned.stdout, re.M)
    made = [record for record in place.records() if record["workspace_class"] == 1 << limit.bit_length() - 1]
    large = [size for _, size, unit in rows if float(size) * (1024 if unit else 1) > limit]
    if tuned.returncode != 0 or len(rows) != 2 or len(made) != 2 or large:
        yield f"a limit of {limit}: status {tuned.returncode}, {tuned.stdout!r}, {tuned.stderr!r}, {made}"
    # Without a limit, the earlier records are shown.
    shown = place.run("tune", "--device=cpu", "--json", net).stdout
    if not all(f": {record['workspace']}," in shown for record in place.records() if not record["workspace_class"]):
        yield f"after a limit: {shown!r}"
    yield from expect(place, ["tune", "--device=cpu", "--workspace-limit=1", net], 1, "", "net.txt:1: .*needs at least")


def on_terminal(place, *arguments):
    """What the program writes to standard error, if that is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PROGRAM, *arguments], env=place.environment, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 4096):
            said += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return process.wait(timeout=100), said.decode("ascii")


def progress_faults(place):
    """The progress bar tells the time left: an upper limit before the first measurement, then an estimate from the
    measurements. Layers that have records take none."""
    net = place.write("net.txt", "\n".join([*LAYERS[:2], "large in=64x64x64x64 out=64 kernel=5x5"]))
    status, said = on_terminal(place, "tune", "--device=cpu", "--milliseconds=2000", net)
    bars = re.findall(r"\r\x1b\[K\[(#*)\.*\] (\d)/3 (\w+), (\d+) s(?:, (at most )?(\d+) min (\d\d) s left)?\r", said)
    firsts = [(bar[0], bar[2]) for i, bar in enumerate(bars) if i == 0 or bar[2] != bars[i - 1][2]]
    # Runs of the large layer are so long that other work on this host may disturb them.
    ended_well = status == 0 or "disturbed the measurements" in said
    if not ended_well or firsts != [("", "a"), (10 * "#", "b"), (20 * "#", "large")] or "\x1b[K" not in said[-400:]:
        yield f"progress: status {status}, {firsts}, {said!r}"
    elif bars[0][4:] != ("at most ", "0", "06") or any(bar[4] for bar in bars if bar[2] != "a"):
        yield f"progress: the estimates are {bars}"
    elif sum(bar[2] == "large" for bar in bars) < 3 or bars[-1][3] == "0":
        yield f"progress: nothing moves while a layer is tuned: {bars}"
    known = place.write("known.txt", "\n".join(LAYERS[:2]))
    status, said = on_terminal(place, "tune", "--device=cpu", known)
    if status != 0 or "[" + 30 * "." + "] 0/2 a, 0 s, 0 min 00 s left" not in said or "at most" in said:
        yield f"progress of what is known: status {status}, {said!r}"
    # Without a limit there is no estimate before a layer has been measured.
    status, said = on_terminal(place, "tune", "--device=cpu", "--again", "--mode=exhaustive",
                               place.write("small.txt", LAYERS[0]))
    if status != 0 or "0/1 a, 0 s\r" not in said or "left" in said:
        yield f"progress without a bound: status {status}, {said!r}"


def interrupt_faults(place):
    """Interrupted after some layers, whose rows have been printed. The current layer may have one record already."""
    count = 200
    net = place.write("many.txt", "".join(f"l{i} in=1x2x{9 + i}x9 kernel=3x3\n" for i in range(count)))
    first = place.start("tune", "--device=cpu", net)
    for line in first.stdout:
        if line.startswith("l0"):
            break
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=100)
    records = len(place.records())
    counted = re.search(f"interrupted after (\\d+) of {count} layers; the same command goes on from there", said)
    if first.returncode != 130 or not counted or not 2 <= records < 2 * count \
            or int(counted[1]) not in (records // 2, records // 2 - 1):
        yield f"interrupted: status {first.returncode}, {records} records, {said!r}"
    wanted = records // 2 + 2
    again = place.run("tune", "--device=cpu", f"--count={wanted}", net)
    if again.returncode != 0 or len(place.records()) != 2 * wanted:
        yield f"continued: status {again.returncode}, {len(place.records())} records after {records}"


def start_long(place):
    """A search that would take minutes, once it has begun."""
    net = place.write("large.txt", "l in=64x64x64x64 out=64 kernel=5x5")
    running = place.start("tune", "--device=cpu", "--mode=exhaustive", net)
    running.stdout.readline()
    running.stdout.readline()  # the head of the table: it tunes from now on
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    return running


def stop_faults(place):
    """A signal ends a search between two steps, and a second one at once."""
    running = start_long(place)
    _, said = running.communicate(timeout=100)
    stopped = "stopping" in said and "interrupted after 0 of 1 layers" in said
    if running.returncode != 130 or not stopped or place.records():
        yield f"a signal: status {running.returncode}, {said!r}, {len(place.records())} records"
    running = start_long(place)
    if "stopping" not in running.stderr.readline() + running.stderr.readline():
        yield "the signal is not answered"
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=10)
    if running.returncode not in (-signal.SIGINT, 130):
        yield f"the second signal: status {running.returncode}"


def together_faults(place):
    """Two runs at the same time: each row is in both tables, each problem in the directory."""
    net = place.write("many.txt", "".join(f"l{i} in=1x2x{9 + i}x9 kernel=3x3\n" for i in range(8)))
    both = [place.start("tune", "--device=cpu", net) for _ in range(2)]
    for one in both:
        table, said = one.communicate(timeout=100)
        if one.returncode != 0 or len(re.findall("^l", table, re.M)) != 1 + 16 or said:
            yield f"two at once: status {one.returncode}, {table!r}, {said!r}"
    if len({(r["problem"], r["passes"]) for r in place.records()}) != 16:
        yield f"two at once: {len(place.records())} records"
    yield from expect(place, ["cache", "verify"], 0)


def explain_faults(place):
    lines = [LAYERS[0], "bad in=1x2", LAYERS[1], "worse in=1x1"]
    yield from expect(place, ["explain", "--device=cpu", "--file", place.write("net.txt", "\n".join(lines))], 1,
                      r"^a in=(.|\n)*^b in=", r"net.txt:2: (.|\n)*net.txt:4: ")
    for byte in [b"\0", b"\x1b[2J", b"\xef\xbb\xbf", b"\x7f"]:
        text = LAYERS[0].encode() + b"\n" + byte + b"x in=1x2x9x9\n" + LAYERS[1].encode()
        shown = f"net.txt:2: there is a byte 0x{byte[0]:02x}"
        yield from expect(place, ["explain", "--device=cpu", "--file", place.write("net.txt", text)], 1,
                          r"^a in=(.|\n)*^b in=", shown)
        yield from expect(place, ["tune", "--device=cpu", place.path("net.txt")], 1, "^b +forward", shown)
    text = LAYERS[0].encode() + b" # gr\xc3\xb6\xc3\x9fer\nb in=1x2x9x9 # \0 out=3\n"
    yield from expect(place, ["bench", "--device=cpu", "--measure=1", place.write("net.txt", text)], 1, "^a ",
                      "\\Aconv-fft: [^\n]*net.txt:2: there is a byte 0x00[^\n]*\n\\Z")
    # Without options: the reason for the choice, and the other candidates.
    words = LAYERS[2].split()
    yield from expect(place, ["explain", "--device=cpu", *words], 0,
                      "^  forward: chosen by the cost model(.|\n)*^  both gradients.*cost model")
    yield from expect(place, ["tune", "--device=cpu", place.write("c.txt", LAYERS[2])], 0)
    yield from expect(place, ["explain", "--device=cpu", *words], 0,
                      "^  forward: chosen by a tuning record, [0-9.]+ ms, the best of [0-9]+ candidates timed in "
                      "mode\\s+measure\n  both gradients.*record")
    yield from expect(place, ["explain", "--device=cpu", *words], 0,
                      r"candidates, forward\n(.*\n)+ +the cost model's first")
    yield from expect(place, ["explain", "--device=cpu", "--milliseconds=9", *words], 2, "^$", "only with --mode")


def hint_faults(place):
    """A record of another number of threads is used, and does not count as measured."""
    words, net = LAYERS[2].split()[1:], place.write("c.txt", LAYERS[2])
    yield from expect(place, ["tune", "--device=cpu", "--threads=3", net], 0)
    record, = (r for r in place.records() if r["passes"] == 1)
    record["strategy"] = ["staged basis=12x12 tiles=1x1 dilation=step overlap=save product=loop spectrum=fp32 chunk=1 "
                          "groups=1 keep=none"]
    del record["crc"]
    record["written"] += 1
    content = json.dumps(record, separators=(",", ":"))[1:]
    name, = (name for name in os.listdir(place.path("cache")) if name.endswith(".jsonl"))
    with open(os.path.join(place.path("cache"), name), "a", encoding="ascii") as file:
        file.write(f'{{"crc":"{zlib.crc32(content.encode()):08x}",{content}\n')
    yield from expect(place, ["explain", "--device=cpu", "--threads=3", *words], 0, "^  forward: chosen by a tuning")
    yield from expect(place, ["explain", "--device=cpu", "--threads=2", *words], 0,
                      "^  forward: chosen by a record of another number of threads$(.|\n)*staged basis=12x12")
    yield from expect(place, ["cache", "show", "--device=cpu", "--threads=2"], 0, "^0 records of this device$")



def cache_faults(place):
    net, other = place.write("net.txt", "\n".join(LAYERS)), place.write("one.txt", LAYERS[1])
    all_file, some = place.path("all.jsonl"), place.path("some.jsonl")
    yield from expect(place, ["cache", "list"], 0, "^.*/cache\n  0 compiled kernels, 0 bytes\n$")
    yield from expect(place, ["cache", "clear"], 0, "^0 files removed$")
    yield from expect(place, ["tune", "--device=cpu", net], 0)
    yield from expect(place, ["cache", "list"], 0, r"tuning-.*\.jsonl: 6 records")
    yield from expect(place, ["cache", "show", "--device=cpu"], 0, "^6 records of this device$")
    yield from expect(place, ["cache", "export", "--device=cpu", all_file], 0)
    yield from expect(place, ["cache", "export", "--device=cpu", some, other], 0)
    yield from expect(place, ["cache", "export", "--device=cpu", net], 1, "^$", "not a file of tuning records")
    yield from expect(place, ["cache", "verify"], 0, "^0 lines or kernels cannot be verified$")
    yield from expect(place, ["cache", "clear"], 0, "^1 files removed$")
    yield from expect(place, ["cache", "show", "--device=cpu"], 0, "^0 records of this device$")
    os.chmod(place.path("cache"), 0o777)  # others can write it, so it is not used
    yield from expect(place, ["cache", "merge", "--device=cpu", some], 1, "^$", "others can write it")
    os.chmod(place.path("cache"), 0o700)
    yield from expect(place, ["cache", "show", "--device=cpu"], 0, "^0 records of this device$")
    absent = place.write("absent.txt", "z in=1x2x12x12 kernel=3x3")
    yield from expect(place, ["cache", "export", "--device=cpu", place.path("none.jsonl"), absent], 0, "^$",
                      "1 of 1 problems have no")
    yield from expect(place, ["cache", "merge", "--device=cpu", place.path("none.jsonl")], 1, "^$",
                      "no tuning record of this device")
    yield from expect(place, ["cache", "merge", "--device=cpu", some], 0)
    yield from expect(place, ["cache", "show", "--device=cpu"], 0,
                      r"\A# CPU, .+, \d+ threads?.*, (no )?OpenBLAS(.|\n)*^2 records of this device$")
    yield from expect(place, ["cache", "merge", "--device=cpu", "--policy=mine", all_file], 0)
    yield from expect(place, ["cache", "show", "--device=cpu"], 0, "^6 records of this device$")
    yield from expect(place, ["cache", "merge", "--device=cpu", net], 1, "^$", "no tuning record of this device")
    name = [name for name in os.listdir(place.path("cache")) if name.endswith(".jsonl")][0]
    with open(os.path.join(place.path("cache"), name), "a", encoding="ascii") as file:
        file.write("garbage\n")
        content = '"problem":"of a later kind"}'
        file.write(f'{{"crc":"{zlib.crc32(content.encode()):08x}",{content}\n')
    yield from expect(place, ["cache", "verify"], 1,
                      r"jsonl:8: its CRC is wrong(.|\n)*jsonl:9: its CRC is right(.|\n)*^2 lines or kernels cannot")
    yield from expect(place, ["cache", "show", "--device=cpu"], 0, "^6 records of this device$")
    with open(os.path.join(place.path("cache"), "0123456789abcdef.cubin"), "w", encoding="ascii") as file:
        file.write("garbage\n")
    yield from expect(place, ["cache", "verify"], 1,
                      "0123456789abcdef.cubin: a kernel that is damaged(.|\n)*^3 lines or kernels cannot")
    yield from expect(place, ["cache", "repair", "--device=cpu"], 0, "^3 lines or kernels removed$", "^$")
    yield from expect(place, ["cache", "verify"], 0, "^0 lines or kernels cannot be verified$")
    yield from expect(place, ["cache", "show", "--device=cpu"], 0, "^6 records of this device$")
    yield from header_faults(place, os.path.join(place.path("cache"), name), net)
    for wrong in [[], ["unheard-of"], ["list", "more"], ["merge"], ["export"]]:
        yield from expect(place, ["cache", *wrong], 2, "^$", "^conv-fft: ")


def header_faults(place, path, net):
    """A damaged first line costs no record. It is named, repaired on its own device only, and keeps clear away."""
    with open(path, "rb") as file:
        good = file.read()
    # Records that were measured twice are listed once.
    yield from expect(place, ["tune", "--device=cpu", "--again", net], 0)
    yield from expect(place, ["cache", "list"], 0,
                      r"jsonl: 6 records, .+ \(cpu, threads \d+, (no )?blas\), interface 1$")
    for first in (good.replace(b"kind", b"kinb", 1), b"x" + good):
        with open(path, "wb") as file:
            file.write(first)
        yield from expect(place, ["cache", "show", "--device=cpu"], 0, "^6 records of this device$")
        yield from expect(place, ["cache", "verify"], 1, "jsonl:1: its CRC(.|\n)*^1 lines or kernels cannot")
        yield from expect(place, ["cache", "clear"], 0, "^0 files removed$", "jsonl stays: the line that names")
        yield from expect(place, ["cache", "repair", "--device=cpu", "--threads=77"], 0, "^0 lines or kernels removed$",
                          "jsonl stays as it is: the line that names its device is missing or damaged, and it is not")
        yield from expect(place, ["cache", "repair", "--device=cpu"], 0, "^1 lines or kernels removed$", "^$")
        yield from expect(place, ["cache", "verify"], 0, "^0 lines or kernels cannot be verified$")
        with open(path, "rb") as file:
            if file.read() != good:
                yield "the repaired file differs"
    yield from expect(place, ["cache", "clear"], 0, "^1 files removed$", "^$")


def path_faults(place):
    """Records of a read-only folder are found. Problems without a record are written as lines that tune can read."""
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
        explained = place.run("explain", "--device=cpu", "--file=" + os.path.join(ROOT, "networks", name))
        if explained.returncode != 0:
            yield f"networks/{name}: {explained.stderr}"
        yield from shipped_faults(place, name.removesuffix(".txt"),
                                  set(re.findall("^\\S+ (in=.*)$", explained.stdout, re.M)))


def shipped_faults(place, network, problems):
    """The records of a network in tuning/: no line is damaged, each is of a problem of the network, and most problems
    have records of forward and of both gradients. (A search with too little time leaves none.)"""
    for device in sorted(os.listdir(os.path.join(ROOT, "tuning"))):
        path = os.path.join(ROOT, "tuning", device, network + ".jsonl")
        if not os.path.exists(path):
            continue
        os.makedirs(place.path("shipped"), mode=0o700, exist_ok=True)
        shutil.copy(path, place.path(f"shipped/tuning-{network}.jsonl"))
        verified = subprocess.run([PROGRAM, "cache", "verify"],
                                  env={**place.environment, "CONV_FFT_CACHE_DIR": place.path("shipped")},
                                  capture_output=True, text=True, timeout=100)
        if verified.returncode != 0:
            yield f"{path}: {verified.stdout}"
        with open(path, encoding="ascii") as file:
            records = [json.loads(line) for line in file]
        known = {(record["problem"], record["passes"]) for record in records if "problem" in record}
        strays = {problem for problem, _ in known} - problems
        missing = [(problem, passes) for problem in problems for passes in (1, 6) if (problem, passes) not in known]
        if strays or len(missing) >= len(problems):
            yield f"{path}: no record of {missing}, and some of {strays}"


def kernel_faults(place):
    """Kernels beside exported records are used from CONV_FFT_TUNE_PATH, if others cannot write them."""
    net = place.write("net.txt", "\n".join(LAYERS[:2]))
    yield from expect(place, ["cache", "export", "--kernels", "--device=cpu", place.path("none.jsonl"), net], 2, "^$",
                      "--kernels needs a GPU")
    place.environment["CONV_FFT_LIBRARY_PATH"] = FAKES  # a substitute GPU
    os.mkdir(place.path("shipped"), 0o700)
    records = place.path("shipped/records.jsonl")
    yield from expect(place, ["cache", "export", "--kernels", "--device=0", records, net], 0,
                      "^2 of 2 plans have their kernels in .*shipped$", "have no tuning record")

    def kernels(folder):
        return sum(name.endswith(".cubin") for name in os.listdir(place.path(folder)))

    words = ["explain", "--device=0", *LAYERS[0].split()]
    if kernels("cache") or not kernels("shipped"):
        yield f"exported kernels: {kernels('cache')} in the cache, {kernels('shipped')} beside the records"
    for mode, expected in ((0o700, False), (0o722, True)):
        os.chmod(place.path("shipped"), mode)
        place.environment["CONV_FFT_TUNE_PATH"] = place.path("shipped")
        yield from expect(place, words, 0, "forward: chosen by the cost model")
        if (kernels("cache") > 0) != expected:
            yield f"a folder of mode {mode:o}: {kernels('cache')} kernels were compiled"


def main():
    found = []
    for check in [tune_faults, limit_faults, progress_faults, interrupt_faults, stop_faults, together_faults,
                  explain_faults, hint_faults, cache_faults, path_faults, kernel_faults, network_faults]:
        with tempfile.TemporaryDirectory() as directory:
            found += check(Place(directory))
    print("\n".join(found) or "tuning program: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
