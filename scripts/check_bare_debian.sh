#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/check_bare_debian.sh DIRECTORY [TARGET...]
#
# Proves that the sources need nothing but make. It installs a minimal Debian 12 with debootstrap into DIRECTORY (new or
# empty; about 2 GB in the end), copies the tree there and runs `make TARGET` in it, by default demo and test. It needs
# root and debootstrap. MIRROR in the environment: another archive than deb.debian.org.
set -eu
mirror=${MIRROR:-http://deb.debian.org/debian}
source=$(cd "$(dirname "$0")/.." && pwd)

[ $# -ge 1 ] || { sed -n '3,7s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "check_bare_debian.sh: needs root (debootstrap, chroot)" >&2 && exit 1; }
command -v debootstrap >/dev/null || { echo "check_bare_debian.sh: apt-get install debootstrap" >&2 && exit 1; }
mkdir -p "$1"
root=$(cd "$1" && pwd)
shift
[ -z "$(ls -A "$root")" ] || { echo "check_bare_debian.sh: $root is not empty" >&2 && exit 1; }

debootstrap --variant=minbase --include=make bookworm "$root" "$mirror"

mkdir "$root/conv_fft"
(cd "$source" && tar -c --exclude=./.git --exclude='./build*' .) | tar -x -C "$root/conv_fft"

# The compilers' run-time libraries read /proc and /dev.
unmount() { umount "$root/dev" "$root/proc" 2>/dev/null || true; }
trap unmount EXIT
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
for target in ${*:-demo test}; do
    echo "== make $target in a bare Debian"
    chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin make -C /conv_fft "$target"
done
echo "== a bare Debian: make ${*:-demo test} succeeded"
