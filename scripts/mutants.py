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
import difflib
import hashlib
import json
import os
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HAND, EQUIVALENT = ROOT / "tests/mutants/hand.txt", ROOT / "tests/mutants/equivalent.txt"
BUILD = "build/dev"
# What a build and its tests need of the tree.
PARTS = {"CMakeLists.txt", "CMakePresets.json", "cmake", "include", "src", "tests", "tools", "README.md", "examples",
         "bindings", "networks", "tuning", "data", "pyproject.toml"}
CONFIGURE = ["cmake", "--preset", "dev", "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g0",
             "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g0", "-DCONV_FFT_WARNINGS=OFF",
             "-DCONV_FFT_BUILD_BENCH=OFF", "-DCONV_FFT_BUILD_EXAMPLES=OFF"]
# Of C mutants, those that found most, and quickly, when this was measured.
FIRST = ["tiling_test_tiling", "api_test_api", "api_test_plans", "backend_cpu_test_ops", "backend_cpu_test_gemm",
         "api_test_threads", "fbfft_test_api", "fbfft_test_explain", "cuda_test_gpu", "conv_test_strategy",
         "autotune_test_record_format", "autotune_test_record_file", "tiling_test_sizes", "fbfft_test_c2c_fp16"]
# Tests of the text of the tree, which any change of it may fail, and of what is installed, which builds everything.
NOT_BEHAVIOUR = re.compile(r"check_(?!tuning_program|program_options|readme_example|exported_symbols)|consumer_")
# It compiles kernels while it runs, so no object of it depends on them.
COMPILES_ITSELF = re.compile(r"emulator_test_staged$")
MECHANICAL_MAY_SURVIVE = 0.1
MEMORY, FILE = 8 << 30, 1 << 30  # bytes that a process of a mutant may have, and write to a file


class Refused(Exception):
    """What is wrong with the arguments or the lists, as one sentence."""


class Mutant:
    def __init__(self, name, path, at, old, new, breaks):
        self.name, self.path, self.at, self.old, self.new, self.breaks = name, path, at, old, new, breaks

    def apply(self, text):
        assert text.startswith(self.old, self.at)
        return text[:self.at] + self.new + text[self.at + len(self.old):]

    @property
    def is_kernel(self):
        return self.path.endswith(".cuh")

    @property
    def line(self):
        return (ROOT / self.path).read_text().count("\n", 0, self.at) + 1

    def diff(self):
        text = (ROOT / self.path).read_text()
        old, new = text.splitlines(), self.apply(text).splitlines()
        lines = difflib.unified_diff(old, new, self.path, self.path, n=2, lineterm="")
        return "\n".join("    " + line for line in lines)


# ---------------------------------------------------------------------------------------------------- chosen by hand

def read_hand(text, read, where="tests/mutants/hand.txt"):
    """The mutants of a list; read(path) is the text of a file of the tree."""
    mutants, fields, number = [], None, 0

    def finish():
        if fields is None:
            return
        for key in ("file", "breaks", "needs", "-"):
            if not fields.get(key):
                raise Refused(f"{where}: {fields['name']} has no line '{key}'")
        old, new = "\n".join(fields["-"]), "\n".join(fields.get("+", []))
        try:
            content = read(fields["file"])
        except OSError:
            raise Refused(f"{where}: {fields['name']} names {fields['file']}, which is not there")
        count = content.count(old)
        if count != 1:
            raise Refused(f"{where}: the old text of {fields['name']} stands {count} times in {fields['file']}; "
                          f"it must stand there once:\n{old}")
        if any(other.name == fields["name"] for other in mutants):
            raise Refused(f"{where}: {fields['name']} is there twice")
        mutants.append(Mutant(fields["name"], fields["file"], content.index(old), old, new, fields["breaks"]))

    for number, line in enumerate(text.split("\n"), 1):
        key, _, rest = line.partition(" ")
        if not line.strip() or key.startswith("#"):
            continue
        if key == "==":
            finish()
            fields = {"name": rest.strip()}
        elif fields is not None and key in ("-", "+"):
            fields.setdefault(key, []).append(rest)
        elif fields is not None and key in ("file", "breaks", "needs"):
            fields[key] = rest.strip()
        else:
            raise Refused(f"{where}:{number}: '{line}' is neither of ==, file, breaks, needs, -, +, #")
    finish()
    return mutants


