#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""commands.py ROOT BUILD LIBRARY WORK: every command line of README.md, CONTRIBUTING.md, docs and examples/README.md is
executed, in a folder with small networks and an empty cache, or named with the reason why it is not.

Command lines are the lines of indented blocks, and what stands between backticks with a first word of PROGRAMS. Fenced
blocks hold no commands. Targets of make are not made, but must exist: make runs with -n.

commands.py --self-test: each rule finds a fault that is put into a small page.
"""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = {"conv-fft", "make", "pip", "python", "python3", "cc", "cmake", "cpack", "ctest", "chmod", "export", "sudo",
            "apt", "apt-get", "ldconfig", "git", "pytest"}
FENCES = {"", "c", "cmake", "python", "text"}
OUTPUT = re.compile(r"y\[0\]\[0\]\[16\]\[16\] = ")  # of README's example, which readme_example.py compares
ASSIGNMENT = re.compile(r"[A-Z_]+=(\S+|.*\$\(.*\)\S*)$")
SECTION = "README.md, Install"  # its commands depend on each other
# Commands that are not executed here, and why. The first that matches counts.
NOT_EXECUTED = [
    (r"pip install\b|sudo |apt-get |apt ", "needs the network or root"),
    (r"cmake -B build -DCMAKE_PREFIX_PATH=", "needs an installation: tests/package/readme_install.py"),
    (r"git ", "needs a clone with its history"),
    (r"conv-fft cache export --kernels", "needs a GPU"),
    (r"build/release/bench/bench_tuning --exhaustive", "takes long without a GPU"),
    (r'python -c "import torch', "needs torch"),
    (r"pytest -n", "needs pytest-xdist"),
    (r"(python3? )?(bindings/python/bench/)?(bench_torch|amp_parity|cpu_layers)\.py", "needs torch"),
    (r"python -m conv_fft.record ", "needs torch: bindings/python/tests/test_torch_convert.py"),
    (r"bindings/python/examples/train.py ", "needs torch: bindings/python/tests/test_torch_examples.py"),
    (r"python -m conv_fft\b|.*conv_fft\.data_folder", "needs the wheel: bindings/python/tests/test_package.py"),
]
# What stands for names in capitals, and for commands that a text names without their arguments.
PLACES = {"PROBLEM": "in=2x3x20x20 out=4 kernel=9x9", "FILE [NETWORK...]": "all.jsonl networks/table4.txt",
          "FILE... [--policy P]": "all.jsonl --policy newest", "FILE...": "layers.txt", "DIR": "folder",
          "PREFIX": "prefix", "COMMAND": "explain", "ACTION": "list"}
COMPLETE = {"conv-fft explain": "conv-fft explain PROBLEM",
            "conv-fft explain --verbose": "conv-fft explain --verbose PROBLEM",
            "conv-fft tune": "conv-fft tune layers.txt", "conv-fft bench": "conv-fft bench layers.txt",
            "conv-fft cache merge": "conv-fft cache merge all.jsonl",
            "conv-fft cache export": "conv-fft cache export all.jsonl",
            "conv-fft explain fft": "conv-fft explain --facts tests/data/gpus/h200.txt fft 32x32"}
LAYER = "in=2x3x20x20 out=4 kernel=9x9 pad=4"
TRAIN = f"import conv_fft\nconv_fft.Plan('{LAYER}', 'cpu')\nconv_fft.Plan('in=1x2x50 kernel=5', 'cpu')\n"


def pages(root):
    found = [root / "README.md", root / "CONTRIBUTING.md", root / "examples/README.md", *(root / "docs").rglob("*.md")]
    return [page for page in found if page.name != "log.md"]


def blocks(text):
    """(line, its section, the language of its fenced block or None, whether it is of an indented block)"""
    section, fence, before, indented = "", None, "", False
    for line in text.split("\n"):
        if line.startswith("```"):
            fence = line[3:] if fence is None else None
        elif fence is None and line.startswith("## "):
            section = line[3:]
        indented = fence is None and line.startswith("    ") and (indented or not before.strip())
        yield line, section, fence, indented
        before = line


def is_command(text):
    words = [word for word in text.split() if not re.match(r"[A-Z_]+=", word)]
    return bool(words) and (len(text.split()) > 1 and (words[0] in PROGRAMS or words[0].endswith(".py"))
                            or bool(re.match(r"(build/release|\.)/", words[0])))


def commands(page):
    """(section, command) of a page."""
    text = page.read_text(encoding="utf-8")
    for line, section, fence, indented in blocks(text):
        if indented and not OUTPUT.search(line):
            yield section, re.split(r"\s+#\s", line.strip())[0]
        if fence is None:
            for inline in re.findall(r"`([^`\n]+)`", line):
                if is_command(inline):
                    yield section, inline


def page_faults(page, name):
    for line, _, fence, indented in blocks(page.read_text(encoding="utf-8")):
        if fence not in {None, *FENCES}:
            yield f"{name}: a fenced block of {fence!r}; commands are indented blocks, and this test executes them"
        command = re.split(r"\s+#\s", line.strip())[0]
        if indented and not (is_command(command) or ASSIGNMENT.match(command) or OUTPUT.search(line)):
            yield f"{name}: the indented line {command!r} is no command; other text is a fenced block"


class Sandbox:
    def __init__(self, root, build, library, work):
        self.work, self.done = work, {}
        self.has_numpy = bool(importlib.util.find_spec("numpy"))
        for name in ("bindings", "data", "include", "tests", "tuning", "scripts", "Makefile"):
            (work / name).symlink_to(root / name)
        shutil.copytree(root / "examples", work / "examples")
        (work / "build").mkdir()
        (work / "build/release").symlink_to(build)
        for folder in ("bin", "home", "folder", "networks", "prefix/lib", "bench/results/nvidia-h200", "shipped"):
            (work / folder).mkdir(parents=True)
        (work / "prefix/share").mkdir()
        (work / "prefix/share/conv_fft").symlink_to(root)
        (work / "prefix/lib/libconv_fft.so").symlink_to(library)
        (work / "prefix/lib/pkgconfig").mkdir()
        (work / "prefix/lib/pkgconfig/conv_fft.pc").write_text(
            f"libdir={library.parent}\nName: conv_fft\nDescription: of this build\nVersion: 0\n"
            f"Cflags: -I{root}/include\nLibs: -L{library.parent} -lconv_fft\n")
        (work / "bin/conv-fft").symlink_to(build / "tools/conv-fft")
        for python in ("python", "python3"):
            (work / "bin" / python).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
            (work / "bin" / python).chmod(0o755)
        for network in (root / "networks").glob("*.txt"):
            (work / "networks" / network.name).write_text(f"layer {LAYER}\n")
        (work / "layers.txt").write_text(LAYER + "\n")
        example = re.search(r"^```c\n(.*?)^```$", (root / "README.md").read_text(encoding="utf-8"), re.M | re.S)
        (work / "example.c").write_text(example.group(1))
        for script in ("train.py", "your_program.py"):
            (work / script).write_text(TRAIN)
        self.environment = {
            **{name: value for name, value in os.environ.items()
               if not name.startswith(("MAKE", "MFLAGS", "CONV_FFT_"))},
            "PATH": f"{work / 'bin'}:{os.environ['PATH']}", "HOME": str(work / "home"),
            "CONV_FFT_CACHE_DIR": str(work / "cache"), "CONV_FFT_LIBRARY": str(library), "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": str(root / "bindings/python"), "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive",
            "PKG_CONFIG_PATH": str(work / "prefix/lib/pkgconfig")}
        self.fault("conv-fft tune layers.txt && conv-fft cache export all.jsonl")

    def fault(self, command, folder="."):
        """What is wrong with a command that is executed here."""
        if command not in self.done:
            text = COMPLETE.get(command, command)
            for name, place in PLACES.items():
                text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w])", lambda _: place, text)
            if re.match(r"make ", text):
                text = text.replace("make ", "make -n ", 1)
            elif ASSIGNMENT.match(text):
                text = f"test -e {text.partition('=')[2]}"  # a variable that names a file or folder
            ended = subprocess.run(["sh", "-euc", text], cwd=self.work / folder, env=self.environment, timeout=200,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            # On a busy host tune may find no time that counts.
            busy = "conv-fft tune" in text and "other work on this host disturbed" in ended.stdout
            self.done[command] = ended.returncode and not busy and \
                f"{text!r} ends with status {ended.returncode}:\n{ended.stdout}"
        return self.done[command]


def faults(root, sandbox):
    for page in pages(root):
        name = str(page.relative_to(root))
        yield from page_faults(page, name)
        for section, command in commands(page):
            reason = next((why for pattern, why in NOT_EXECUTED if re.match(pattern, command)), None)
            if f"{name}, {section}" == SECTION and not reason:
                reason = "tests/package/readme_install.py executes it"
            if "numpy" in command and not reason and not sandbox.has_numpy:
                reason = "needs NumPy: bindings/python/tests/test_examples.py"
            if not is_command(command) and not ASSIGNMENT.match(command):
                continue  # page_faults() names it
            if reason:
                print(f"not executed: {name}: {command}  ({reason})")
            elif found := sandbox.fault(command, "examples" if name.startswith("examples/") and
                                        re.match(r"cc |\./", command) else "."):
                yield f"{name}: {found}"


def self_test():
    bad = {"    conv-fft explain in=1\n": "", "    some text\n": "is no command",
           "```sh\nmake x\n```\n": "a fenced block"}
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.md"
        for text, said in bad.items():
            page.write_text(f"# A page\n\n## Section\n\nText with `conv-fft devices` and `conv-fft`.\n\n{text}")
            found = "\n".join(page_faults(page, "page.md"))
            if said not in found or bool(found) != bool(said):
                return f"{text!r} gives {found!r}"
        page.write_text("## One\n\n    make a   # or `make b`\n    C=d\n\n"
                        "`FOO=x python y.py` `python` `CONV_FFT_LOG=1`\n")
        if [command for _, command in commands(page)] != ["make a", "make b", "C=d", "FOO=x python y.py"]:
            return f"commands are {list(commands(page))}"
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root, build, library, folder = (Path(argument).resolve() for argument in sys.argv[1:5])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        sandbox = Sandbox(root, build, library, Path(work))
        found = list(faults(root, sandbox))
        print(f"{len(sandbox.done)} commands executed")
    return "\n".join(found) if found else 0


if __name__ == "__main__":
    sys.exit(main())
