#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes networks/grid.txt: 256 of the 8,232 configurations of fbfft's Table 2 (arXiv 1412.7580, section 4.1).

    python3 bench/report/make_grid.py > networks/grid.txt

The draw is a partial Fisher-Yates shuffle. Its linear congruential generator is written out here, so that every version
of Python gives the same file.
"""
import itertools
import sys

BATCH = (1, 16, 64, 128)                 # S
PLANES = (1, 4, 16, 64, 96, 128, 256)    # f and f'
KERNEL = (3, 5, 7, 9, 11, 13)            # k = kh = kw
OUTPUT = (1, 2, 4, 8, 16, 32, 64)        # y; the input is y + k - 1
COUNT = 256
SEED = 1


def random_below(state, bound):
    """Next state, and a number below bound from its upper bits (Knuth's MMIX multiplier)."""
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return state, (state >> 32) * bound >> 32


def draw(items, count, seed):
    """The first `count` items of a shuffle."""
    items = list(items)
    state = seed
    for i in range(count):
        state, step = random_below(state, len(items) - i)
        items[i], items[i + step] = items[i + step], items[i]
    return items[:count]


def main():
    grid = list(itertools.product(BATCH, PLANES, PLANES, KERNEL, OUTPUT))
    assert len(grid) == 8232
    print("# %d of the %d configurations of Table 2 in Vasilache et al. (arXiv 1412.7580, section 4.1), seed %d, "
          "in the order of" % (COUNT, len(grid), SEED))
    print("# the draw: the first n lines are a random sample too. "
          "Names: number, kernel, output extent, planes f x f', batch.")
    print("# Written by bench/report/make_grid.py.")
    for number, (batch, planes_in, planes_out, kernel, output) in enumerate(draw(grid, COUNT, SEED), 1):
        extent = output + kernel - 1
        print("g%03d-k%d-o%d-f%dx%d-s%d in=%dx%dx%dx%d out=%d kernel=%dx%d"
              % (number, kernel, output, planes_in, planes_out, batch,
                 batch, planes_in, extent, extent, planes_out, kernel, kernel))


if __name__ == "__main__":
    sys.exit(main())
