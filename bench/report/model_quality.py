# SPDX-License-Identifier: Apache-2.0
"""The results of bench_tuning in quality.csv compare strategies of the modes off and measure with the exhaustive
winner."""
import csv

from results import geometric_mean

COLUMNS = "case,pass,winner_ms,off_ms,measure_ms,timed,reach,measure_s,exhaustive_s,winner,off,measure".split(",")
MODES = ["off", "measure"]


def read_quality(path):
    """The conditions, and the rows as dicts. A negative time means that the exhaustive search did not time a
    strategy. Without a strategy of mode measure, that search was not run."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if not lines:
        return [], []
    if lines[0].split(",") != COLUMNS:
        raise SystemExit("%s: the first line must name the columns %s" % (path, ",".join(COLUMNS)))
    first = next((i for i, line in enumerate(lines) if i > 0 and not line.startswith("#")), len(lines))
    conditions = [line.lstrip("# ") for line in lines[1:first]]  # comments after the rows hold sums
    rows = [dict(zip(COLUMNS, row)) for row in csv.reader(line for line in lines[1:] if not line.startswith("#"))]
    for row in rows:
        for name in COLUMNS[2:9]:
            row[name] = float(row[name])
    return conditions, rows


def ratios_of(rows, mode):
    """(ratio, case, pass) for each row with both times: the time of the mode's strategy over that of the winner."""
    return [(row[mode + "_ms"] / row["winner_ms"], row["case"], row["pass"]) for row in rows
            if row[mode + "_ms"] >= 0 and row["winner_ms"] > 0]


def quality_lines(path):
    """Markdown: a line for each mode and set of passes, and the times of the searches."""
    conditions, rows = read_quality(path)
    if not rows:
        return ["Nothing measured yet."]
    cases = list(dict.fromkeys(row["case"] for row in rows))
    lines = ["Measured with: %s." % "; ".join(dict.fromkeys(conditions)), "",
             "| mode | passes | decisions | geometric mean | within 1.05x | within 1.25x | within 2x | worst "
             "| not timed |",
             "|---|---|---:|---:|---:|---:|---:|---|---:|"]
    for mode in MODES:
        for name in ["forward", "backward", None]:
            of_set = [row for row in rows if name in (None, row["pass"]) and row[mode]]
            found = ratios_of(of_set, mode)
            if not found:
                continue
            within = ["%.0f %%" % (100 * sum(ratio <= limit for ratio, _, _ in found) / len(found))
                      for limit in (1.05, 1.25, 2)]
            worst = max(found)
            lines.append("| %s | %s | %d | %.3f | %s | %.2f (%s, %s) | %d |" % (
                mode, name or "both", len(found), geometric_mean([ratio for ratio, _, _ in found]), " | ".join(within),
                *worst, len(of_set) - len(found)))
    lines += ["", "The winners were predicted at most %.2fx slower than the best prediction."
              % max(row["reach"] for row in rows)]
    seconds = {mode: sum({row["case"]: row[mode + "_s"] for row in rows}.values())
               for mode in ("measure", "exhaustive")}
    exhaustive = "%d cases. The exhaustive searches timed %d strategies in %.0f s" % (
        len(cases), sum(row["timed"] for row in rows), seconds["exhaustive"])
    if all(row["measure"] for row in rows):
        exhaustive += ", those of mode `measure` took %.0f s, %.1f %% of that" % (
            seconds["measure"], 100 * seconds["measure"] / seconds["exhaustive"])
    return lines + ["", exhaustive + "."]
