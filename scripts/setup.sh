#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/setup.sh [build] [test] [package] [python] [wheels] [torch] [bench] [plots]
#
# Makes sure that the packages of the named groups are installed. Root (or a sudo without password) installs missing
# ones. Other users get the command to run, and nothing is changed. Only make itself must be installed before:
# apt-get install make.
set -eu

# group  Debian 12               Ubuntu 24.04            what for
packages='
build    gcc                     gcc                     # any C11 compiler does
build    libc6-dev               libc6-dev
build    cmake                   cmake                   # 3.24 or newer
build    ninja-build             ninja-build
build    pkg-config              pkg-config
build    libopenblas0-openmp     libopenblas0-openmp     # products; opened at run time
build    libpng-dev              libpng-dev              # pictures of the demo
build    libjansson-dev          libjansson-dev          # tuning records
build    zlib1g-dev              zlib1g-dev              # cached kernels, checksums of records
test     libcmocka-dev           libcmocka-dev
test     g++                     g++                     # the header as C++17
test     clang                   clang                   # thread sanitizer, with the next two
test     libclang-rt-14-dev      libclang-rt-18-dev
test     libomp-dev              libomp-dev
test     clang-format-14         clang-format-14
test     python3                 python3                 # checks of the source tree
test     python3-venv            python3-venv            # pip for NVRTC, where this system has none (scripts/nvrtc.sh)
test     dpkg-dev                dpkg-dev                # the dependencies of Debian packages, with the next
test     file                    file
package  dpkg-dev                dpkg-dev                # the same
package  file                    file
python   python3-venv            python3-venv            # pip for the environment that builds and tests the package
wheels   qemu-user               qemu-user               # runs the wheel of another architecture
wheels   debootstrap             debootstrap             # Python and glibc of that architecture
torch    debootstrap             debootstrap             # the Debian of make test-torch and make test-package
bench    debian-archive-keyring  debian-archive-keyring  # scripts/with_onednn.sh fetches oneDNN, a baseline
plots    python3-matplotlib      python3-matplotlib
'

groups=${*:-build}
for group in $groups; do
    case $group in
    build | test | package | python | wheels | torch | bench | plots) ;;
    *)
        echo "setup.sh: unknown group '$group' (build, test, package, python, wheels, torch, bench, plots)" >&2
        exit 2
        ;;
    esac
done

# The packages of the groups, from the column of this system.
names() {
    column=2
    [ "$1" != ubuntu ] || column=3
    for group in $groups; do
        echo "$packages" | awk -v group="$group" -v column="$column" '$1 == group { print $column }'
    done
}

system=$(. /etc/os-release 2>/dev/null && echo "${ID:-unknown}") || system=unknown
wanted=$(names "$system")
if ! command -v dpkg-query >/dev/null; then
    echo "setup.sh: this system has no dpkg, so nothing is checked. On Debian 12 the packages are:" $wanted >&2
    exit 0
fi

missing=
for name in $wanted; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing="$missing $name"
done
[ -n "$missing" ] || exit 0

install="apt-get install -y --no-install-recommends$missing"
as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
        echo "setup.sh: these packages are missing; install them and try again (nothing has been changed):" >&2
        echo "    sudo apt-get update && sudo $install" >&2
        exit 1
    fi
    as_root='sudo -n'
fi

echo "setup.sh: installing$missing"
apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300"
# The package lists are fetched only if a package is not in them, or if the archive no longer has its version.
$apt install -s $missing >/dev/null 2>&1 || $apt update
$apt install -y --no-install-recommends $missing || { $apt update && $apt install -y --no-install-recommends $missing; }
