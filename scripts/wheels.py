#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds wheels that run with glibc 2.17 (2012) or newer, on any machine, for x86-64 and aarch64.

    scripts/wheels.py [--out DIR] [ARCHITECTURE...]

The compiler is clang from the Python package ziglang, which has the headers and link libraries of every glibc. zlib,
jansson and LLVM's OpenMP runtime are built from sources of fixed hashes and linked into libconv_fft. They are hidden:
the process may have other copies of them. `make wheels` runs this in an environment with ziglang, scikit-build-core
and auditwheel. What is built stays in DIR (default build/wheels), so a second run is faster.

    MIRROR   another archive than deb.debian.org
"""
import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MIRROR = os.environ.get("MIRROR", "http://deb.debian.org/debian")
GLIBC = "2.17"
ARCHITECTURES = ("x86_64", "aarch64")
# name, file of the archive, its SHA-256, the folders that are unpacked
SOURCES = (
    ("zlib", "pool/main/z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2",
     "71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1", ("",)),
    ("jansson", "pool/main/j/jansson/jansson_2.14.orig.tar.gz",
     "c739578bf6b764aa0752db9a2fdadcfe921c78f1228c7ec0bb47fa804c55d17b", ("",)),
    ("llvm", "pool/main/l/llvm-toolchain-19/llvm-toolchain-19_19.1.7.orig.tar.xz",
     "ae498f3bc58ae2d9f64ef5f0c035c4240152bf015a5b7738b15c22e93bdc97ce",
     ("openmp/", "cmake/", "compiler-rt/lib/builtins/cpu_model/")),
)
# file of LLVM, text, replacement
CHANGES = (
    # The runtime ends a process in which it finds another copy of itself, because two copies do not know each other's
    # threads. This copy serves nobody but libconv_fft, so it looks for copies under a name of its own.
    ("openmp/runtime/src/kmp_runtime.cpp", '"__KMP_REGISTERED_LIB_', '"__CONV_FFT_KMP_LIB_'),
)
# How CMake builds them. No compiler is named for the tests of LLVM: to look for one takes minutes.
SETTINGS = {
    "jansson": ("JANSSON_BUILD_DOCS=OFF", "JANSSON_WITHOUT_TESTS=ON", "JANSSON_EXAMPLES=OFF",
                "JANSSON_BUILD_SHARED_LIBS=OFF"),
    "llvm/openmp": ("LIBOMP_ENABLE_SHARED=OFF", "LIBOMP_OMPT_SUPPORT=OFF", "LIBOMP_OMPD_SUPPORT=OFF",
                    "LIBOMP_INSTALL_ALIASES=OFF", "OPENMP_STANDALONE_BUILD=ON", "OPENMP_ENABLE_OMPT_TOOLS=OFF",
                    "OPENMP_ENABLE_LIBOMPTARGET=OFF", "OPENMP_TEST_C_COMPILER=/bin/false",
                    "OPENMP_TEST_CXX_COMPILER=/bin/false"),
}
LICENCES = (("zlib", "LICENSE"), ("jansson", "LICENSE"), ("llvm", "openmp/LICENSE.TXT"))


def say(text):
    print("wheels.py: " + text, flush=True)


def run(*command, **options):
    """A command whose output is shown only if it fails."""
    words = [str(word) for word in command]
    ended = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if ended.returncode != 0:
        sys.exit("%s\nwheels.py: status %d of: %s" % (ended.stdout, ended.returncode, " ".join(words)))
    return ended.stdout


def sha256(file):
    with open(file, "rb") as stream:
        found = hashlib.sha256()
        for block in iter(lambda: stream.read(1 << 20), b""):
            found.update(block)
    return found.hexdigest()


def fetch(path, digest, folder):
    """The archive's file. It has this hash, or the program ends."""
    file = folder / Path(path).name
    if not file.exists():
        say("fetching %s/%s" % (MIRROR, path))
        part = file.with_suffix(".part")
        with urllib.request.urlopen("%s/%s" % (MIRROR, path), timeout=60) as stream, open(part, "wb") as kept:
            shutil.copyfileobj(stream, kept)
        part.rename(file)
    found = sha256(file)
    if found != digest:
        sys.exit("wheels.py: %s has the SHA-256 %s; it shall be %s. Remove it to fetch it again"
                 % (file, found, digest))
    return file


