#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The mutation check: faults are put into src/ one at a time, and the tests must catch them.

    mutants.py                  the faults of tests/mutants/hand.txt, and 50 made mechanically
    mutants.py --hand           those of the list alone
    mutants.py --only NAME,ID   these alone: names of the list, or parts of them, and ids of mechanical ones
    mutants.py --list           what would be run; nothing is built
    mutants.py --check          whether the lists fit the tree, and whether this program makes what it should

The tree is copied to build/mutants/00 and built there once, with warnings off and little optimisation. Each mutant is
one change of one file in a copy of that folder, so ninja builds again only what depends on the file. Tests run one
after the other until one fails, or takes several times as long as it should:

    src/*.c, *.h, *.inc     the C programs, those first that find most, then the emulator's programs
    src/*.cuh               the emulator's programs that include the file, the cheap ones first

A mutant that does not compile is `stillborn`; a mechanical one is replaced by the next. The status is 1 if a fault of
the list survives or does not compile, or if more than 10 % of the mechanical ones survive. The ones that
tests/mutants/equivalent.txt names do not count.
"""
import argparse
import concurrent.futures
import os
import queue
import random
import re
import signal
import sys
import threading
import time
from pathlib import Path

from mutation.copies import Copy, mirror, order, prepare, stop
from mutation.faults import EQUIVALENT, HAND, ROOT, Refused, mechanical, read_equivalent, read_hand, self_check, sources

MECHANICAL_MAY_SURVIVE = 0.1


# ------------------------------------------------------------------------------------------------------------- running

class Result:
    def __init__(self, mutant, kind):
        self.mutant, self.kind = mutant, kind
        self.verdict, self.test, self.test_seconds, self.seconds, self.ran = "survived", "", 0.0, 0.0, 0

    def row(self):
        found = f"{self.verdict:10} {self.test:24} {self.test_seconds:8.1f} {self.seconds:8.1f}"
        return f"{self.mutant.name:24} {found}  {self.mutant.path}:{self.mutant.line}"


HEADING = f"{'mutant':24} {'verdict':10} {'caught by':24} {'test, s':>8} {'all, s':>8}  where"


def try_mutant(result, base, copy, tests):
    mutant = result.mutant
    mirror(base.tree, copy.tree, (), os.fsencode(base.tree), os.fsencode(copy.tree))
    start = time.monotonic()
    path = copy.tree / mutant.path
    path.write_text(mutant.apply(path.read_text()))
    if mutant.is_kernel:
        copy.configure()  # kernels are texts in the library, too
    compiled = False
    if not mutant.is_kernel:
        status, output, _ = copy.ninja(["conv_fft"])
        if status != 0:
            result.verdict = "stillborn"
        compiled = True
    for test in order(mutant, tests) if result.verdict != "stillborn" else []:
        result.ran += 1
        status, output, _ = copy.ninja(test.targets) if test.targets else (0, "", 0)
        if status != 0:
            result.verdict = "caught" if compiled else "stillborn"
            result.test = f"{test.name} (build)" if compiled else ""
            break
        compiled = True
        status, output, seconds = copy.test(test.name, 5 * test.seconds + 30)
        if status != 0:
            result.verdict = "timeout" if status is None else "caught"
            result.test, result.test_seconds = test.name, seconds
            break
    result.seconds = time.monotonic() - start
    (copy.home / "last.log").write_text(output if result.ran or result.verdict == "stillborn" else "")
    return result


class Run:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.base, self.tests = prepare(options, folder)
        self.copies = queue.Queue()
        for number in range(1, options.jobs + 1):
            self.copies.put(Copy(folder, number, options))
        self.lock = threading.Lock()

    def one(self, result):
        copy = self.copies.get()
        try:
            try_mutant(result, self.base, copy, self.tests)
            with self.lock:
                print(result.row(), flush=True)
            return result
        finally:
            self.copies.put(copy)

    def all(self, mutants, kind):
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            return list(pool.map(self.one, [Result(m, kind) for m in mutants]))


def report(results, equivalent, options, out):
    """Print the table, its totals and the surviving mutants. Returns whether none survived."""
    say = lambda text="": print(text, file=out)
    say(HEADING)
    for result in results:
        say(result.row())
    good = True
    counts = {}
    for kind in ("hand", "mechanical"):
        own = [r for r in results if r.kind == kind]
        lived = [r for r in own if r.verdict == "survived"]
        alive = [r for r in own if r.verdict != "stillborn"]
        missed = [r for r in lived if r.mutant.name not in equivalent]
        known = len(lived) - len(missed)
        if not own:
            continue
        say(f"\n{kind}: {len(alive)} mutants, {len(alive) - len(lived)} caught, {known} known to be equivalent, "
            f"{len(missed)} survived, {len(own) - len(alive)} did not compile")
        if kind == "hand":
            good = good and not missed and len(alive) == len(own)
        else:
            good = good and len(missed) <= MECHANICAL_MAY_SURVIVE * max(1, len(alive) - known)
        counts[kind] = missed
    caught = {}
    for result in results:
        if result.test:
            caught[result.test] = caught.get(result.test, 0) + 1
    say("\ncaught by")
    for test, count in sorted(caught.items(), key=lambda item: -item[1]):
        say(f"{count:5}  {test}")
    for kind, missed in counts.items():
        for result in missed:
            say(f"\nsurvived: {result.mutant.name} ({result.mutant.breaks})")
            say(result.mutant.diff())
            say(f"    replay: scripts/mutants.py --only {result.mutant.name}"
                + (f" --tests '{options.tests}'" if options.tests else "") + f" --seed {options.seed}")
    for result in results:
        if result.kind == "hand" and result.verdict == "stillborn":
            say(f"\ndoes not compile: {result.mutant.name}\n{result.mutant.diff()}")
    return good


def choose(options):
    """(mutants chosen by hand, mechanical ones in the order in which they are taken, how many of these)."""
    hand = read_hand(HAND.read_text(), lambda path: (ROOT / path).read_text())
    every = mechanical(sources())
    if options.only:
        picked, made = [], []
        for word in options.only.split(","):
            of_list = [m for m in hand if m.name == word] or [m for m in hand if word and word in m.name]
            of_all = [every[word]] if word in every else []
            if not of_list and not of_all:
                raise Refused(f"--only {word}: no name of tests/mutants/hand.txt has this part, no mechanical mutant "
                              "this id")
            picked += [m for m in of_list if m not in picked]
            made += of_all
        return picked, made, len(made)
    hand = [m for m in hand if re.search(options.files, m.path)]
    names = sorted(name for name in every if re.search(options.files, every[name].path))
    random.Random(options.seed).shuffle(names)
    count = options.mechanical if options.mechanical is not None else 0 if options.hand else 50
    return ([] if options.mechanical is not None and not options.hand else hand), [every[n] for n in names], count


def number(low, high):
    def parse(text):
        if not re.fullmatch(r"\d+", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {low} to {high}")
        return int(text)
    return parse


def pattern(text):
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a regular expression: {error}")
    return text


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hand", action="store_true", help="those of tests/mutants/hand.txt")
    parser.add_argument("--mechanical", type=number(0, 100000), metavar="N",
                        help="so many made mechanically, and of the list none without --hand")
    parser.add_argument("--seed", type=number(0, 2**64 - 1), default=1, help="which mechanical ones (default: 1)")
    parser.add_argument("--only", metavar="NAME[,NAME]", help="these mutants: names, parts of names, ids")
    parser.add_argument("--list", action="store_true", help="print the mutants, and build nothing")
    parser.add_argument("--check", action="store_true", help="check the lists and this program, and build nothing")
    parser.add_argument("--jobs", type=number(1, 99), default=1, metavar="N", help="mutants side by side (default: 1)")
    parser.add_argument("--build-jobs", type=number(1, 999), metavar="N", help="compilers of each (default: its cores)")
    parser.add_argument("--files", type=pattern, default="", metavar="REGEX", help="only mutants of such files")
    parser.add_argument("--tests", type=pattern, default="", metavar="REGEX", help="only tests with such names")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the table and the survivors to a file")
    parser.add_argument("--prefix", metavar="DIR", help="where cmocka and jansson are installed, as CMake takes it")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/mutants", metavar="DIR", help="of the copies")
    options = parser.parse_args()
    if not options.build_jobs:
        options.build_jobs = max(1, (os.cpu_count() or 1) // options.jobs)
    return options


def main():
    options = arguments()
    if options.check:
        wrong = list(self_check())
        print("\n".join(wrong) or "mutants: good")
        return 1 if wrong else 0
    hand, made, count = choose(options)
    if options.list:
        for mutant in hand + made[:count]:
            print(f"{mutant.name:24} {mutant.path}:{mutant.line}  {mutant.breaks}")
            print(mutant.diff())
        return 0
    equivalent = read_equivalent(EQUIVALENT.read_text())
    print(f"{len(hand)} mutants chosen by hand, {count} mechanical ones of seed {options.seed}; {options.jobs} at once")
    run = Run(options, options.folder.resolve())
    print(HEADING, flush=True)
    results, at = run.all(hand, "hand"), 0
    while count > 0 and at < len(made):
        batch = run.all(made[at:at + count], "mechanical")
        at += len(batch)
        count = sum(result.verdict == "stillborn" for result in batch)
        results += batch
    print()
    good = report(results, equivalent, options, sys.stdout)
    if options.out:
        with options.out.open("w") as out:
            report(results, equivalent, options, out)
    return 0 if good else 1


if __name__ == "__main__":
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    try:
        sys.exit(main())
    except Refused as refused:
        sys.exit(f"mutants.py: {refused}")