def read_equivalent(text, where="tests/mutants/equivalent.txt"):
    """Ids of mechanical mutants that change nothing, with the reasons: lines `ID REASON`."""
    reasons = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, reason = line.partition(" ")
        if not re.fullmatch(r"[0-9a-f]{8}(-\d+)?", name) or not reason.strip():
            raise Refused(f"{where}:{number}: '{line}' is not an id with a reason")
        reasons[name] = reason.strip()
    return reasons


# -------------------------------------------------------------------------------------------------- made mechanically

NOT_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
# Their arguments are sentences, or are not computed at all.
MESSAGES = re.compile(r"\b(cf_fail\w*|cf_log|fail_\w+|static_assert|_Static_assert|assert)\s*\(")
OPERATORS = {
    "+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["/"], "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"],
    "^": ["|"], "<": ["<=", ">"], "<=": ["<"], ">": [">=", "<"], ">=": [">"], "==": ["!="], "!=": ["=="], "&&": ["||"],
    "||": ["&&"], "+=": ["-="], "-=": ["+="], "*=": ["+="], "/=": ["*="], "|=": ["&="], "&=": ["|="],
}
OPERATOR = re.compile(r"(?<=\S) (%s) (?=\S)" % "|".join(re.escape(o) for o in sorted(OPERATORS, key=len, reverse=True)))
NUMBER = re.compile(r"(?<![\w.])(\d+)(?=[^\w.])")
SIGN = re.compile(r"(?:[(\[,{=?:]|return) ?(-)(?=[\w(])")
NOT = re.compile(r"(?<=[( ])(!)(?=[\w(])")
STEP = re.compile(r"(\+\+|--)(?=\w)")
# One line, and no declaration; what only gives back memory or files shows in no plain build.
STATEMENT = re.compile(r"(?<=[;{})e]\n)( +)((?!return|break|continue|goto|typedef|using|CF_PRAGMA|case|default)"
                       r"[*\w][\w.>\-\[\]*:]*(?: (?:[-+*/|&]?=) |\()[^;{}\n]*;)(?=\n)")
GIVES_BACK = re.compile(r"(free|close\w*|\w*destroy|\w*_clear|json_decref|pthread_mutex_\w+)\(")


def blank(text, start, end):
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]


def end_of_call(code, at):
    """Behind the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i + 1
    return len(code)


def code_of(text):
    """The text, with blanks for what is no code, or none that the tests run: comments, literals, preprocessor lines,
    messages, assertions, and what only a GPU's compiler sees."""
    code = NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    for match in MESSAGES.finditer(code):
        code = blank(code, match.start(), end_of_call(code, match.end() - 1))
    lines, hidden, continued = code.split("\n"), [], False
    for i, line in enumerate(lines):
        directive = continued or line.lstrip().startswith("#")
        word = line.strip() if directive and not continued else ""
        if re.match(r"#\s*(ifdef|ifndef|if)\b", word):
            simt = "CF_SIMT" in word
            no = simt and ("ifndef" in word or "!defined" in word) or "__CUDA_ARCH__" in word
            hidden.append((simt or "__CUDA_ARCH__" in word, no))
        elif re.match(r"#\s*else\b", word) and hidden:
            hidden[-1] = (hidden[-1][0], hidden[-1][0] and not hidden[-1][1])
        elif re.match(r"#\s*endif\b", word) and hidden:
            hidden.pop()
        continued = directive and line.endswith("\\")
        if directive or any(no for _, no in hidden):
            lines[i] = " " * len(line)
    return "\n".join(lines)


def changes_in(text):
    """(place, old text, new text, what it is) for everything that can be changed in a file."""
    code = code_of(text)
    for match in OPERATOR.finditer(code):
        for new in OPERATORS[match.group(1)]:
            yield match.start(1), match.group(1), new, "operator"
    for match in NUMBER.finditer(code):
        number = int(match.group(1))
        yield match.start(1), match.group(1), str(number + 1), "number"
        if number > 0:
            yield match.start(1), match.group(1), str(number - 1), "number"
    for match in SIGN.finditer(code):
        yield match.start(1), "-", "", "sign"
    for match in NOT.finditer(code):
        yield match.start(1), "!", "", "not"
    for match in STEP.finditer(code):
        if code[max(0, match.start() - 2):match.start()] != "; ":  # of a loop: most never end
            yield match.start(1), match.group(1), {"++": "--", "--": "++"}[match.group(1)], "step"
    for match in STATEMENT.finditer(code):
        if not GIVES_BACK.match(match.group(2)) and match.group(2).count("(") == match.group(2).count(")"):
            yield match.start(2), text[match.start(2):match.end(2)], ";", "statement"