def unpack(file, folders, target):
    """The files of some folders, without the first part of their names."""
    new = target.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    with tarfile.open(file) as archive:
        for member in archive:
            name = member.name.partition("/")[2]
            if member.isfile() and name.startswith(folders) and ".." not in name.split("/"):
                (new / name).parent.mkdir(parents=True, exist_ok=True)
                (new / name).write_bytes(archive.extractfile(member).read())
                (new / name).chmod(0o755 if member.mode & 0o100 else 0o644)
    for path, text, replacement in CHANGES if target.name == "llvm" else ():
        content = (new / path).read_text(encoding="utf-8")
        if text not in content:
            sys.exit("wheels.py: %s has no %s" % (path, text))
        (new / path).write_text(content.replace(text, replacement), encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)


def sources(out):
    """The folder with the unpacked sources."""
    folder = out / "sources"
    folder.mkdir(parents=True, exist_ok=True)
    for name, path, digest, folders in SOURCES:
        file = fetch(path, digest, folder)
        stamp, state = folder / name / "unpacked", repr((digest, folders, CHANGES))
        if not stamp.exists() or stamp.read_text() != state:
            unpack(file, folders, folder / name)
            stamp.write_text(state)
    return folder


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def toolchain(arch, out):
    """CMake's description of the compiler, whose parts are small programs that call zig."""
    target = "%s-linux-gnu.%s" % (arch, GLIBC)
    # zig's own cache would be in the home folder.
    call = '#!/bin/sh\nZIG_GLOBAL_CACHE_DIR="%s" exec "%s" -m ziglang %%s "$@"\n' % (out / "zig", sys.executable)
    for name, command in (("cc", "cc -target " + target), ("c++", "c++ -target " + target), ("ar", "ar"),
                          ("ranlib", "ranlib")):
        write_program(out / arch / "bin" / name, call % command)
    file, tools, found = out / arch / "toolchain.cmake", out / arch / "bin", out / arch / "installed"
    lines = ["CMAKE_SYSTEM_NAME Linux", "CMAKE_SYSTEM_PROCESSOR " + arch, 'CMAKE_C_COMPILER "%s"' % (tools / "cc"),
             'CMAKE_CXX_COMPILER "%s"' % (tools / "c++"), 'CMAKE_AR "%s"' % (tools / "ar"),
             'CMAKE_RANLIB "%s"' % (tools / "ranlib"), 'CMAKE_FIND_ROOT_PATH "%s"' % found,
             "CMAKE_SHARED_LINKER_FLAGS_INIT -s", "CMAKE_EXE_LINKER_FLAGS_INIT -s",
             "CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER", "CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY",
             "CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY", "CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY"]
    if arch == platform.machine():
        lines.append("CMAKE_CROSSCOMPILING_EMULATOR env")  # its programs run here
    file.write_text("".join("set(%s)\n" % line for line in lines))
    return file


def libraries(arch, out, source, description):
    """zlib, jansson and libomp as static libraries, in the folder that is returned."""
    prefix, build = out / arch / "installed", out / arch / "build"
    made = prefix / "made"
    state = repr((SOURCES, CHANGES, SETTINGS, GLIBC))
    if made.exists() and made.read_text() == state:
        return prefix
    say("building zlib, jansson and the OpenMP runtime for " + arch)
    shutil.rmtree(prefix, ignore_errors=True)
    shutil.rmtree(build, ignore_errors=True)
    hidden = "-fvisibility=hidden"
    # Debian's zlib lacks files that its CMakeLists.txt names, so its own script configures it.
    shutil.copytree(source / "zlib", build / "zlib")
    tools = {"CC": "cc", "AR": "ar", "RANLIB": "ranlib"}
    environment = {**os.environ, **{name: str(out / arch / "bin" / tool) for name, tool in tools.items()},
                   "CFLAGS": "-O3 -fPIC " + hidden}
    run("./configure", "--static", "--prefix=%s" % prefix, cwd=build / "zlib", env=environment)
    run("make", "-j%d" % os.cpu_count(), "libz.a", cwd=build / "zlib", env=environment)
    run("make", "install", cwd=build / "zlib", env=environment)
    settings = ["-G", "Ninja", "-DCMAKE_TOOLCHAIN_FILE=%s" % description, "-DCMAKE_BUILD_TYPE=Release",
                "-DCMAKE_INSTALL_PREFIX=%s" % prefix, "-DCMAKE_INSTALL_LIBDIR=lib",
                "-DCMAKE_POSITION_INDEPENDENT_CODE=ON", "-DCMAKE_C_FLAGS=" + hidden, "-DCMAKE_CXX_FLAGS=" + hidden]
    for name, words in SETTINGS.items():
        run("cmake", *settings, *("-D" + word for word in words), "-S", source / name, "-B", build / name)
        run("cmake", "--build", build / name, "--target", "install", "--parallel", os.cpu_count())
    # What __builtin_cpu_supports() reads on x86, and zig's own support library lacks.
    model = source / "llvm" / "compiler-rt" / "lib" / "builtins" / "cpu_model" / "x86.c"
    objects = [build / "cpu_model.o"] if arch == "x86_64" else []
    for file in objects:
        run(out / arch / "bin" / "cc", "-O2", "-fPIC", hidden, "-c", model, "-o", file)
    run(out / arch / "bin" / "ar", "rcs", prefix / "lib" / "libcpu_model.a", *objects)
    for name, file in LICENCES:
        (prefix / "licences").mkdir(exist_ok=True)
        shutil.copyfile(source / name / file, prefix / "licences" / (name + ".txt"))
    made.write_text(state)
    return prefix


