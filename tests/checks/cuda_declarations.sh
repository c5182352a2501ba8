#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cuda_declarations.sh ROOT: what src/cuda and tests declare of CUDA, and of cuDNN and cuFFT where their headers are, agrees with those. 77, which CTest counts as
# skipped, where there are none.
set -eu
cd "$1"
for folder in "${CUDA_HOME:-}/include" "${CUDA_PATH:-}/include" /usr/local/cuda/include /usr/include; do
    [ -f "$folder/cuda.h" ] && [ -f "$folder/nvrtc.h" ] && [ -f "$folder/cublas_v2.h" ] || continue
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        $compiler -std=c11 -Wall -Wextra -Werror -isystem "$folder" -I. -Iinclude -Isrc -fsyntax-only tests/checks/cuda_declarations.c
        if [ -f "$folder/cudnn_backend.h" ] && [ -f "$folder/cufft.h" ]; then
            $compiler -std=c11 -Wall -Wextra -Werror -Wno-deprecated-declarations -isystem "$folder" -I. -Iinclude -Isrc -fsyntax-only \
                tests/checks/cudnn_declarations.c
        fi
        echo "$compiler with $folder: good"
    done
    exit 0
done
echo "no CUDA headers are installed" && exit 77