def mechanical(files):
    """Every mechanical mutant of the files {path: text}, by id. An id is made of the lines around the change, so it
    stays while these do, wherever the file is."""
    found = {}
    for path, text in sorted(files.items()):
        for at, old, new, kind in changes_in(text):
            start = text.rfind("\n", 0, text.rfind("\n", 0, at) if "\n" in text[:at] else 0) + 1
            end = text.find("\n", text.find("\n", at + len(old)) + 1)
            around = text[start:at] + "\0" + new + "\0" + text[at + len(old):end]
            name = hashlib.sha1(around.encode()).hexdigest()[:8]
            unique, n = name, 1
            while unique in found:
                n += 1
                unique = f"{name}-{n}"
            found[unique] = Mutant(unique, path, at, old, new, kind)
    return found


def sources():
    paths = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in (".c", ".inc", ".cuh"))
    return {p.relative_to(ROOT).as_posix(): p.read_text() for p in paths}


# ---------------------------------------------------------------------------------------------------- copies and builds

def mirror(source, target, skip=(), old=None, new=None):
    """Make `target` what `source` is, but for the names to skip. Returns which files changed.

    From one copy to another, old and new are their folders, whose names have one length. Then times stay, which ninja
    goes by, and files that name the one folder name the other one."""
    target.mkdir(parents=True, exist_ok=True)
    changed, names = [], set()
    for entry in os.scandir(source):
        if entry.name in skip:
            continue
        names.add(entry.name)
        to = target / entry.name
        if entry.is_symlink():
            link = os.readlink(entry.path)
            if not to.is_symlink() or os.readlink(to) != link:
                remove(to)
                to.symlink_to(link)
            continue
        if entry.is_dir():
            if to.is_symlink() or to.is_file():
                to.unlink()
            changed += mirror(Path(entry.path), to, (), old, new)
            continue
        if not entry.is_file():
            continue
        status = entry.stat()
        there = to.lstat() if os.path.lexists(to) and not to.is_dir() else None
        if old and there and (there.st_size, there.st_mtime_ns) == (status.st_size, status.st_mtime_ns):
            continue
        content = Path(entry.path).read_bytes()
        if old is None and there and there.st_size == status.st_size and to.read_bytes() == content:
            continue
        remove(to)
        to.write_bytes(content.replace(old, new) if old else content)
        os.chmod(to, status.st_mode & 0o777)
        if old:
            os.utime(to, ns=(status.st_mtime_ns, status.st_mtime_ns))
        changed.append(to)
    for entry in os.scandir(target):
        if entry.name not in names and entry.name not in skip:
            remove(Path(entry.path))
            changed.append(Path(entry.path))
    return changed


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def limit():
    for what, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (most, most))


RUNNING = set()  # groups of processes


def stop(number, frame):
    """Ends what was started, which is in sessions of its own."""
    for group in list(RUNNING):
        os.killpg(group, signal.SIGKILL)
    os._exit(128 + number)


class Copy:
    """A copy of the tree with its build folder."""

    def __init__(self, folder, number, options):
        self.tree, self.options = folder / f"{number:02}", options
        self.build, self.home = self.tree / BUILD, folder / f"home-{number:02}"
        self.home.mkdir(parents=True, exist_ok=True)
        # A mutant of what keeps files must not meet those of the user.
        self.environment = dict(os.environ, HOME=str(self.home), TMPDIR=str(self.home), XDG_CACHE_HOME=str(self.home))

    def run(self, command, seconds=None, limited=False, folder=None):
        """(status, output, seconds); the status is None where it took too long."""
        start = time.monotonic()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, cwd=folder or self.build, env=self.environment, start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                       preexec_fn=limit if limited else None)
            RUNNING.add(process.pid)
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            RUNNING.discard(process.pid)
            output.seek(0)
            return status, output.read().decode(errors="replace"), time.monotonic() - start

    def configure(self):
        extra = [f"-DCMAKE_PREFIX_PATH={self.options.prefix}"] if self.options.prefix else []
        status, output, _ = self.run(CONFIGURE + extra, folder=self.tree)
        if status != 0:
            raise Refused(f"cmake failed in {self.tree}:\n{output}")
        self.go_by_times()

    def go_by_times(self):
        """ninja must not take a command for a new one because it names another folder."""
        rules = self.build / "CMakeFiles/rules.ninja"
        rules.write_text(re.sub(r"(?m)^(rule .*)$(?!\n  generator = 1)", r"\1\n  generator = 1", rules.read_text()))

    def ninja(self, targets):
        return self.run(["ninja", "-j", str(self.options.build_jobs), *targets])

    def test(self, name, seconds):
        return self.run(["ctest", "-R", f"^{re.escape(name)}$", "--output-on-failure"], seconds, limited=True)


