#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# consume.sh HOW DIRECTORY: one way to install or to use libconv_fft. CTest gives CC, CMAKE, WORK (a folder for what is
# made) and VERSION in the environment.
set -eu
how=$1
directory=$2
here=$(cd "$(dirname "$0")" && pwd)

# The tree is installed under DESTDIR, moved and used: installed files have no absolute path of their prefix.
install_tree() {
    rm -rf "$WORK/stage" "$2"
    DESTDIR="$WORK/stage" "$CMAKE" --install "$1" --prefix /opt/conv_fft
    mv "$WORK/stage/opt/conv_fft" "$2"
    [ -x "$(find "$2" -path '*/conv_fft/compile-kernel')" ]
}

use_find_package() {
    rm -rf "$2"
    "$CMAKE" -S "$here/find_package" -B "$2" -G Ninja -DCMAKE_PREFIX_PATH="$1" -DVERSION="$VERSION" \
        -DCMAKE_C_COMPILER="$CC"
    "$CMAKE" --build "$2"
    "$2/consumer"
}

use_pkg_config() {
    prefix=$1
    shift
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name conv_fft.pc)")
    export PKG_CONFIG_PATH
    [ "$(pkg-config --modversion conv_fft)" = "$VERSION" ]
    "$CC" "$here/consumer.c" -o "$WORK/consumer_$how" $(pkg-config "$@" --cflags --libs conv_fft) -lm
    LD_LIBRARY_PATH=$(pkg-config --variable=libdir conv_fft) "$WORK/consumer_$how"
}

# From a copy of the sources, as a release archive holds them: no version control, no test suite.
use_static() {
    rm -rf "$WORK/archive" "$WORK/static"
    mkdir -p "$WORK/archive"
    (cd "$1" && cp -r CMakeLists.txt LICENSE cmake include src "$WORK/archive")
    "$CMAKE" -S "$WORK/archive" -B "$WORK/static" -G Ninja -DCMAKE_C_COMPILER="$CC" -DCMAKE_BUILD_TYPE=Debug \
        -DBUILD_SHARED_LIBS=OFF -DCONV_FFT_BUILD_TESTS=OFF -DCONV_FFT_BUILD_BENCH=OFF -DCONV_FFT_BUILD_EXAMPLES=OFF \
        -DCONV_FFT_BUILD_TOOLS=OFF
    "$CMAKE" --build "$WORK/static"
    install_tree "$WORK/static" "$WORK/installed_static"
    use_find_package "$WORK/installed_static" "$WORK/find_package_static"
    use_pkg_config "$WORK/installed_static" --static
}

# The program, its manual page and its completion. It finds the installed networks in any folder.
use_program() {
    [ "$("$1/bin/conv-fft" --version)" = "conv-fft $VERSION" ]
    "$1/bin/conv-fft" man | cmp - "$1/share/man/man1/conv-fft.1"
    "$1/bin/conv-fft" completion | cmp - "$1/share/bash-completion/completions/conv-fft"
    export CONV_FFT_LOG=silent # there may be no OpenBLAS
    mkdir -p "$WORK/elsewhere"
    cd "$WORK/elsewhere"
    "$1/bin/conv-fft" explain --device cpu --file networks/causal.txt >explained
    grep -q staged explained
    "$1/bin/conv-fft" explain --device cpu --file networks/none.txt 2>messages && return 1
    [ "$(cat messages)" = 'conv-fft: cannot read networks/none.txt: No such file or directory' ]
    [ -f "$1/share/conv_fft/tuning/nvidia-h200/alexnet.jsonl" ]
}

case $how in
install) install_tree "$directory" "$WORK/installed" ;;
find_package) use_find_package "$directory" "$WORK/find_package" ;;
pkg_config) use_pkg_config "$directory" ;;
program) use_program "$directory" ;;
static) use_static "$directory" ;;
esac
