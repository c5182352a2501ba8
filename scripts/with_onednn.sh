#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/with_onednn.sh PROGRAM [ARGUMENT...]
#
# Runs PROGRAM so that it finds oneDNN 3 with OpenMP. The first run fetches the one of Debian 13 into build/onednn
# (21 MB; needs apt-get, but no root), with the C library that it was built for, since that of Debian 12 is older. The
# loader of that C library starts PROGRAM, a binary. Nothing is installed, and programs that PROGRAM starts are not
# affected.
#
# MIRROR in the environment: another archive than deb.debian.org.
#
# On a machine that cannot have oneDNN, it prints `oneDNN: SKIPPED: reason` to stderr, and PROGRAM runs without it.
set -eu
[ $# -ge 1 ] || { sed -n '3,12s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
release=trixie
packages='libdnnl3.6 libgomp1 libstdc++6 libgcc-s1 libc6'
headers=libdnnl-dev # for tests/checks/onednn.py
mirror=${MIRROR:-http://deb.debian.org/debian}
keys=/usr/share/keyrings/debian-archive-keyring.gpg
place=$(cd "$(dirname "$0")/.." && pwd)/build/onednn
# The list of packages. It is the last file of a new folder, so a folder that has it is complete.
stamp="$release $packages $headers"

run_without() {
    echo "oneDNN: SKIPPED: $1; results have no rows of oneDNN" >&2
    shift
    exec "$@"
}

# apt-get with its own lists, sources and cache, below the new folder.
apt() {
    apt-get -q -o "Dir::State=$new/apt" -o Dir::State::Status=/dev/null -o "Dir::Cache=$new/apt" \
        -o "Dir::Etc::SourceList=$new/apt/sources.list" -o Dir::Etc::SourceParts=- -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@"
}

fetch() {
    chmod 755 "$new" && mkdir -p "$new/apt/lists/partial" "$new/apt/archives/partial" "$new/root" &&
        echo "deb [signed-by=$keys] $mirror $release main" >"$new/apt/sources.list" &&
        apt update --error-on=any && (cd "$new/apt" && apt download $packages $headers) || return 1
    for package in "$new"/apt/*.deb; do
        dpkg-deb -x "$package" "$new/root" || return 1
    done
    rm -rf "$new/apt" "$new/root/usr/share" && echo "$stamp" >"$new/stamp"
}

if [ "$(cat "$place/stamp" 2>/dev/null)" != "$stamp" ]; then
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
        run_without 'this system has no apt-get and dpkg-deb' "$@"
    [ -e "$keys" ] || run_without "$keys is missing (apt-get install debian-archive-keyring)" "$@"
    mkdir -p "$(dirname "$place")"
    new=$(mktemp -d "$place.new-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    echo "oneDNN: fetching that of Debian ($release) into $place" >&2
    if ! fetch >"$place.log" 2>&1; then
        rm -rf "$new" && trap - EXIT
        run_without "it could not be fetched; $place.log says: $(grep '^[EW]:' "$place.log" | head -n 1)" "$@"
    fi
    rm -rf "$place"
    mv -T "$new" "$place" || rm -rf "$new" # another run was faster
    trap - EXIT
fi

program=$(command -v "$1") || program=
[ -f "$program" ] || { echo "with_onednn.sh: PROGRAM is '$1': there is no such file" >&2 && exit 1; }
shift
folder=$(dirname "$place"/root/usr/lib/*/libdnnl.so.3.6)
exec "$folder"/ld-linux*.so.* --library-path "$folder" "$program" "$@"
