#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""program_options.py PROGRAM: conv-fft knows every option that the --help of a command names, and refuses one that it
does not, that its command has no use for, and a file that it cannot read or understand; `explain fft` needs no GPU, and
says what is wrong with its words. Misspelt words get a suggestion."""
import math
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
FACTS = os.path.join(os.path.dirname(__file__), "..", "data", "gpus", "h200.txt")
COMMANDS = ["devices", "explain", "explain fft", "check", "tune", "bench", "cache list", "cache show", "cache merge",
            "cache export", "cache clear", "cache verify", "cache repair", "completion", "man", "help"]
UNKNOWN = "no-such-option"


def run(*arguments, stdout=subprocess.PIPE):
    return subprocess.run([PROGRAM, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)


def options_of(text):
    """The options that a --help names, each with the placeholder of its value, or ""."""
    return dict(re.findall(r"^  (?:-h, )?(--[a-z][a-z-]*)(?: ([A-Za-z|]+))?", text, re.M))


def faults():
    """Every command has its own --help, takes the options that this names, and refuses others with a message that names
    the command."""
    shown = run("--help").stdout
    everything = {}
    for command in COMMANDS:
        words = command.split()
        helps = [run(*words, "--help"), run("help", *words), run("-h", *words), run(*words, "a", "--count=3", "-h")]
        begin = "usage: conv-fft COMMAND" if command == "help" else f"usage: conv-fft {command}"
        if command == "help":
            del helps[-1]  # it would be the help of the command "a"
        if any((h.returncode, h.stdout, h.stderr) != (0, helps[0].stdout, "") for h in helps) or \
                not helps[0].stdout.startswith(begin):
            yield f"{command}: the ways to its help differ: {helps}"
        if f"\n  {command}" not in shown:
            yield f"--help does not name {command}"
        everything |= options_of(helps[0].stdout)
        ended = run(*words, "--" + UNKNOWN)
        said = f"conv-fft: unknown option --{UNKNOWN}; see conv-fft {command} --help\n"
        if ended.returncode != 2 or ended.stderr != said:
            yield f"{command}: --{UNKNOWN}: {ended}"
    if len(everything) < 15:
        yield f"all helps together name {everything}"
    for command in COMMANDS:
        own = options_of(run(*command.split(), "--help").stdout)
        for name, value in everything.items():
            ended = run(*command.split(), name + ("=1" if value else ""), "--threads=0")
            # The wrong value of a later option is found first, unless this one's is wrong.
            if "--threads must" not in ended.stderr and name not in ("--mode", "--policy", "--help", "--version"):
                yield f"{command} {name}: {ended}"
            refused = f"conv-fft: {command} takes no {name}; see conv-fft {command} --help\n"
            wrong = {"--mode": "=measure", "--policy": "=mine"}.get(name, "=1" if value else "")
            if name not in own and name not in ("--help", "--version") and \
                    run(*command.split(), name + wrong).stderr != refused:
                yield f"{command} does not refuse {name}: {run(*command.split(), name + wrong)}"


def suggestion_faults():
    """Misspelt words, and the message."""
    cases = [
        (["tun"], "unknown command tun; did you mean tune? See conv-fft --help"),
        (["elephant"], "unknown command elephant; there are devices, explain, "),
        (["help", "explian"], "unknown command explian; did you mean explain? See"),
        (["cache", "lits"], "unknown command cache lits; did you mean cache list? See conv-fft cache --help"),
        (["cache"], "cache needs one of list, show, merge, export, clear, verify, repair; see conv-fft cache --help"),
        ([], "a command is needed: one of devices, explain, "),
        (["tune", "--mesure"], "unknown option --mesure; did you mean --measure? See conv-fft tune --help"),
        (["tune", "--devcie=cpu"], "unknown option --devcie; did you mean --device? See conv-fft tune --help"),
        (["tune", "-d"], "unknown option -d; see conv-fft tune --help"),
        (["tune", "--again=1"], "--again takes no value; see"),
        (["tune", "--count"], "--count needs a value; see"),
        (["explain", "fft", "8", "chanels=1"], "chanels is not a field of an fft; did you mean channels? See"),
    ]
    for words, wanted in cases:
        ended = run(*words)
        if ended.returncode != 2 or ended.stdout or not ended.stderr.startswith("conv-fft: " + wanted):
            yield f"{words}: {ended}"
    ended = run("explain", "in=1x1x9", "kernal=3")
    if ended.returncode != 1 or 'unknown field "kernal"; did you mean kernel?' not in ended.stderr:
        yield f"kernal: {ended}"


def size_faults():
    """Byte counts: what the program takes them for, as the message about a limit that is too small shows, or None."""
    sizes = {"1": 1, "2K": 2048, "1m": None, "3G": None, "1T": None, "0": 0, "K": 0, "1.5G": 0, "1KB": 0, "-1": 0,
             "9999999999999": None, "8388608T": 0, "8388607T": None, "": 0, "1 K": 0}
    for text, size in sizes.items():
        ended = run("explain", "--device=cpu", "--workspace-limit=" + text, "in=8x32x128x128", "kernel=9x9")
        wrong = "--workspace-limit must be a number of bytes"
        said = wrong if size == 0 else f"options.workspace_limit is {size} bytes"
        if ended.returncode != 0 if size is None else said not in ended.stderr:
            yield f"--workspace-limit={text}: {ended.returncode}, {ended.stderr!r}"


def log_faults():
    """A value of CONV_FFT_LOG that is none is named, once. The numbers and words are taken."""
    for value in ("", "1", "2", "3", "silent", "warning", "info", "4", "calls", "verbose", "5", "INFO", "12"):
        ended = subprocess.run([PROGRAM, "cache", "show", "--device=cpu"], capture_output=True, text=True, timeout=60,
                               env={**os.environ, "CONV_FFT_LOG": value})
        said = f'conv_fft: CONV_FFT_LOG is "{value}"; it must be 1 or silent, 2 or warning, 3 or info, 4 or calls;'
        wanted = value in ("verbose", "5", "INFO", "12")
        if ended.stderr.count("CONV_FFT_LOG") != wanted or (said in ended.stderr) != wanted:
            yield f"CONV_FFT_LOG={value}: {ended.stderr!r}"


def unused_option_faults():
    unused = [*(("devices", option) for option in ["--file=/dev/null", "--measure=1", "--workspace-limit=1"]),
              *(("explain", "fft", "8", option) for option in ["--file=/dev/null", "--measure=1", "--threads=1"]),
              *(("explain", "fft", "8", option) for option in ["--candidates=1", "--mode=measure", "--milliseconds=1"]),
              ("tune", "/dev/null", "--measure=1"), ("tune", "/dev/null", "--policy=mine"),
              ("bench", "/dev/null", "--again"),
              ("cache", "list", "--count=1"), ("cache", "list", "--device=7"),
              *(("cache", *action, "--policy=mine")
                for action in (["list"], ["show"], ["export", "/dev/null"], ["clear"], ["verify"])),
              ("devices", "--facts=" + FACTS), ("explain", "in=1x1x9", "--facts=" + FACTS),
              ("explain", "fft", "8", "--device=cpu", "--facts=" + FACTS)]
    for arguments in unused:
        ended = run(*arguments)
        if ended.returncode != 2 or ended.stdout:
            yield f"{arguments} ends with status {ended.returncode}"


def file_faults():
    """The file, the status, the lines on standard output that begin a problem, and all of standard error."""
    problem = "in=1x1x9 out=1"
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "net.txt")
        cases = [
            (f"# a network\nL1 {problem}\n\nL2 {problem} # last", 0, ["L1", "L2"], ""),
            (f"# {' ' * 1100}{problem}\nL1 {problem}{' ' * 10} # {'x' * 5000}\n", 0, ["L1"], ""),
            (f"L1 {problem}\n\nL2 {problem} mode=odd\nL3 {problem}\n", 1, ["L1", "L3"],
             f'conv-fft: {path}:3: mode is "odd"; it must be one of zeros, circular, reflect, replicate\n'),
        ]
        for text, status, names, error in cases:
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            ended = run("explain", "--device=cpu", "--file=" + path)
            found = re.findall(r"^(\S*) ?in=", ended.stdout, re.MULTILINE)
            if (ended.returncode, found, ended.stderr) != (status, names, error):
                yield f"{text[:60]!r}: status {ended.returncode}, problems {found}, {ended.stderr!r}"
        for unreadable in [directory, os.path.join(directory, "missing")]:
            ended = run("explain", "--device=cpu", "--file=" + unreadable)
            if ended.returncode != 1 or not ended.stderr.startswith(f"conv-fft: cannot read {unreadable}: "):
                yield f"{unreadable} as a file: status {ended.returncode}, {ended.stderr!r}"


def fft_faults():
    """Words behind `explain fft`, the status, and what standard output (0) or standard error must say."""
    cases = [
        ("64x64", 0, "r2c 64x64 from 64x64, fp32, 1 channel, batch 65536\n"),
        ("64x64 from=9 channels=16 order=frequency-major batch=3", 0,
         "from 9x9, fp32, 16 channels, batch 3, frequency-major\n"),
        ("16x64x64 kind=c2r from=9x9x9", 0, "kernel 2: "),
        ("45 kind=c2c dtype=fp64", 0, "\nbudget "),
        ("128 kind=c2c-inverse layout=last channels=4", 0, "c2c-inverse 128 to 128"),
        ("32x32 size=100 offset=-1x2 step=2 mode=circular", 0, "at least "),
        ("4096 kind=c2c arithmetic=split", 0, "\narithmetic: FP32 as two FP16 numbers on tensor cores"),
        ("4096 kind=c2c dtype=fp16 spectrum=fp16 arithmetic=fp16", 0, "\narithmetic: FP16 on tensor cores"),
        ("4096 arithmetic=fp32", 0, "\narithmetic: FP32 units\n"),
        ("1000 kind=c2c arithmetic=split", 1, "basis[0] is 1000; it must be a power of two in 256 to 134217728"),
        ("4096 arithmetic=half", 2, 'arithmetic is "half"; it must be one of default, fp32, split, fp16'),
        ("", 2, "needs a basis"),
        ("64y64", 2, 'the basis is "64y64"; it must be 1 to 3 whole numbers'),
        ("64x11", 1, "basis[1] is 11; it must be a product of 2, 3, 5 and 7 in 1 to 256"),
        ("64x64 from=65x9", 2, 'from is "65x9"; it must be 1 to 64, the basis, along axis 0'),
        ("64x64 from=1x2x3", 2, "one whole number, or 2 joined by x"),
        ("64x64 kind=r2r", 2, 'kind is "r2r"; it must be one of r2c, c2r, c2c, c2c-inverse'),
        ("64x64 batch=0", 2, 'batch is "0"; it must be at least 1'),
        ("64x64 channels=0", 1, "channels is 0; it must be"),
        ("64x64 batch=99999999999999999999", 2, "a whole number below 2^63"),
        ("64x64 from=9x9 from=9x9", 2, "is given twice: from"),
        ("64x64 out=3", 2, "out is not a field of an fft"),
        ("64x64 9x9", 2, "not a key=value field of an fft: 9x9"),
    ]
    for words, status, part in cases:
        ended = run("explain", "--facts=" + FACTS, "fft", *words.split())
        if ended.returncode != status or part not in (ended.stderr if status else ended.stdout):
            yield f"explain fft {words}: status {ended.returncode}, {ended.stdout!r}, {ended.stderr!r}"
    ended = run("explain", "--facts=" + PROGRAM, "fft", "8")
    if ended.returncode != 1 or PROGRAM not in ended.stderr:
        yield f"a program as facts: status {ended.returncode}, {ended.stderr!r}"


def output_faults():
    for arguments in [["--help"], ["--version"], ["explain", "--device=cpu", "in=1x1x9"]]:
        with open("/dev/full", "w", encoding="ascii") as full:
            ended = run(*arguments, stdout=full)
        if ended.returncode != 1 or not ended.stderr:
            yield f"{arguments}: output to a full disk ends with status {ended.returncode}"


def spread_faults():
    """The text about the spread of a NaN has the tiles of the forward pass."""
    said = run("explain", "--device=cpu", "in=8x32x64x64 out=32 kernel=3x3 pad=1").stdout
    if "  forward\n    spatial, workspace" not in said or "A NaN or Inf in x reaches the outputs that read" not in said:
        yield f"a direct method: {said}"
    for problem, tiled in (("in=1x1x2000 out=1 kernel=999 pad=same", False),
                           ("in=1x8x64x64 out=8 kernel=31x31 pad=15", True)):
        said = run("explain", "--device=cpu", problem).stdout
        tiles = math.prod(int(n) for n in re.search(r"  forward\n.*, tiles ([\dx]+),", said)[1].split("x"))
        wanted = f"those of its sample's {tiles} tiles that read it, in the same group" if tiled else "(one tile)"
        if (tiles > 1) != tiled or "A NaN or Inf in x spreads over" not in said or wanted not in said:
            yield f"{problem}: {tiles} tiles, but of a NaN's spread: {said}"


def main():
    found = [*spread_faults(), *faults(), *suggestion_faults(), *size_faults(), *log_faults(),
             *unused_option_faults(), *file_faults(), *fft_faults(), *output_faults()]
    print("\n".join(found) or "program options: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
