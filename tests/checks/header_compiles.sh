#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# header_compiles.sh HEADER...: each public header compiles alone, as C99, C11 and C++17, with every installed compiler.
set -eu
tried=' '

compile() { # COMPILER LANGUAGE STANDARD HEADER
    command -v "$1" >/dev/null || return 0
    "$1" -x "$2" -std="$3" -Wall -Wextra -pedantic -Werror -fsyntax-only "$4"
    echo "$1 -std=$3 $4: good"
    tried="$tried$2 "
}

for header; do
    for standard in c99 c11; do
        compile gcc c $standard "$header"
        compile clang c $standard "$header"
    done
    compile g++ c++ c++17 "$header"
    compile clang++ c++ c++17 "$header"
done
for language in c c++; do
    case $tried in
    *" $language "*) ;;
    *) echo "no compiler for $language is installed" >&2 && exit 1 ;;
    esac
done
