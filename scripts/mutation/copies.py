# SPDX-License-Identifier: Apache-2.0
"""Copies of the tree with their build folders, for scripts/mutants.py, and the tests that are built there."""
import concurrent.futures
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from mutation.faults import ROOT, Refused

BUILD = "build/dev"
# The parts of the tree that a build and its tests need.
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
MEMORY, FILE = 8 << 30, 1 << 30  # bytes that a process of a mutant may have, and write to a file


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
    """End all started processes. Each is in a session of its own."""
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
    times = folder / f"times_{'_'.join(chosen)}.json"  # other cases take other times, and one may fail without a fault
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
