#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/test_packages.sh DIRECTORY
#
# Installs the Debian packages of DIRECTORY with apt in a minimal system of this machine's release, which debootstrap
# makes in a temporary folder (600 MB): first library and program alone, which must work without a compiler; then the
# headers, with which the example of README.md is built by pkg-config and by CMake. Then they are removed. It needs
# root, debootstrap and the archive.
#
#     MIRROR                  another archive than Debian's or Ubuntu's
#     CONV_FFT_TEST_REQUIRE   a list of words; with the word packages, a machine that cannot do this is an error
#
# On a machine that cannot make such a system it prints `test-package: SKIPPED: reason` and succeeds.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)

skip() {
    echo "test-package: SKIPPED: $1"
    case " ${CONV_FFT_TEST_REQUIRE:-} " in *' packages '*) exit 1 ;; esac
    exit 0
}

[ $# -eq 1 ] || { sed -n '3,14s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
[ -n "$(find "$1" -name '*.deb' 2>/dev/null)" ] || { echo "test_packages.sh: no packages in $1" >&2 && exit 1; }
[ "$(id -u)" -eq 0 ] || skip 'only root can make a Debian and change into it'
unshare --mount true 2>/dev/null || skip 'this machine does not let root mount (unshare --mount failed)'
command -v debootstrap >/dev/null || skip 'debootstrap is missing (apt-get install debootstrap)'
. /etc/os-release
case $ID in
debian) mirror=${MIRROR:-http://deb.debian.org/debian} components=main ;;
ubuntu) mirror=${MIRROR:-http://archive.ubuntu.com/ubuntu} components=main,universe ;;
*) skip "this system is $ID; packages are for the Debian or Ubuntu that they were built on" ;;
esac

root=$(mktemp -d "${TMPDIR:-/tmp}/conv_fft-packages-XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
log=$root/log

# The mounts are in a namespace of their own. They end with the command, and no other process sees them.
inside() {
    unshare --mount sh -euc '
        root=$1 && shift
        mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev"
        exec chroot "$root" env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            DEBIAN_FRONTEND=noninteractive OMP_NUM_THREADS=2 "$@"' sh "$root" "$@"
}

# Packages by name, or files of /packages by pattern.
install() {
    inside sh -c "cd /packages && apt-get install -y --no-install-recommends $*" >>"$log" 2>&1 ||
        { cat "$log" && echo "test_packages.sh: apt cannot install $*" >&2 && exit 1; }
}

echo "test-package: making $root: $ID $VERSION_CODENAME"
debootstrap --variant=minbase --components="$components" "$VERSION_CODENAME" "$root" "$mirror" >"$log" 2>&1 ||
    skip "the system could not be made; the last message: $(tail -n 1 "$log")"
mkdir "$root/packages" "$root/example"
find "$1" -name '*.deb' -exec cp {} "$root/packages/" \;

echo 'test-package: library and program'
install './libconv-fft[0-9]*.deb ./conv-fft-tools_*.deb'
inside conv-fft devices --threads 2 | tee "$root/devices"
grep -q '^CPU, .*, 2 threads, no OpenBLAS' "$root/devices"
inside conv-fft explain --device cpu --measure 1 in=1x4x32x32 out=4 kernel=9x9 pad=same >>"$log"
inside conv-fft explain --device cpu --file networks/causal.txt >>"$log"

echo 'test-package: headers'
install 'gcc libc6-dev pkg-config cmake make ./libconv-fft-dev_*.deb'
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$source/README.md" >"$root/example/example.c"
awk '/^```cmake$/ { on = 1; next } /^```$/ { on = 0 } on' "$source/README.md" >"$root/example/CMakeLists.txt"
inside sh -euxc 'cd /example
    cc example.c $(pkg-config --cflags --libs conv_fft) -o example && ./example
    cmake -B build >/dev/null && cmake --build build && build/example'

echo 'test-package: removal'
inside apt-get purge -y 'libconv-fft*' conv-fft-tools >>"$log" 2>&1
left=$(find "$root/usr" "$root/etc" \( -name '*conv_fft*' -o -name '*conv-fft*' \) -print)
[ -z "$left" ] || { echo "test_packages.sh: files are left: $left" >&2 && exit 1; }
echo 'test-package: passed'
