#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# exported_symbols.sh LIBRARY: what the shared library exports is what exported_symbols.txt lists, no less and no more.
set -eu
list=$(dirname "$0")/exported_symbols.txt
nm -D --defined-only "$1" | awk '{ print $NF }' | LC_ALL=C sort | diff -u "$list" -
