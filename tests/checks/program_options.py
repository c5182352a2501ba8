#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""program_options.py PROGRAM: conv-fft knows every option that its --help names, and refuses one that it does not, that
its command has no use for, and a file that it cannot read or understand; `explain fft` needs no GPU, and says what is
wrong with its words."""
import math
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
FACTS = os.path.join(os.path.dirname(__file__), "..", "data", "gpus", "h200.txt")
COMMANDS = [[], ["devices"], ["explain"], ["tune"], ["bench"], ["cache"]]
UNKNOWN = "no-such-option"


def run(*arguments, stdout=subprocess.PIPE):
    return subprocess.run([PROGRAM, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)


def refusal(command, option):
    """The first message about an option, without the option's name; "" if there is no message."""
    said = run(*command, option).stderr.split("\n")[0]
    return said.replace(option.split("=")[0].lstrip("-"), "NAME")


def faults():
    for command in COMMANDS:
        if run(*command, "--" + UNKNOWN).returncode == 0:
            yield f"{command}: --{UNKNOWN} is accepted"
    if run("no-such-command").returncode == 0:
        yield "no-such-command is accepted"

    shown = run("--help")
    options = dict(sorted(re.findall(r"(--[a-z][a-z-]*)(?:[= ](\S+))?", shown.stdout)))
    if shown.returncode != 0 or not options:
        yield f"--help ends with status {shown.returncode} and names {len(options)} options"
    for name, takes_value in options.items():
        value = "=1" if takes_value else ""
        if all(refusal(command, name + value) == refusal(command, f"--{UNKNOWN}{value}") for command in COMMANDS):
            yield f"--help names {name}, but no command takes it"


def log_faults():
    """A value of CONV_FFT_LOG that is none is named, once. The numbers and words are taken."""
    for value in ("", "1", "2", "3", "silent", "warning", "info", "verbose", "4", "INFO", "12"):
        ended = subprocess.run([PROGRAM, "cache", "show", "--device=cpu"], capture_output=True, text=True, timeout=60,
                               env={**os.environ, "CONV_FFT_LOG": value})
        said = f'conv_fft: CONV_FFT_LOG is "{value}"; it must be 1 or silent, 2 or warning, 3 or info;'
        wanted = value in ("verbose", "4", "INFO", "12")
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
        ("64x64 out=3", 2, "not a field of an fft: out"),
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
    for problem, tiled in (("in=1x1x9 out=1 kernel=9", False), ("in=1x3x64x64 out=4 kernel=3x3 pad=1", True)):
        said = run("explain", "--device=cpu", problem).stdout
        tiles = math.prod(int(n) for n in re.search(r"  forward\n.*\n.*, tiles ([\dx]+),", said)[1].split("x"))
        wanted = f"those of its sample's {tiles} tiles that read it, in the same group" if tiled else "(one tile)"
        if (tiles > 1) != tiled or "A NaN or Inf in x spreads over" not in said or wanted not in said:
            yield f"{problem}: {tiles} tiles, but of a NaN's spread: {said}"


def main():
    found = [*spread_faults(), *faults(), *log_faults(),
             *unused_option_faults(), *file_faults(), *fft_faults(), *output_faults()]
    print("\n".join(found) or "program options: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
