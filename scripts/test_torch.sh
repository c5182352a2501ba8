#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/test_torch.sh WHEEL [PYTEST ARGUMENT...]
#
# Runs the tests of the Python package with torch for CPUs. The first run makes a Debian 13 with torch 2.6 in a folder
# (1.9 GB; needs root, debootstrap and Debian's archive). Later runs use that folder again.
#
#     CONV_FFT_TORCH_ROOT     the folder; not set: build/torch-root
#     MIRROR                  another archive than deb.debian.org
#     CONV_FFT_TEST_REQUIRE   a list of words; with the word torch, a machine that cannot make the folder is an error
#
# On a machine that cannot make the folder it prints `test-torch: SKIPPED: reason` and succeeds.
set -eu
release=trixie
packages='python3-torch python3-numpy python3-pytest python3-pip python3-venv python3-setuptools'
packages="$packages libpython3-dev libtorch-dev g++"
mirror=${MIRROR:-http://deb.debian.org/debian}
source=$(cd "$(dirname "$0")/.." && pwd)
root=${CONV_FFT_TORCH_ROOT:-$source/build/torch-root}
# The list of the root's packages. It is the last file of a new root, so a root that has it is complete.
stamp="$release $packages"

fail() { echo "test_torch.sh: $1" >&2 && exit 1; }
skip() {
    echo "test-torch: SKIPPED: $1"
    case " ${CONV_FFT_TEST_REQUIRE:-} " in *' torch '*) exit 1 ;; esac
    exit 0
}

[ $# -ge 1 ] || { sed -n '3,13s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
[ -f "$1" ] || fail "WHEEL is '$1': there is no such file"
wheel=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
case $root in
/*[!/]*) ;;
*) fail "CONV_FFT_TORCH_ROOT is '$root': it must be an absolute path, and not /" ;;
esac
[ "$(id -u)" -eq 0 ] || skip 'only root can make a Debian and change into it'
unshare --mount true 2>/dev/null || skip 'this machine does not let root mount (unshare --mount failed)'

# The mounts are in a namespace of their own. They end with the command, and no other process sees them.
inside() {
    unshare --mount sh -euc '
        root=$1 && shift
        mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev"
        exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            DEBIAN_FRONTEND=noninteractive "$@"' sh "$@"
}

fill_root() {
    rm -rf --one-file-system "$new" && mkdir -m 755 "$new"
    debootstrap --variant=minbase "$release" "$new" "$mirror" &&
        inside "$new" apt-get install -y --no-install-recommends $packages
}

# A root is made under another name and renamed when it is complete. If the archive does not answer, it is asked again.
make_root() {
    command -v debootstrap >/dev/null || skip 'debootstrap is missing (apt-get install debootstrap)'
    mkdir -p "$(dirname "$root")"
    new=$(mktemp -d "$root.new-XXXXXX")
    trap 'rm -rf --one-file-system "$new"' EXIT
    echo "test-torch: making $root: Debian ($release) with $packages"
    fill_root >"$root.log" 2>&1 || fill_root >>"$root.log" 2>&1 ||
        skip "the root could not be made; the last line of $root.log: $(tail -n 1 "$root.log")"
    inside "$new" apt-get clean
    echo "$stamp" >"$new/conv_fft_root"
    mv -T "$new" "$root"
    trap - EXIT
}

if [ "$(cat "$root/conv_fft_root" 2>/dev/null)" = "$stamp" ]; then
    echo "test-torch: $root is used again"
else
    # A root with other packages is replaced. If the path is anything else, it is not removed.
    if [ -f "$root/conv_fft_root" ]; then
        rm -rf --one-file-system "$root"
    elif [ -n "$(ls -A "$root" 2>/dev/null)" ]; then
        fail "CONV_FFT_TORCH_ROOT is '$root': a folder that this script did not make; name a new one"
    fi
    make_root
fi

# Each run has its own copy of the tree and its own environment, so that parallel runs do not disturb each other.
run=$(mktemp -d "$root/run-XXXXXX")
trap 'rm -rf --one-file-system "$run"' EXIT
in=/$(basename "$run")
(cd "$source" && tar -c --exclude=./.git --exclude='./build*' --exclude=__pycache__ .) | tar -x -C "$run"
cp "$wheel" "$run/"
inside "$root" python3 -m venv --system-site-packages "$in/venv"
inside "$root" "$in/venv/bin/python" -m pip install --quiet --no-index --no-deps "$in/$(basename "$wheel")"
inside "$root" env "CONV_FFT_WHEEL=$in/$(basename "$wheel")" "CONV_FFT_TEST_SEED=${CONV_FFT_TEST_SEED:-1}" \
    CONV_FFT_TEST_REQUIRE=torch PATH="$in/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    sh -euc 'cd "$1" && shift && exec python -m pytest -q "$@"' sh "$in" bindings/python/tests "$@"
