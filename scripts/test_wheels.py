#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the wheels of a folder that scripts/wheels.py has filled: scripts/test_wheels.py DIR.

- Each library exports the public functions and nothing else. It needs glibc alone.
- The program and the module run and compute on two threads. The wheel of another architecture runs in qemu, with the
  Python and glibc of a Debian that debootstrap unpacks into DIR/ARCHITECTURE/system. A machine that cannot do that
  prints SKIPPED and the reason.
- Another OpenMP runtime in the same process, LLVM's or GNU's, loaded before or after, changes no result. It is skipped
  by name where it is not installed.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
MIRROR = os.environ.get("MIRROR", "http://deb.debian.org/debian")
# Every output is a sum of halves. OPENMP names a library with an OpenMP runtime, and WHEN says when it is used.
LAYER = """
import array, ctypes, os
def use_other():
    library = ctypes.CDLL(os.environ["OPENMP"])
    library.omp_get_max_threads.restype = ctypes.c_int
    print("other runtime: %d threads" % library.omp_get_max_threads())
    BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    ran = []
    if hasattr(library, "GOMP_parallel"):
        library.GOMP_parallel(BODY(lambda _: ran.append(1)), None, 2, 0)
        print("other runtime: a region ran %d times" % len(ran))
def use_ours():
    plan = conv_fft.Plan("in=8x16x32x32 out=16 kernel=9x9 pad=same", "cpu")
    x, w = array.array("f", [1] * 8 * 16 * 1024), array.array("f", [0.5] * 16 * 16 * 81)
    y = array.array("f", [9]) * (8 * 16 * 1024)
    at = lambda values: values.buffer_info()[0]
    workspace = ctypes.create_string_buffer(plan.workspace[1] or 1)
    lib = conv_fft._library
    for _ in range(20):
        lib.check(lib.lib.conv_fft_forward(plan.handle, at(x), at(w), None, at(y), ctypes.addressof(workspace),
                                           plan.workspace[1], None))
    print("y = %.2f" % y[16 * 32 + 16])
when = os.environ.get("WHEN", "")
if when == "before": use_other()
if when == "registered":
    flag = ctypes.c_ulong(0xCAFE5EED)
    os.environ["__KMP_REGISTERED_LIB_%d" % os.getpid()] = "%#x-%x-other.so" % (ctypes.addressof(flag), flag.value)
import conv_fft
print(conv_fft.context("cpu").description)
use_ours()
if when in ("before", "after"): use_other(); use_ours()
print("tasks: %d" % len(os.listdir("/proc/self/task")))
"""


def fail(text):
    sys.exit("test_wheels.py: " + text)


def run(*command, environment=None):
    words = [str(word) for word in command]
    clean = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "OMP_NUM_THREADS": "2", **(environment or {})}
    ended = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, env=clean,
                           timeout=300, cwd="/")
    if ended.returncode != 0:
        fail("status %d of %s\n%s%s" % (ended.returncode, " ".join(words), ended.stdout, ended.stderr))
    return ended.stdout


def check_library(file):
    symbols = run("readelf", "--wide", "--dyn-syms", file)
    exported = sorted({words[7].partition("@")[0] for words in map(str.split, symbols.splitlines())
                       if len(words) == 8 and words[0].rstrip(":").isdigit() and words[6] != "UND"})
    public = (ROOT / "tests" / "checks" / "exported_symbols.txt").read_text().split()
    if exported != public:
        fail("%s exports other symbols than the public ones: %s" % (file, sorted(set(exported) ^ set(public))))
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", file)))
    glibc = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux.*\.so\.\d")
    other = [name for name in needed if not glibc.fullmatch(name)]
    if other:
        fail("%s needs %s, which is not in the wheel" % (file, other))


