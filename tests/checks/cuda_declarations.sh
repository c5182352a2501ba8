#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cuda_declarations.sh ROOT: the declarations of CUDA in src/cuda and tests agree with CUDA's headers. If the headers of
# cuDNN and cuFFT are installed, their declarations are compared too. Without CUDA's headers the status is 77, which
# CTest counts as skipped.
set -eu
cd "$1"
for folder in "${CUDA_HOME:-}/include" "${CUDA_PATH:-}/include" /usr/local/cuda/include /usr/include; do
    [ -f "$folder/cuda.h" ] && [ -f "$folder/nvrtc.h" ] && [ -f "$folder/cublas_v2.h" ] || continue
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        set -- -std=c11 -Wall -Wextra -Werror -isystem "$folder" -I. -Iinclude -Isrc -fsyntax-only
        $compiler "$@" tests/checks/cuda_declarations.c
        if [ -f "$folder/cudnn_backend.h" ] && [ -f "$folder/cufft.h" ]; then
            $compiler "$@" -Wno-deprecated-declarations tests/checks/cudnn_declarations.c
        fi
        echo "$compiler with $folder: good"
    done
    exit 0
done
echo "no CUDA headers are installed" && exit 77
