#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""debian.py BUILD WORK

CPack makes the Debian packages of a build. Their names, dependencies and files are as listed here, no file is in two of
them, and a program compiles against their unpacked files and runs. VERSION and ABI in the environment are those of the
library, CC is the compiler. Status 77 (skipped): this machine has no dpkg-shlibdeps or no `file`.
"""
import fnmatch
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

BUILD, WORK = (Path(argument).resolve() for argument in sys.argv[1:3])
HERE = Path(__file__).resolve().parent
VERSION, ABI = os.environ["VERSION"], os.environ["ABI"]
LIBRARY = "libconv-fft" + ABI
# The packages: what they depend on, and their files below /usr. LIB is the folder of libraries.
DEPENDS = {LIBRARY: ["libc6 (>= *)", "libgomp1 (>= *)", "libjansson4 (>= *)", "zlib1g (>= *)"],
           "libconv-fft-dev": ["%s (= %s)" % (LIBRARY, VERSION)],
           "conv-fft-tools": ["libc6 (>= *)", "libjansson4 (>= *)", "%s (>= %s)" % (LIBRARY, VERSION)]}
FILES = {LIBRARY: ["LIB/conv_fft/compile-kernel", "LIB/libconv_fft.so." + VERSION, "LIB/libconv_fft.so." + ABI],
         "libconv-fft-dev": ["include/conv_fft.h", "include/fbfft.h", "LIB/libconv_fft.so", "LIB/pkgconfig/conv_fft.pc",
                             "LIB/cmake/ConvFFT/ConvFFT*.cmake"],
         "conv-fft-tools": ["bin/conv-fft", "share/conv_fft/networks/*.txt", "share/conv_fft/tuning/*/*.jsonl",
                            "share/man/man1/conv-fft.1", "share/bash-completion/completions/conv-fft"]}


def run(*command, **options):
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **options)
    if ended.returncode != 0:
        sys.exit("%s\n%s%sstatus %d" % (" ".join(map(str, command)), ended.stdout, ended.stderr, ended.returncode))
    return ended.stdout


def check_fields(package, name):
    fields = dict(re.findall(r"^(\w[\w-]*): (.*)", run("dpkg-deb", "--field", str(package)), re.M))
    found, wanted = sorted(fields.get("Depends", "").split(", ")), sorted(DEPENDS[name])
    if len(found) != len(wanted) or not all(map(fnmatch.fnmatchcase, found, wanted)):
        sys.exit("%s depends on %s; it shall be %s" % (name, found, wanted))
    if (fields["Version"], fields["Architecture"]) != (VERSION, run("dpkg", "--print-architecture").strip()):
        sys.exit("%s is of version %s, architecture %s" % (name, fields["Version"], fields["Architecture"]))


def files_of(package, name, libraries):
    """The files below /usr. Each must fit a pattern of FILES, and each pattern a file."""
    listing = run("sh", "-c", 'dpkg-deb --fsys-tarfile "$1" | tar --list', "sh", str(package)).split("\n")
    files = [file[len("./usr/"):] for file in listing if file and not file.endswith("/")]
    patterns = [pattern.replace("LIB", libraries) for pattern in FILES[name]] + ["share/doc/%s/copyright" % name]
    stray = [file for file in files if not any(fnmatch.fnmatchcase(file, pattern) for pattern in patterns)]
    missed = [pattern for pattern in patterns if not fnmatch.filter(files, pattern)]
    if stray or missed:
        sys.exit("%s: files that are not listed: %s; listed files that are missing: %s" % (name, stray, missed))
    return files


def check_consumer(root, libraries):
    """The unpacked packages serve a compiler, and the program runs."""
    program = WORK / "consumer"
    environment = {**os.environ, "PKG_CONFIG_PATH": str(root / "usr" / libraries / "pkgconfig"),
                   "LD_LIBRARY_PATH": str(root / "usr" / libraries)}
    flags = run("pkg-config", "--cflags", "--libs", "conv_fft", env=environment).split()
    run(os.environ.get("CC", "cc"), str(HERE / "consumer.c"), "-o", str(program), *flags, "-lm")
    if "libconv_fft %s: as expected" % VERSION not in run(str(program), env=environment):
        sys.exit("the consumer of the packages prints something else")
    if run(str(root / "usr" / "bin" / "conv-fft"), "--version", env=environment) != "conv-fft %s\n" % VERSION:
        sys.exit("the program of the packages prints another version than " + VERSION)


def main():
    missing = [tool for tool in ("dpkg-shlibdeps", "file") if not shutil.which(tool)]
    if missing:
        print("skipped: CPack needs %s (Debian: dpkg-dev, file)" % " and ".join(missing))
        return 77
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    run("cpack", "--config", str(BUILD / "CPackConfig.cmake"), "-B", str(WORK / "packages"))
    packages = {package.name.split("_")[0]: package for package in (WORK / "packages").glob("*.deb")}
    if sorted(packages) != sorted(DEPENDS):
        sys.exit("CPack made %s; it shall make %s" % (sorted(packages), sorted(DEPENDS)))
    libraries = re.search(r"^CMAKE_INSTALL_LIBDIR:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)[1]
    files = []
    for name, package in packages.items():
        check_fields(package, name)
        files += files_of(package, name, libraries)
        run("dpkg-deb", "--extract", str(package), str(WORK / "root"))
    if len(files) != len(set(files)):
        sys.exit("files in two packages: %s" % sorted(file for file in files if files.count(file) > 1))
    if "ldconfig" not in run("dpkg-deb", "--info", str(packages[LIBRARY]), "postinst"):
        sys.exit(LIBRARY + " does not run ldconfig")
    check_consumer(WORK / "root", libraries)
    return 0


if __name__ == "__main__":
    sys.exit(main())
