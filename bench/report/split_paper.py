# SPDX-License-Identifier: Apache-2.0
"""The tables of the paper on FP32 transforms by splitting (split-fp16-fft, on a V100), beside the same numbers of
points on another GPU, from fft.csv."""
from tables import conditions_text, number

# Points in all in units of 1,024: the time of cuFFT in FP32, that by splitting, in milliseconds, and its error. In the
# paper's order: tables 1 to 3 are of rank 1, 4 to 6 of rank 2, 7 to 9 of rank 3. In each group the radices are 2, 4, 8.
TABLES = {
    (1, 2): "1 2.46 2.43 7.75e-7; 4 2.47 2.45 7.84e-7; 16 2.52 2.56 7.83e-7; 32 2.53 3.22 7.81e-7; "
            "64 2.73 3.68 7.80e-7; 256 4.94 8.09 7.82e-7; 1024 7.71 14.42 7.82e-7; 2048 11.95 24.90 7.82e-7; "
            "4096 19.24 33.93 7.81e-7; 16384 63.93 111.81 7.06e-7; 65536 242.50 425.91 3.6e-7",
    (1, 4): "1 3.13 2.30 1.04e-6; 4 3.00 2.32 1.05e-6; 16 3.76 2.42 3.36e-6; 64 2.77 3.58 3.36e-6; "
            "256 5.35 7.58 5.99e-6; 1024 8.98 14.03 6.00e-6; 4096 19.80 30.81 1.55e-5; 16384 63.46 99.20 1.85e-5; "
            "65536 251.84 381.51 1.85e-5",
    (1, 8): "4 2.43 2.28 5.34e-4; 32 2.53 3.23 2.10e-3; 256 4.90 6.59 2.10e-3; 2048 11.69 16.72 7.60e-3; "
            "16384 62.92 79.13 7.06e-3",
    (2, 2): "4 2.44 2.57 1.20e-5; 16 2.94 3.41 6.21e-6; 64 3.12 4.81 8.49e-6; 256 6.02 10.45 1.20e-5; "
            "1024 8.46 18.70 3.05e-5; 4096 19.79 49.22 4.52e-5; 16384 65.39 177.84 6.38e-5; "
            "65536 240.89 924.24 6.38e-5",
    (2, 4): "4 2.45 2.74 1.43e-5; 16 2.59 2.98 1.45e-5; 64 2.88 4.24 1.45e-5; 256 5.36 8.13 1.44e-5; "
            "1024 8.28 16.72 3.53e-5; 4096 19.85 42.16 8.15e-5; 16384 64.04 142.80 7.38e-5; "
            "65536 257.85 597.95 9.90e-5",
    (2, 8): "4 2.45 2.70 7.57e-3; 32 2.57 3.09 7.62e-3; 256 5.12 7.20 7.60e-3; 2048 11.67 18.90 2.62e-2; "
            "16384 63.79 95.17 2.38e-2",
    (3, 2): "16 2.79 6.30 3.56e-9; 64 3.00 8.15 7.29e-9; 256 5.40 10.02 9.02e-9; 1024 8.07 21.08 6.05e-9; "
            "4096 19.47 60.98 3.92e-9; 16384 68.51 230.54 2.92e-9; 65536 259.13 956.44 2.62e-9",
    (3, 4): "16 2.82 5.96 4.08e-9; 64 2.97 7.13 9.65e-9; 256 5.51 8.57 2.47e-8; 1024 8.46 18.37 6.05e-9; "
            "4096 19.99 49.12 1.61e-9; 16384 69.67 177.62 3.56e-9; 65536 269.77 727.22 8.58e-9",
    (3, 8): "32 2.77 4.10 3.41e-5; 256 5.34 7.48 2.82e-6; 2048 11.95 20.43 3.38e-7; 16384 67.82 113.30 1.85e-6",
}
RADICES = (2, 4, 8)
OURS = ("copy", "cufft", "ours", "ours-split")


def points_of(run):
    """The points of a case, 2d-n256x256-b4: 2 axes, 4 planes."""
    axes, batch = run.case.split("-n")[1].split("-b")
    points = int(batch)
    for axis in axes.split("x"):
        points *= int(axis)
    return points


def of_paper(rank):
    """The rows of the three tables of a rank, by points and radix."""
    rows = {}
    for radix in RADICES:
        for line in TABLES[rank, radix].split("; "):
            points, *values = line.split(" ")
            rows.setdefault(1024 * int(points), {})[radix] = values
    return rows


def split_paper_lines(runs, rank):
    """Markdown: a line for each number of points of the paper's tables, and one for each other case with splitting."""
    used = [run for run in runs if run.passname == "c2c" and run.precision == "fp32" and run.case[0] == str(rank)
            and "cufft" in run.ms]
    first, paper = 3 * rank - 2, of_paper(rank)
    # The first case of so many points is that of the paper; others have a longer axis.
    cases = {}
    for run in used:
        cases.setdefault(points_of(run), run)
    chosen = [(points, cases.get(points)) for points in sorted(paper)]
    taken = [run for _, run in chosen if run]
    chosen += [(points_of(run), run) for run in used if "ours-split" in run.ms and run not in taken]
    chosen.sort(key=lambda one: one[0])
    if not any(run for _, run in chosen):
        return ["No results yet."]
    tables = ["table %d, radix %d: cuFFT, splitting" % (first + i, radix) for i, radix in enumerate(RADICES)]
    heads = ["points", *tables,
             "its errors", "case", *("copy", "cuFFT", "FP32 units", "split"), "cuFFT / split",
             "errors: cuFFT, FP32 units, split"]
    lines = conditions_text([run for _, run in chosen if run])
    lines += ["| %s |" % " | ".join(heads), "|---:|---|---|---|---|---|---:|---:|---:|---:|---:|---|"]
    shown = set()
    for points, run in chosen:
        row = paper.get(points, {}) if points not in shown else {}
        shown.add(points)
        cells = ["%s, %s" % tuple(row[radix][:2]) if radix in row else "-" for radix in RADICES]
        cells.append(", ".join(row[radix][2] for radix in RADICES if radix in row) or "-")
        cells.append(run.case if run else "-")
        cells += [number(run.ms[name]) if run and name in run.ms else "-" for name in OURS]
        cells.append("%.2f" % (run.ms["cufft"] / run.ms["ours-split"]) if run and "ours-split" in run.ms else "-")
        cells.append(", ".join("%.1e" % run.error[name] if name in run.error else "-" for name in OURS[1:])
                     if run else "-")
        lines.append("| {:,} | {} |".format(points, " | ".join(cells)))
    return lines
