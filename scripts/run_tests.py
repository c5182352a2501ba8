#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Configures a preset, builds the programs of the chosen tests and nothing else, and runs these tests.

    scripts/run_tests.py PRESET [--label L] [--without L] [--pattern P] [--jobs N] [--skip-unchanged L]

--label, --without   tests that have, or do not have, a label that this regular expression matches
--pattern            tests whose names match this regular expression
--skip-unchanged     leaves out the tests of this label, and prints their names and number, if nothing that they depend
                     on has changed since all of them last passed in this build folder. It has no effect if the
                     environment sets CI or ALL
Status 2: nothing matches, or a word is not understood."""
import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The sources of the emulator's programs. They make whole plans, so they include nearly all of src.
DEPENDED = ("include", "src", "tests", "cmake", "CMakeLists.txt", "CMakePresets.json")
NOT_DEPENDED = ("tests/checks", "tests/package", "tests/fuzz", "tests/mutants")


def say(text):
    print("run_tests.py: " + text, flush=True)


def run(command, **options):
    ended = subprocess.run(command, cwd=ROOT, check=False, **options)
    if ended.returncode != 0:
        sys.exit(ended.returncode)
    return ended


def configured_tests(preset):
    """The folder of the build, and its tests as CTest has them."""
    run(["cmake", "--preset", preset], stdout=subprocess.DEVNULL)
    folder = ROOT / "build" / preset
    listing = run(["ctest", "--test-dir", str(folder), "--show-only=json-v1"], stdout=subprocess.PIPE, text=True)
    return folder, json.loads(listing.stdout)["tests"]


def labels_of(test):
    return next((p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"), [])


def chosen(tests, label, without, pattern):
    def fits(test):
        return ((not label or any(re.search(label, own) for own in labels_of(test)))
                and not (without and any(re.search(without, own) for own in labels_of(test)))
                and (not pattern or re.search(pattern, test["name"])))

    return [test for test in tests if fits(test)]


def commands_of(folder):
    """The words of each test's command. CTest itself does not list them before the program is built."""
    found = {}
    for file in folder.rglob("CTestTestfile.cmake"):
        for name, rest in re.findall(r'^add_test\((?:\[=*\[)?"?([^\]" ]+)(?:\]=*\])?"? (.*)\)$',
                                     file.read_text(encoding="utf-8"), re.M):
            found[name] = re.findall(r'"((?:[^"\\]|\\.)*)"', rest)
    return found


def targets_of(folder, tests):
    """The files of the build that the tests' commands name. Tests of the installation need library and program."""
    listing = run(["ninja", "-C", str(folder), "-t", "targets", "all"], stdout=subprocess.PIPE, text=True).stdout
    known = {line.split(": ")[0] for line in listing.splitlines()}
    wanted = {name for name in ("conv_fft", "conv-fft") if name in known
              and any("consumer" in t["name"] for t in tests)}
    commands = commands_of(folder)
    for test in tests:
        for word in commands[test["name"]]:
            name = os.path.relpath(word, folder)
            if os.path.isabs(word) and name in known:
                wanted.add(name)
    return sorted(wanted)


def state_of(folder):
    """A hash of what the emulator's programs depend on."""
    found = hashlib.sha256()
    for top in DEPENDED:
        path = ROOT / top
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            name = file.relative_to(ROOT).as_posix()
            if file.is_file() and "__pycache__" not in name and not name.startswith(NOT_DEPENDED):
                found.update(name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    cache = (folder / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
    for line in sorted(re.findall(r"^(?:CMAKE_C|CONV_FFT_).*$", cache, re.M)):
        found.update(line.encode() + b"\n")
        if compiler := re.match(r"CMAKE_C(?:XX)?_COMPILER:\w+=(.*)$", line):
            found.update(subprocess.run([compiler.group(1), "--version"], capture_output=True, check=False).stdout)
    found.update(os.environ.get("CONV_FFT_TEST_SHARE", "").encode())
    return found.hexdigest()


def leave_out_unchanged(label, folder, tests):
    """Splits the tests: those to run, and the note that is written when they have passed."""
    note = folder / ("passed_" + label)
    own = [test for test in tests if label in labels_of(test)]
    if not own or os.environ.get("CONV_FFT_TEST_CASE"):
        return tests, None
    state = "%s\n%s\n" % (state_of(folder), " ".join(sorted(test["name"] for test in own)))
    fresh = any(os.environ.get(name, "").lower() not in ("", "0", "false") for name in ("CI", "ALL"))
    if not fresh and note.is_file() and note.read_text(encoding="utf-8") == state:
        say("%d tests are left out, since nothing they depend on changed since they passed (ALL=1 runs them): %s"
            % (len(own), " ".join(test["name"] for test in own)))
        return [test for test in tests if test not in own], None
    return tests, (note, state)


def words():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset")
    for name in ("label", "without", "pattern", "skip-unchanged"):
        parser.add_argument("--" + name)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    for name in ("label", "without", "pattern"):
        try:
            re.compile(getattr(options, name) or "")
        except re.error as error:
            parser.error("--%s %s: %s" % (name, getattr(options, name), error))
    return options


def check_selection():
    """Check the variables of tests/support/selection.h before the build. CMake reads them too, and knows decimal seeds
    only."""
    seed, share = os.environ.get("CONV_FFT_TEST_SEED", ""), os.environ.get("CONV_FFT_TEST_SHARE", "")
    if seed:
        if not re.fullmatch("0x[0-9a-fA-F]+|0|[1-9][0-9]*", seed) or int(seed, 0) >= 1 << 64:
            sys.exit("run_tests.py: CONV_FFT_TEST_SEED=%s: a seed is a whole number of up to 64 bits" % seed)
        os.environ["CONV_FFT_TEST_SEED"] = str(int(seed, 0))
    if share and not re.fullmatch("core|[1-9][0-9]|100", share):
        sys.exit("run_tests.py: CONV_FFT_TEST_SHARE=%s: a share is 10 to 100 percent, or `core`" % share)


def no_case_is_named(folder):
    """Whether CONV_FFT_TEST_CASE named no case of any test that ran. Each list that it names cases of says so."""
    log = folder / "Testing" / "Temporary" / "LastTest.log"
    return bool(os.environ.get("CONV_FFT_TEST_CASE")) and "whose names contain" not in log.read_text(errors="replace")


def main():
    options = words()
    check_selection()
    folder, tests = configured_tests(options.preset)
    tests = chosen(tests, options.label, options.without, options.pattern)
    if not tests:
        say("no test of preset %s matches: label %s, without %s, pattern %s"
            % (options.preset, options.label, options.without, options.pattern))
        return 2
    note = None
    if options.skip_unchanged:
        tests, note = leave_out_unchanged(options.skip_unchanged, folder, tests)
    if not tests:
        return 0
    run(["cmake", "--build", str(folder), "--parallel", str(options.jobs), "--target"] + targets_of(folder, tests))
    names = "^(" + "|".join(re.escape(test["name"]) for test in tests) + ")$"
    if note:  # until they have passed again
        note[0].unlink(missing_ok=True)
    ended = subprocess.run(["ctest", "--test-dir", str(folder), "--parallel", str(options.jobs), "--output-on-failure",
                            "--no-tests=error", "-R", names], cwd=ROOT, check=False)
    if ended.returncode == 0 and no_case_is_named(folder):
        say("CONV_FFT_TEST_CASE=%s: no case of these tests has this in its name" % os.environ["CONV_FFT_TEST_CASE"])
        return 2
    if ended.returncode == 0 and note:
        note[0].write_text(note[1], encoding="utf-8")
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