def wheel(arch, out, prefix, description):
    """The wheel of one architecture, in the folder `out`."""
    say("building the wheel for " + arch)
    defined = {"CMAKE_TOOLCHAIN_FILE": description, "OpenMP_C_FLAGS": "-fopenmp", "OpenMP_C_LIB_NAMES": "omp",
               "OpenMP_C_INCLUDE_DIR": prefix / "include", "OpenMP_omp_LIBRARY": prefix / "lib" / "libomp.a",
               "CMAKE_REQUIRE_FIND_PACKAGE_OpenMP": "ON",
               "CMAKE_C_STANDARD_LIBRARIES": prefix / "lib" / "libcpu_model.a",
               "CONV_FFT_LICENCES": prefix / "licences"}
    if arch != platform.machine() in ARCHITECTURES:  # the program of this machine prints the manual page
        defined["CONV_FFT_HOST_PROGRAM"] = out / platform.machine() / "build" / "conv_fft" / "tools" / "conv-fft"
    settings = ["build-dir=%s" % (out / arch / "build" / "conv_fft"), "install.strip=false"]
    settings += ["cmake.define.%s=%s" % pair for pair in defined.items()]
    environment = {**os.environ, "PKG_CONFIG_LIBDIR": str(prefix / "lib" / "pkgconfig"),
                   "_PYTHON_HOST_PLATFORM": "linux-" + arch}
    plain = out / arch / "plain"
    shutil.rmtree(plain, ignore_errors=True)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", plain,
        *("--config-settings=" + word for word in settings), ROOT, env=environment)
    # A file that needs another library is an error, and a newer glibc would show in the wheel's name.
    for old in out.glob("*_%s.whl" % arch):
        old.unlink()
    tools = Path(sys.executable).parent
    run(tools / "auditwheel", "repair", "--plat", "auto", "--wheel-dir", out, *plain.glob("*.whl"),
        env={**os.environ, "PATH": "%s:%s" % (tools, os.environ["PATH"])})
    (made,) = out.glob("*_%s.whl" % arch)
    glibc = min(int(minor) for minor in re.findall(r"manylinux_2_([0-9]+)_", made.name) or [99])
    if glibc > int(GLIBC.split(".")[1]):
        sys.exit("wheels.py: %s does not run with glibc %s" % (made.name, GLIBC))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "wheels")
    parser.add_argument("architectures", nargs="*", metavar="ARCHITECTURE",
                        help="%s (default: both); that of this machine is always built" % " or ".join(ARCHITECTURES))
    options = parser.parse_args()
    wrong = [arch for arch in options.architectures if arch not in ARCHITECTURES]
    if wrong:
        parser.error("ARCHITECTURE is %s; it must be %s" % (wrong[0], " or ".join(ARCHITECTURES)))
    out = options.out.resolve()
    source = sources(out)
    own, chosen = platform.machine(), options.architectures or ARCHITECTURES
    for arch in [own] * (own in ARCHITECTURES) + [arch for arch in chosen if arch != own]:
        description = toolchain(arch, out)
        wheel(arch, out, libraries(arch, out, source, description), description)
    for file in sorted(out.glob("*.whl")):
        say("made %s, %d bytes" % (file, file.stat().st_size))


if __name__ == "__main__":
    main()
