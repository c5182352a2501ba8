#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/nvrtc.sh PROGRAM
#
# Makes sure that the tests have NVRTC, CUDA's run-time compiler, which needs no GPU. PROGRAM is conv-fft, which finds
# the NVRTC of this machine. If there is none, pip installs one into build/nvrtc, where the tests look for it too.
# Prints `nvrtc` if NVRTC is available. If a machine cannot have it, writes the reason to stderr and succeeds.
set -eu
[ $# -eq 1 ] || { sed -n '3,7s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
[ -x "$1" ] || { echo "nvrtc.sh: PROGRAM is '$1': there is no such program" >&2 && exit 1; }
wanted=nvidia-cuda-nvrtc==13.0.88
place=$(cd "$(dirname "$0")/.." && pwd)/build/nvrtc
pip="$place/venv/bin/python -m pip"

skip() { echo "NVRTC: SKIPPED: $1; the tests that need it will be skipped" >&2 && exit 0; }
is_there() { "$@" devices | grep -q '^  NVRTC  *[0-9]'; }

# An NVRTC that this script has installed comes first, so that all tests of a tree use the same version.
folder=$place/lib
[ -e "$folder/libnvrtc.so.13" ] && [ "$(cat "$place/version" 2>/dev/null)" = "$wanted" ] && echo nvrtc && exit 0
is_there "$1" && echo nvrtc && exit 0

[ "$(uname -sm)" = 'Linux x86_64' ] || skip "pip has none for $(uname -sm)"
rm -rf "$place"
python3 -m venv "$place/venv" >&2
if ! $pip install --quiet --no-deps "$wanted" >&2; then
    # It is no error if the package index cannot be reached. If it answers, a package that cannot be installed is one.
    $pip download --quiet --no-deps --dest "$place/any" pip >/dev/null 2>&1 || skip 'pip reaches no package index'
    echo "nvrtc.sh: pip cannot install $wanted, as it says above" >&2 && exit 1
fi
library=$(find "$place/venv" -name libnvrtc.so.13)
ln -s "$(dirname "$library")" "$folder"
is_there env "CONV_FFT_LIBRARY_PATH=$folder" "$1" || {
    echo "nvrtc.sh: conv-fft finds no NVRTC in $folder, where pip has installed $wanted" >&2 && exit 1
}
echo "$wanted" >"$place/version"
echo nvrtc