class Test:
    def __init__(self, name, targets):
        self.name, self.targets = name, targets
        self.headers, self.seconds, self.compile_seconds = set(), None, 0.0


def tests_of(base, options):
    """The tests that may catch a mutant, with what has to be built for each."""
    _, text, _ = base.run(["ctest", "--show-only=json-v1"])
    targets = {line.split(":")[0] for line in base.run(["ninja", "-t", "targets", "all"])[1].split("\n")}
    tests = []
    for test in json.loads(text[text.index("{"):])["tests"]:
        properties = {p["name"]: p["value"] for p in test["properties"]}
        if "gpu" in properties.get("LABELS", []) or NOT_BEHAVIOUR.match(test["name"]):
            continue
        if not re.search(options.tests, test["name"]):
            continue
        built = [os.path.relpath(a, base.build) for a in test.get("command", []) if a.startswith(str(base.build))]
        own = [test["name"]] if test["name"] in targets else []
        tests.append(Test(test["name"], own + [b for b in built if b in targets and not own]))
    if not tests:
        raise Refused(f"--tests {options.tests} matches no test")
    return tests


def find_headers(base, tests):
    """Which kernels each program includes, and how long its objects took to compile."""
    _, text, _ = base.run(["ninja", "-t", "deps"])
    by_name = {test.name: test for test in tests}
    test = None
    for line in text.split("\n"):
        if line and not line.startswith(" "):
            folder = re.search(r"/([^/]+)\.dir/", line.split(":")[0])
            test = by_name.get(folder.group(1)) if folder else None
        elif test and line.strip().endswith(".cuh"):
            path = os.path.normpath(base.build / line.strip())
            test.headers.add(os.path.relpath(path, base.tree))
    for line in (base.build / ".ninja_log").read_text().split("\n")[1:]:
        fields = line.split("\t")
        folder = re.search(r"/([^/]+)\.dir/", fields[3]) if len(fields) == 5 else None
        if folder and folder.group(1) in by_name:
            by_name[folder.group(1)].compile_seconds += (int(fields[1]) - int(fields[0])) / 1000


def prepare(options, folder):
    """The copy that others are copies of, built, and its tests, with how long each takes there. Tests that fail there
    can catch nothing, and are left out."""
    base = Copy(folder, 0, options)
    chosen = [os.environ.get(f"CONV_FFT_TEST_{name}") or "usual" for name in ("SEED", "SHARE")]
    times = folder / f"times_{'_'.join(chosen)}.json"  # other cases take other times, and one of them may fail by itself
    top = [entry.name for entry in os.scandir(ROOT)]
    changed = mirror(ROOT, base.tree, skip=[n for n in top if n.startswith("build") or n not in PARTS] + ["build"])
    known = json.loads(times.read_text()) if times.exists() else {}
    for path in changed:  # a program of the tests concerns itself alone, all else may concern every test
        own = [name for name in known if path.stem.startswith("test_") and name.endswith(path.stem)]
        for name in [] if path.parent.name == "mutants" else own or list(known):
            del known[name]
    if changed or not (base.build / "build.ninja").exists():
        print(f"{base.tree}: {len(changed)} files are new", flush=True)
        base.configure()
    tests = tests_of(base, options)
    print(f"building {len(tests)} tests", flush=True)
    start = time.monotonic()
    status, output, _ = base.run(["ninja", "-j", str(options.jobs * options.build_jobs), "conv_fft",
                                  *sorted({t for test in tests for t in test.targets})])
    if status != 0:
        raise Refused(f"the tree does not build in {base.tree}:\n{output[-4000:]}")
    base.go_by_times()  # ninja may have called cmake
    print(f"built in {time.monotonic() - start:.0f} s", flush=True)
    tests = tests_of(base, options)  # now that programs are there, ctest knows their commands
    find_headers(base, tests)
    unknown = [test for test in tests if test.name not in known]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for test, (status, output, seconds) in zip(unknown, pool.map(lambda t: base.test(t.name, 1800), unknown)):
            known[test.name] = seconds if status == 0 else None
            times.write_text(json.dumps(known, indent=1))
            if status != 0:
                print(f"{test.name} fails without any mutant, and is left out:\n{output[-2000:]}", flush=True)
    for test in tests:
        test.seconds = known[test.name]
    return base, [test for test in tests if test.seconds is not None]