def system_of(arch, folder):
    """A folder with the Python and glibc of another architecture, or why there is none."""
    root = folder / arch / "system"
    if (root / "complete").exists():
        return root, ""
    for tool in "qemu-" + arch, "debootstrap":
        if not shutil.which(tool):
            return None, "there is no " + tool
    if os.geteuid() != 0:
        return None, "debootstrap needs root"
    shutil.rmtree(root, ignore_errors=True)
    made = subprocess.run(["debootstrap", "--arch", DEBIAN[arch], "--foreign", "--variant=minbase", "--include=python3",
                           "bookworm", str(root), MIRROR], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if made.returncode != 0:
        return None, "debootstrap: " + made.stdout.strip().rpartition("\n")[2]
    for package in sorted((root / "var" / "cache" / "apt" / "archives").glob("*.deb")):
        run("dpkg-deb", "--extract", package, root)
    (root / "complete").touch()
    return root, ""


def check_runs(arch, site, folder):
    """The program and the module of the unpacked wheel run, and compute on two threads."""
    wrap, python = [], sys.executable
    if arch != os.uname().machine:
        root, missing = system_of(arch, folder)
        if missing:
            print("test-wheels: SKIPPED: %s: %s" % (arch, missing))
            return
        wrap, python = ["qemu-" + arch, "-L", root], root / "usr" / "bin" / "python3"
    version = run(*wrap, site / "conv_fft" / "bin" / "conv-fft", "--version")
    explained = run(*wrap, site / "conv_fft" / "bin" / "conv-fft", "explain", "--file", "networks/causal.txt")
    said = run(*wrap, python, "-c", LAYER, environment={"PYTHONPATH": str(site)})
    if not version.startswith("conv-fft ") or "staged" not in explained:
        fail("the program of %s prints\n%s%s" % (arch, version, explained))
    if not re.search(r"^CPU, .*, 2 threads, ", said, re.M) or "y = 648.00" not in said:
        fail("the module of %s does not compute on two threads:\n%s" % (arch, said))
    if int(re.search(r"tasks: (\d+)", said)[1]) < 2:
        fail("the module of %s has started no thread:\n%s" % (arch, said))
    print("test-wheels: %s: program and module run%s: %s" % (arch, " in qemu" if wrap else "", said.split("\n")[0]))


def check_other_openmp(site):
    """Other OpenMP runtimes in the process of the module."""
    names = ["libgomp.so.1", *sorted(map(str, Path("/usr/lib").glob("llvm-*/lib/libomp.so.5")))]
    for name in names:
        for when in "before", "after":
            environment = {"PYTHONPATH": str(site), "OPENMP": name, "WHEN": when}
            if subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL(%r)" % name], check=False,
                              stderr=subprocess.DEVNULL).returncode != 0:
                print("test-wheels: SKIPPED: there is no " + name)
                break
            said = run(sys.executable, "-c", LAYER, environment=environment)
            if said.count("y = 648.00") != 2 or "other runtime: a region ran 2 times" not in said:
                fail("with %s, used %s:\n%s" % (name, when, said))
            print("test-wheels: with %s, used %s: both compute" % (name, when))
    # A static LLVM runtime of another library has left its mark. A second one that finds it ends the process.
    said = run(sys.executable, "-c", LAYER, environment={"PYTHONPATH": str(site), "WHEN": "registered"})
    if "y = 648.00" not in said:
        fail("with another static LLVM runtime:\n%s" % said)
    print("test-wheels: with another static LLVM runtime: computes")
    if len(names) == 1:
        print("test-wheels: SKIPPED: there is no LLVM libomp in /usr/lib/llvm-*")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1]).resolve()
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        fail("there is no wheel in %s" % folder)
    for wheel in wheels:
        arch = next(name for name in DEBIAN if wheel.stem.endswith(name))
        with tempfile.TemporaryDirectory() as temporary, zipfile.ZipFile(wheel) as archive:
            site = Path(temporary)
            archive.extractall(site)
            for file in (site / "conv_fft" / "bin" / "conv-fft", site / "conv_fft" / "lib/conv_fft/compile-kernel"):
                file.chmod(0o755)
            if not any(name.endswith(".data/data/share/man/man1/conv-fft.1") for name in archive.namelist()):
                fail("%s has no manual page" % wheel.name)
            check_library(site / "conv_fft" / "lib" / "libconv_fft.so")
            check_runs(arch, site, folder)
            if arch == os.uname().machine:
                check_other_openmp(site)
    print("test-wheels: passed: " + ", ".join(wheel.name for wheel in wheels))


if __name__ == "__main__":
    main()
