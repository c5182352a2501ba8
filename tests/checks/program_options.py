#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""program_options.py PROGRAM: conv-fft knows every option that its --help names, and refuses one that it does not, that
its command has no use for, and a file that it cannot read or understand."""
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
COMMANDS = [[], ["devices"], ["explain"]]
UNKNOWN = "no-such-option"


def run(*arguments, stdout=subprocess.PIPE):
    return subprocess.run([PROGRAM, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)


def refusal(command, option):
    """What is said first about an option, its name left out; "" if it says nothing."""
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


def unused_option_faults():
    for option in ["--file=/dev/null", "--measure=1", "--workspace-limit=1"]:
        ended = run("devices", option)
        if ended.returncode != 2 or ended.stdout:
            yield f"devices {option} ends with status {ended.returncode}"


def file_faults():
    """The file, the status, the lines on standard output that begin a problem, and all of standard error."""
    problem = "in=1x1x9 out=1"
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "net.txt")
        cases = [
            (f"# a network\nL1 {problem}\n\nL2 {problem} # last", 0, ["L1", "L2"], ""),
            (f"# {' ' * 1100}{problem}\nL1 {problem}{' ' * 10} # {'x' * 5000}\n", 0, ["L1"], ""),
            (f"L1 {problem}\n\nL2 {problem} mode=odd\nL3 {problem}\n", 1, ["L1"],
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
            if ended.returncode != 2 or not ended.stderr.startswith(f"conv-fft: cannot read {unreadable}: "):
                yield f"{unreadable} as a file: status {ended.returncode}, {ended.stderr!r}"


def output_faults():
    for arguments in [["--help"], ["--version"], ["explain", "--device=cpu", "in=1x1x9"]]:
        with open("/dev/full", "w", encoding="ascii") as full:
            ended = run(*arguments, stdout=full)
        if ended.returncode != 1 or not ended.stderr:
            yield f"{arguments}: output to a full disk ends with status {ended.returncode}"


def main():
    found = [*faults(), *unused_option_faults(), *file_faults(), *output_faults()]
    print("\n".join(found) or "program options: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
