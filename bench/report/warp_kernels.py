# SPDX-License-Identifier: Apache-2.0
"""The table of warp-shuffle transforms, beside those in shared memory and cuFFT, from warp.csv
(src/fbfft/warp/README.md)."""
import csv


def warp_lines(path):
    """Markdown: for each size and rank, the time divided by that of a copy of as many bytes."""
    if not path.exists():
        return ["No results yet."]
    text = path.read_text().splitlines()
    notes = [line[2:] for line in text if line.startswith("#")]
    rows = csv.DictReader(line for line in text if not line.startswith("#"))
    ms = {(row["case"].rsplit("-b", 1)[0], row["pass"], row["impl"]): float(row["ms"]) for row in rows}
    names = [(impl, name) for impl, name in (("ours", "warp"), ("shared_memory", "shared memory"), ("cufft", "cuFFT"))]
    heads = ["%s %s" % (name, passname.upper()) for passname in ("r2c", "c2r") for _, name in names]
    lines = ["Measured with: %s." % "; ".join(notes), "", "| transform | %s |" % " | ".join(heads),
             "|---|%s" % ("---:|" * len(heads))]
    for case in dict.fromkeys(key[0] for key in ms):
        cells = []
        for passname in ("r2c", "c2r"):
            ratios = [ms[case, passname, impl] / ms[case, passname, "copy"] for impl, _ in names]
            cells += ["**%.2f**" % ratio if ratio == min(ratios) else "%.2f" % ratio for ratio in ratios]
        lines.append("| %s | %s |" % (case.replace("d-n", "-D "), " | ".join(cells)))
    return lines