def order(mutant, tests):
    """The tests that can catch it, in the order in which they run."""
    cost = lambda test: test.seconds + test.compile_seconds
    emulator = sorted((t for t in tests if t.headers), key=cost) + [t for t in tests if COMPILES_ITSELF.search(t.name)]
    if mutant.is_kernel:
        return [t for t in emulator if mutant.path in t.headers or COMPILES_ITSELF.search(t.name)]
    plain = [t for t in tests if t not in emulator]
    rank = {name: i for i, name in enumerate(FIRST)}
    return sorted(plain, key=lambda t: (rank.get(t.name, len(FIRST)), t.seconds)) + emulator


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
    """The table, what it comes to, and the survivors last. Whether all is well."""
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


# ----------------------------------------------------------------------------------------------------------- self-test

def self_check():
    """What is wrong with the lists, or with this program."""
    hand = read_hand(HAND.read_text(), lambda path: (ROOT / path).read_text())
    read_equivalent(EQUIVALENT.read_text())
    if len(hand) < 25:
        yield f"tests/mutants/hand.txt has {len(hand)} mutants; it must have at least 25"
    expected = [
        ("int f(void) {\n    return a + 1;\n}\n", {("+", "-"), ("1", "2"), ("1", "0")}),
        ("/* a + 1 */ const char *a = \"b + 1\"; // 1\n", set()),
        ("#define A 1\n#define B(x) \\\n    (x + 1)\n", set()),
        ("    cf_fail(A, \"x\", (a + 1) * 2);\n    static_assert(a < 3, \"\");\n", set()),
        ("#ifndef CF_SIMT\na + b;\n#else\na - b;\n#endif\na * b;\n", {("-", "+"), ("*", "+")}),
        ("#ifdef CF_SIMT\na + b;\n#else\na - b;\n#endif\n", {("+", "-")}),
        ("x = f(-y, !z);\n", {("-", ""), ("!", "")}),
        ("{\n    f(x);\n    free(x);\n    int y = x;\n    return y;\n}\n", {("f(x);", ";")}),
        ("{\n    if (x)\n        y = z;\n}\n", {("y = z;", ";")}),
        ("a <= b;\n", {("<=", "<")}),
        ("double x = 1.5 + 0x1p-3f;\n", {("+", "-")}),
    ]
    for text, wanted in expected:
        found = {(old, new) for _, old, new, _ in changes_in(text)}
        if found != wanted:
            yield f"expected {sorted(wanted)}, found {sorted(found)} in\n{text}"
    texts = {"a.c": "int a;\n    return a + b;\nint b;\n"}
    moved = {"b.c": "int c;\n" + texts["a.c"]}
    if sorted(mechanical(texts)) != sorted(mechanical(moved)):
        yield "the ids of mechanical mutants change with the name of the file, or with lines that are far away"
    for bad, wanted in [("== a\nfile x\nbreaks y\nneeds z\n- none\n", "stands 0 times"),
                        ("== a\nfile x\nbreaks y\nneeds z\n- t\n", "stands 2 times"),
                        ("== a\nfile x\nneeds z\n- one\n", "no line 'breaks'"), ("what\n", "is neither of"),
                        ("== a\nfile x\nbreaks y\nneeds z\n- one\n" * 2, "is there twice")]:
        try:
            read_hand(bad, lambda path: "one t t")
            yield f"taken without complaint:\n{bad}"
        except Refused as refused:
            if wanted not in str(refused):
                yield f"expected '{wanted}' of\n{bad}\nand not: {refused}"


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
