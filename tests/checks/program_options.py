#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""program_options.py PROGRAM: conv-fft knows every option that its --help names, and refuses one that it does not."""
import re
import subprocess
import sys

PROGRAM = sys.argv[1]
COMMANDS = [[], ["devices"], ["explain"]]
UNKNOWN = "no-such-option"


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)


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


def main():
    found = list(faults())
    print("\n".join(found) or "program options: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
