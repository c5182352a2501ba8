#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# format.sh ROOT: every source is as clang-format leaves it. 77, which CTest counts as skipped, without that version.
set -eu
cd "$1"
command -v clang-format-14 >/dev/null || { echo "clang-format-14 is not installed" && exit 77; }
scripts/sources.sh | xargs clang-format-14 --dry-run -Werror
