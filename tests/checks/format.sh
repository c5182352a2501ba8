#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# format.sh ROOT: every source is as clang-format leaves it. 77, which CTest counts as skipped, without that version.
set -eu
cd "$1"
command -v clang-format-14 >/dev/null || { echo "clang-format-14 is not installed" && exit 77; }
status=0
for source in $(scripts/sources.sh); do
    clang-format-14 --dry-run -Werror "$source" 2>/dev/null || { echo "$source: run make format" && status=1; }
done
exit $status
