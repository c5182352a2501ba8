#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readme_install.py ROOT BUILD WORK

What README.md says about installing, followed literally in a clean folder with an empty home: its commands, its C
example and its CMake file. Only `make install` is replaced by what it runs after it has built, cmake --install. Then
the commands that `make demo` prints at its end, with the programs of BUILD. CC in the environment is the compiler.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT, BUILD, WORK = (Path(argument).resolve() for argument in sys.argv[1:4])
HOME = WORK / "home"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def shell(commands, folder, environment=()):
    """The output of commands, without the search paths of this machine's user."""
    clean = {"PATH": os.environ["PATH"], "HOME": str(HOME), "LC_ALL": "C.UTF-8", "OMP_WAIT_POLICY": "passive",
             "CONV_FFT_CACHE_DIR": str(WORK / "cache"), **dict(environment)}
    ended = subprocess.run(["sh", "-euxc", commands], cwd=folder, env=clean, stdout=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        sys.exit("status %d of these commands of README.md or make demo:\n%s%s"
                 % (ended.returncode, commands, ended.stdout))
    return ended.stdout


def section(name):
    return re.search(r"^## %s\n(.*?)(?=^## )" % name, README, re.M | re.S).group(1)


def block(language, text):
    return re.search(r"^```%s\n(.*?)^```$" % language, text, re.M | re.S).group(1)


def commands(text):
    """The lines of indented blocks."""
    return re.findall(r"^    (.*)\n", text, re.M)


def replaced(line):
    """A command of README.md as it is run here. Other targets of make need other builds; they must exist."""
    if "conv-fft tune" in line:
        # On a busy host it may find no time that counts.
        return line + ' 2>$HOME/said || grep "other work on this host disturbed" $HOME/said'
    if re.match(r"make install PREFIX=\$HOME/\.local( |$)", line):
        return 'cmake --install "%s" --prefix $HOME/.local' % BUILD
    return 'make --directory "%s" --dry-run %s >recipe' % (ROOT, line[5:]) if line.startswith("make ") else line


def check_install():
    """The program of README.md runs twice, built by pkg-config and by CMake, and conv-fft is on the path."""
    install = section("Install")
    cmake = block("cmake", install)
    folder = WORK / "example"
    folder.mkdir()
    (folder / "example.c").write_text(block("c", section("C")))
    (folder / "CMakeLists.txt").write_text(cmake)
    lines = commands(re.sub(r"^```.*?^```$", "", install, flags=re.M | re.S))
    wanted = [line for line in lines if line.startswith(("make install", "cc ", "./example"))]
    if len(wanted) != 3:
        sys.exit("README.md no longer says how to install the library, and to build and run the example: %s" % lines)
    built = re.findall(r"# (cmake -.*)$", cmake, re.M)
    if len(built) != 2:
        sys.exit("README.md no longer says how to build the example with CMake: %s" % built)
    # As docs/troubleshooting.md says for programs that CMake installs.
    keep = "set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)"
    if "`%s`" % keep not in (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8"):
        sys.exit("docs/troubleshooting.md no longer has " + keep)
    cmake_too = built + ["cmake --install build --prefix installed", "installed/bin/example"]
    (folder / "CMakeLists.txt").write_text(cmake.replace("add_executable", keep + "\nadd_executable") +
                                           "install(TARGETS example)\n")
    said = shell("\n".join([*map(replaced, lines), "conv-fft --version", *cmake_too]) + "\n", folder)
    result = re.search(r"^It prints\n\n    (.*)\n", README, re.M).group(1)
    if said.count(result) != 3:
        sys.exit("the example of README.md does not print %r three times:\n%s" % (result, said))
    if "conv-fft " not in said:
        sys.exit("conv-fft --version prints %r" % said)


def check_demo():
    """The commands are found by asking make what it would run."""
    recipe = subprocess.run(["make", "--dry-run", "--no-print-directory", "demo"], cwd=ROOT, check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    printed = re.findall(r"^echo '    (.*)'$", recipe, re.M)
    if len(printed) != 3 or "--target train_digits conv-fft" not in recipe:
        sys.exit("make demo builds conv-fft and ends with three commands; it has %s:\n%s" % (printed, recipe))
    for line in printed:
        if line.startswith("make install "):
            shell(replaced(line), ROOT)
        elif not line.startswith("build/release/tools/conv-fft "):
            sys.exit("make demo prints %r, which it has not built" % line)
        else:
            said = shell(replaced(line.replace("build/release", str(BUILD), 1)), ROOT)
            if len(said.splitlines()) < 3:
                sys.exit("%s prints only\n%s" % (line, said))


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    HOME.mkdir(parents=True)
    (WORK / "cache").mkdir()
    check_install()
    check_demo()


if __name__ == "__main__":
    main()
