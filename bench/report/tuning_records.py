# SPDX-License-Identifier: Apache-2.0
"""The shipped tuning records of a device, tuning/DEVICE/NETWORK.jsonl, as a table."""
import json

from results import OUR_FAMILIES

FORWARD, BACKWARD = 1, 6  # sets of passes


def read_records(path):
    lines = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
    return [line for line in lines if line.get("passes") in (FORWARD, BACKWARD) and not line["keep"]
            and not line["workspace_class"]]


def records_lines(folder):
    """Markdown: a line for each network. Times are sums over the decisions where cuDNN has a deterministic
    algorithm."""
    rows = []
    for path in sorted(folder.glob("*.jsonl")):
        records = read_records(path)
        both = [record for record in records if record.get("direct_ms", -1) >= 0]
        ours = sum(all(strategy.split(" ")[0] in OUR_FAMILIES for strategy in record["strategy"]) for record in records)
        tuned, direct = (sum(record[name] for record in both) for name in ("ms", "direct_ms"))
        rows.append("| %s | %d | %d | %d | %.2f | %.2f | %s |"
                    % (path.stem, len(records), ours, len(records) - len(both), tuned, direct,
                       "**%.2f**" % (direct / tuned) if tuned else "-"))
    return ["| network | decisions | ours chosen | cuDNN has none | tuned, ms | cuDNN, ms | cuDNN / tuned |",
            "|---|---:|---:|---:|---:|---:|---:|", *rows] if rows else ["No records yet."]
