# SPDX-License-Identifier: Apache-2.0
"""The program conv-fft of this package, as `conv-fft` and `python -m conv_fft`. It replaces this process."""
import os
import sys
from pathlib import Path

from ._context import name_wheel_folders
from ._library import path as library_path


def main():
    program = Path(__file__).resolve().parent / "bin" / "conv-fft"
    if not program.exists():
        sys.exit("conv-fft: there is no program %s: this package was not installed by pip, but uses the library %s. "
                 "Run the program of that library's installation" % (program, library_path))
    name_wheel_folders()  # CUDA libraries of other wheels, as within Python
    os.execv(program, ["conv-fft", *sys.argv[1:]])


if __name__ == "__main__":
    main()
