#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the C, C++ and CUDA sources of this project, one path a line, relative to its root.
set -eu
cd "$(dirname "$0")/.."
find include src tools examples bench tests -name '*.[ch]' -o -name '*.inc' -o -name '*.cuh' -o -name '*.cpp' | sort
