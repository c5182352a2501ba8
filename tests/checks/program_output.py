#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""program_output.py PROGRAM ROOT FAKES

What conv-fft prints: tables of at most 100 columns, JSON documents whose keys docs/program.md has, the manual page, the
completion, the summary of tune, the hint to direct methods, what `check` finds, and the lines of CONV_FFT_LOG=calls.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

PROGRAM, ROOT, FAKES = sys.argv[1:4]
COLUMNS = 100
LONG = "a-layer-whose-name-is-longer-than-its-column"
NETWORK = f"a in=1x2x9x9 kernel=3x3\n{LONG} in=1x4x1x20x20 out=6 kernel=1x5x5\n"
FFT = ["--facts", os.path.join(ROOT, "tests", "data", "gpus", "h200.txt"), "32x32"]
PASSES = ["forward", "backward data", "backward weights", "both gradients"]
# Layers of every kind.
CHECKED = ["in=2x3x11x12 out=4 kernel=3x4 pad=2:1x0 stride=2x1",
           "in=2x4x10x9 groups=2 out=6 kernel=3 pad=2 mode=circular layout=last",
           "in=1x4x17 groups=4 kernel=5 dilation=2 pad=8 mode=reflect dtype=fp64",
           "in=2x2x6x5x7 out=2 kernel=2x3x2 pad=1 mode=replicate wlayout=last stride=1x2x3",
           "in=2x3x12x12 out=2 kernel=5 pad=same dtype=fp16", "in=2x3x12x12 out=2 kernel=5 dtype=bf16 w=fp32",
           "in=2x3x12x12 out=2 kernel=5 dtype=fp16 gw=fp32 math=half", "in=2x3x12x12 out=2 kernel=5 math=tf32",
           "in=0x3x12x12 out=2 kernel=5"]


class Place:
    def __init__(self, directory):
        self.directory = directory
        self.network = os.path.join(directory, "net.txt")
        with open(self.network, "w", encoding="ascii") as file:
            file.write(NETWORK)
        self.environment = {**os.environ, "CONV_FFT_CACHE_DIR": os.path.join(directory, "cache"),
                            "CONV_FFT_TUNE_PATH": "", "CONV_FFT_RECORD": "", "OMP_WAIT_POLICY": "passive",
                            "CONV_FFT_LOG": "silent"}  # there may be no OpenBLAS

    def run(self, *arguments, **more):
        return subprocess.run([PROGRAM, *arguments], env={**self.environment, **more}, capture_output=True, text=True,
                              timeout=100)

    def json(self, *arguments, status=0):
        """The document; it must be all of standard output."""
        ended = self.run(*arguments, "--json")
        if ended.returncode != status or ended.stderr:
            raise ValueError(f"{arguments}: {ended}")
        return json.loads(ended.stdout)


def table_faults(place):
    """Problem lines and strategy lines are for copying and may be longer."""
    yield from (f"tune: {ended}" for ended in [place.run("tune", "--device=cpu", place.network)] if ended.returncode)
    problem = "in=4x32x1x40x40 out=64 kernel=1x9x9".split()
    for words in [["tune", place.network], ["tune", "--verbose", place.network],
                  ["bench", "--measure=1", place.network],
                  ["explain", "--measure=1", *problem], ["explain", "--mode=measure", "--milliseconds=300", *problem],
                  ["explain", "--file", place.network], ["check", "--file", place.network], ["cache", "show"],
                  ["tune", "--help"], ["--help"], ["explain", "fft", "--help"], ["cache", "--help"]]:
        verbose = "--verbose" in words
        ended = place.run(*words, *([] if words[-1] == "--help" else ["--device=cpu"]))
        lines = ended.stdout.splitlines()
        wide = [line for line in lines if len(line) > COLUMNS and "in=" not in line and not (verbose and "=" in line)]
        # In full, the strategy lines of staged end with keep=; those of spatial are a word.
        full = "keep=" in ended.stdout or words[0] == "tune" and re.search("^    [a-z]+$", ended.stdout, re.M)
        if ended.returncode or wide or not lines or any(line.endswith(" ") for line in lines) or bool(full) != verbose:
            yield f"{words}: status {ended.returncode}, {wide or ended.stdout}, {ended.stderr}"
    shown = place.run("explain", "--device=cpu", "in=1x2x9x9", "kernel=3x3").stdout
    both = r"^  both gradients\n    [a-z].*\n    [a-z].*\n    workspace "
    if not re.search(both, shown, re.M):
        yield f"explain has not both strategies: {shown}"
    shown = place.run("explain", "--device=cpu", *"in=2x16x20x20 out=16 kernel=5x5 pad=2".split()).stdout
    rows = re.findall(r" -   (staged .*)$", shown.split("candidates, both")[0], re.M)
    if len(rows) < 9 or len(set(rows)) < len(rows) or not any(" product=" in row for row in rows):
        yield f"candidates look alike: {shown}"
    shown = place.run("tune", "--device=cpu", "--verbose", place.network).stdout
    if not re.search(r"^a +both gradients .*\n    [a-z].*\n    [a-z].*\n", shown, re.M):
        yield f"tune --verbose has not both strategies: {shown}"
    if not re.search(rf"^{LONG}\n +forward +[0-9.]+ ", shown, re.M):
        yield f"a long name: {shown}"


def add_baseline(path):
    """Give the records of a file a baseline that takes twice the time."""
    with open(path, encoding="ascii") as file:
        lines = file.read().splitlines()
    with open(path, "w", encoding="ascii") as file:
        for line in lines:
            record = json.loads(line)
            del record["crc"]
            if "ms" in record:
                record["direct_ms"] = 2 * record["ms"]
            rest = json.dumps(record, separators=(",", ":"))[1:]
            file.write(f'{{"crc":"{zlib.crc32(rest.encode()):08x}",{rest}\n')


def summary_faults(place):
    """The end of tune: the sums of the rows."""
    shown = place.run("tune", "--device=cpu", place.network).stdout
    document = place.json("tune", "--device=cpu", place.network)
    rows = [row for layer in document["layers"] for row in layer["passes"]]
    summary = document["summary"]
    total = sum(row["ms"] for row in rows)
    both = [row for row in rows if row["model_ms"] is not None]
    if [row["pass"] for row in rows] != ["forward", "both gradients"] * 2 or not both:
        yield f"tune: {document}"
    if not (abs(summary["step_ms"] - total) < 1e-6 * total and summary["tuned"] == summary["rows"] == 4) or \
            summary["records"] != os.path.join(place.directory, "cache") or summary["baseline"] is not None:
        yield f"summary: {summary}"
    gain = sum(row["model_ms"] for row in both) / sum(row["ms"] for row in both)
    if summary["model"]["rows"] != len(both) or abs(summary["model"]["speedup"] - gain) > 1e-6 * gain:
        yield f"the gain is {gain}: {summary}"
    lines = re.sub(r"\n  ", " ", shown)
    if not all(part in lines for part in (f"\none training step: {total:.4f} ms\n",
                                          f"\ntuned is {gain:.2f} times as fast as the choice of the cost model: ",
                                          f"\nrecords: {summary['records']}\n")):
        yield f"the summary in text: {shown}"
    # The model's choice is timed, and has its own time where it is the winner.
    fresh = Place(os.path.join(place.directory, "fresh"))
    chosen = {(layer["name"], row["pass"]): row["strategies"]
              for layer in fresh.json("explain", "--device=cpu", "--file", place.network)["layers"]
              for row in layer["passes"]}
    for layer in document["layers"]:
        for row in layer["passes"]:
            wins = chosen[layer["name"], row["pass"]] == row["strategies"]
            if row["model_ms"] is not None and (row["model_ms"] == row["ms"]) != wins:
                yield f"the model's choice {chosen[layer['name'], row['pass']]}: {row}"
    shipped = os.path.join(place.directory, "shipped")
    os.mkdir(shipped, 0o700)
    records = os.path.join(shipped, "records.jsonl")
    place.run("cache", "export", "--device=cpu", records)
    add_baseline(records)
    found = place.run("tune", "--device=cpu", place.network, CONV_FFT_TUNE_PATH=shipped,
                      CONV_FFT_CACHE_DIR=os.path.join(place.directory, "none"))
    text = re.sub(r"\n  ", " ", found.stdout)
    if found.returncode or "\nrecords: in the folders of CONV_FFT_TUNE_PATH\n" not in text or \
            "\ntuned is 2.00 times as fast as the best algorithm of another library: " not in text or \
            not re.search(r"^a +forward +([0-9.]+) +([0-9.]+|-) +([0-9.]+) ", text, re.M):
        yield f"shipped records: {found}"
    unwritable = place.run("tune", "--device=cpu", place.network, CONV_FFT_CACHE_DIR="/dev/null/none").stdout
    if "\nrecords: in memory only, so they are lost: " not in unwritable:
        yield f"records that are not kept: {unwritable}"


def keys_of(value):
    if isinstance(value, dict):
        return set(value).union(*(keys_of(part) for part in value.values()))
    return set().union(*(keys_of(part) for part in value)) if isinstance(value, list) else set()


def json_faults(place):
    """One document each, whose keys docs/program.md has in its section about JSON."""
    with open(os.path.join(ROOT, "docs", "program.md"), encoding="utf-8") as file:
        section = file.read().split("\n## JSON\n")[1].split("\n## ")[0]
    known = set(re.findall(r"`(\w+)`", section))
    seen = set()
    problem = ["a", "in=4x8x20x20", "kernel=5x5"]
    documents = {
        "devices": place.json("devices", "--device=cpu"), "tune": place.json("tune", "--device=cpu", place.network),
        "bench": place.json("bench", "--device=cpu", "--measure=1", place.network),
        "explain": place.json("explain", "--device=cpu", "--measure=1", *problem),
        "check": place.json("check", "--device=cpu", *problem),
        **{f"cache {action}": place.json("cache", action) for action in ("list", "verify")},
        **{f"cache {action}": place.json("cache", action, "--device=cpu") for action in ("show", "repair")},
    }
    records, absent = os.path.join(place.directory, "all.jsonl"), os.path.join(place.directory, "absent.jsonl")
    documents["cache export"] = place.json("cache", "export", "--device=cpu", records)
    documents["cache clear"] = place.json("cache", "clear")
    documents["cache merge"] = place.json("cache", "merge", "--device=cpu", records)
    partly = place.run("cache", "merge", "--device=cpu", "--json", absent, records)
    if partly.returncode != 1 or [file["good"] for file in json.loads(partly.stdout)["files"]] != [False, True]:
        yield f"cache merge of a missing file: {partly}"
    place.run("cache", "clear")
    documents["explain fft"] = place.json("explain", "fft", *FFT)
    gpu = subprocess.run([PROGRAM, "devices", "--json"], capture_output=True, text=True, timeout=100,
                         env={**place.environment, "CONV_FFT_LIBRARY_PATH": FAKES})
    documents["devices of a GPU"] = json.loads(gpu.stdout)
    with_kernels = subprocess.run([PROGRAM, "cache", "export", "--kernels", "--json",
                                   os.path.join(place.directory, "of-gpu.jsonl"), place.network], text=True,
                                  env={**place.environment, "CONV_FFT_LIBRARY_PATH": FAKES}, capture_output=True,
                                  timeout=100)
    documents["cache export of kernels"] = json.loads(with_kernels.stdout)
    for name, document in documents.items():
        if document["schema"] != 1 or not name.startswith(document["command"]) or not document["library"]:
            yield f"{name}: {document}"
        unknown = {key for key in keys_of(document) if f"`{key}`" not in section}
        properties = documents["devices of a GPU"]["gpus"][0]
        seen |= keys_of(document)
        if unknown - set(properties):
            yield f"{name}: docs/program.md does not have {sorted(unknown - set(properties))}"
    if missing := {word for word in known if "_" in word and not word.startswith("conv_fft")} - seen:
        yield f"docs/program.md has {missing}, but no document"
    layer = documents["explain"]["layers"][0]
    if [p["pass"] for p in layer["passes"]] != PASSES or len(layer["passes"][3]["strategies"]) != 2 or \
            [c["pass"] for c in layer["chosen"]] != ["forward", "both gradients"] or len(layer["candidates"]) != 20:
        yield f"explain: {layer}"
    rows = documents["bench"]["layers"][0]["passes"]
    if [row["pass"] for row in rows] != PASSES or any(row["chosen_by"] != "record" for row in rows) or \
            any(row["chosen_by"] != "model" for layer in place.json("bench", "--device=cpu", place.network)["layers"]
                for row in layer["passes"]):
        yield f"bench: {documents['bench']}"
    if [r["pass"] for r in documents["cache show"]["records"]] != ["forward", "both gradients"] * 2:
        yield f"cache show: {documents['cache show']}"
    if documents["cache export"]["files"] != documents["cache merge"]["files"] or \
            documents["cache merge"]["files"] != [{"file": records, "good": True}]:
        yield f"cache: {documents['cache export']}, {documents['cache merge']}"
    if [line.strip() for line in place.run("explain", "fft", *FFT).stdout.splitlines() if line.strip()] != \
            documents["explain fft"]["lines"]:
        yield f"explain fft: {documents['explain fft']}"
    exported = documents["cache export of kernels"]
    if exported["plans"] != exported["plans_with_kernels"] or exported["plans"] < 1 or \
            not any(name.endswith(".cubin") for name in os.listdir(exported["directory"])):
        yield f"cache export --kernels: {with_kernels}"
    if documents["cache clear"]["removed"] != 1 or documents["cache verify"]["unverified"] != 0:
        yield f"cache: {documents['cache clear']}, {documents['cache verify']}"
    names = ["CUDA driver", "NVRTC", "cuBLAS", "cuFFT", "cuDNN"]
    driver = documents["devices of a GPU"]["libraries"][0]
    if [library["name"] for library in documents["devices"]["libraries"]] != names or driver["problem"] or \
            driver["file"] != os.path.join(FAKES, "libcuda.so.1") or properties["compute_major"] != 9 or \
            properties["name"] != "Substitute GPU":
        yield f"devices: {documents['devices']}, {documents['devices of a GPU']}"
    for words in (["tune", "--device=1023", place.network], ["explain", "in=1"]):
        ended = place.run(*words, "--json")
        if ended.returncode == 0 or ended.stdout and not json.loads(ended.stdout)["layers"] == []:
            yield f"{words} --json: {ended}"


def check_faults(place):
    """All layers are good on the CPU. A GPU that computes nothing is refused."""
    with open(os.path.join(place.directory, "checked.txt"), "w", encoding="ascii") as file:
        file.write("\n".join(CHECKED))
    document = place.json("check", "--device=cpu", "--file", file.name)
    for layer in document["layers"]:
        for row in layer["passes"]:
            # Few products of BF16 numbers have exact sums in FP32.
            exact, may_be = row["error"] == 0, re.search("^in=0| dtype=bf16 ", layer["problem"])
            if not row["good"] or not 0 <= row["error"] <= row["limit"] or row["compared"] != row["results"] or \
                    exact and not may_be or not exact and row["error"] < 1e-6 * row["limit"]:
                yield f"{layer['problem']}: {row}"
    limits = [layer["passes"][0]["limit"] for layer in document["layers"]]
    fp32, wanted = 12 * 2**-24, {2: 12 * 2**-53, 4: 2**-11 + 12 * 2**-24, 5: 2**-8 + 12 * 2**-24}
    if len(limits) != len(CHECKED) or any(abs(limit / wanted.get(i, fp32) - 1) > 1e-6 for i, limit in enumerate(limits)
                                          if i != 6):
        yield f"limits: {limits}"
    large = place.json("check", "--device=cpu", "in=4x16x64x64 out=16 kernel=11x11 pad=same")["layers"][0]["passes"]
    if any(not row["good"] or not 0 < row["compared"] < row["results"] for row in large):
        yield f"a large layer: {large}"
    ended = place.run("check", "--device=0", "in=1x2x9x9 kernel=3x3", CONV_FFT_LIBRARY_PATH=FAKES)
    if ended.returncode != 1 or len(re.findall("  NaN .* BAD ", ended.stdout)) != 4:
        yield f"a GPU that computes nothing: {ended}"
    for words, status, said in ((["in=1x2"], 1, 'in is "1x2"'), ([], 2, "check needs a problem or --file"),
                                (["in=1x1x9", "--file=" + place.network], 2, "not both")):
        ended = place.run("check", "--device=cpu", *words)
        if ended.returncode != status or said not in ended.stderr or ended.stdout:
            yield f"check {words}: {ended}"


def call_faults(place):
    """CONV_FFT_LOG=calls: one line for each call on the CPU, with its time and who chose."""
    problem = "in=1x2x9x9 kernel=3x3"
    for chosen in ("model", "record"):
        document = place.json("explain", "--device=cpu", problem)["layers"][0]
        ended = place.run("check", "--device=cpu", problem, CONV_FFT_LOG="calls")
        lines = [line.split(" | ") for line in ended.stderr.splitlines() if " | " in line]
        wanted = [["conv_fft: call", row["pass"], document["problem"], "; ".join(row["strategies"])]
                  for row in document["passes"]]
        times = [re.fullmatch(r"\d+\.\d{4} ms", line[4]) for line in lines]
        if [line[:4] for line in lines] != wanted or not all(times) or {line[5] for line in lines} != {chosen}:
            yield f"CONV_FFT_LOG=calls, {chosen}: {lines} instead of {wanted}"
        if "call" in place.run("check", "--device=cpu", problem, CONV_FFT_LOG="info").stderr:
            yield "CONV_FFT_LOG=info writes lines of calls"
        place.run("tune", "--device=cpu", place.network)


def interrupt_faults(place):
    """After Ctrl-C the status is 130, and the JSON document has what was done."""
    with open(os.path.join(place.directory, "many.txt"), "w", encoding="ascii") as file:
        file.write("".join(f"l{i} in=8x16x{i + 40}x40 out=16 kernel=5x5\n" for i in range(100)))
    for words in (["bench", "--measure=100", file.name], ["check", "--file", file.name], ["tune", file.name],
                  ["explain", "--mode=measure", "--file", file.name]):
        process = subprocess.Popen([PROGRAM, *words, "--device=cpu", "--json"], env=place.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        written, said = process.communicate(timeout=100)
        if process.returncode != 130 or "stopping" not in said or len(json.loads(written)["layers"]) >= 100:
            yield f"{words}: status {process.returncode}, {written[-200:]}, {said}"


def direct_faults(place):
    """Layers for which a direct method should win, and what explain says; README.md has the section that it names."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        if "\n## When not to use it\n" not in file.read():
            yield "README.md has no section \"When not to use it\""
    # On a CPU the library has direct methods of its own.
    cases = [("in=4x16x20x20 out=16 kernel=3", None), ("in=4x8x4096 groups=8 kernel=1023 pad=same", None)]
    on_gpu = [("in=4x16x20x20 out=16 kernel=3", "the layer takes less than 20 microseconds"),
              ("in=4x64x20x20 out=64 kernel=3 dtype=fp16", "methods are faster for kernels up to 3x3"),
              ("in=64x64x56x56 out=64 kernel=9", None), ("in=4x64x20x20 out=64 kernel=1", "is a matrix product"),
              ("in=1x8x16x16 out=8 kernel=5", None)]  # the family spatial is a direct method
    for device, problem, why in [("0", *case) for case in on_gpu] + [("cpu", *case) for case in cases]:
        words = ["explain", f"--device={device}", "--candidates=1", problem]
        text = re.sub(r"\s+", " ", place.run(*words, CONV_FFT_LIBRARY_PATH=FAKES).stdout)
        layer = json.loads(place.run(*words, "--json", CONV_FFT_LIBRARY_PATH=FAKES).stdout)
        said = layer["layers"][0]["direct_method"]
        if (said is None) != (why is None) or (why and why not in said) or \
                ('A direct method should be faster: ' in text) != (why is not None) or \
                (why and f'{said}. See "When not to use it" in README.md.' not in text):
            yield f"{problem} on {device}: {said}, {text}"


def man_faults(place):
    """The manual page names every command and option, and troff has no complaint."""
    page = place.run("man").stdout
    text = page.replace("\\-", "-")
    wanted = set(re.findall(r"^  ([a-z]+(?: [a-z]+)?)", place.run("--help").stdout, re.M)) - {"conv"}
    missing = {name for name in wanted if f'.SS "{name}' not in text}
    if len(wanted) < 15 or missing:
        yield f"man: {missing} of {wanted} are missing"
    options = set(re.findall(r"^  (--[a-z-]+)", "".join(place.run(*name.split(), "--help").stdout for name in wanted),
                             re.M))
    missing = {name for name in options if f"\n.B {name}" not in text}
    if len(options) < 14 or missing:
        yield f"man: options {missing} are missing"
    if shutil.which("groff"):
        said = subprocess.run(["groff", "-man", "-z", "-ww", "-Tascii"], input=page, capture_output=True, text=True)
        if said.returncode or said.stderr:
            yield f"groff: {said.stderr}"
    installed = os.path.join(os.path.dirname(PROGRAM), "conv-fft.1")
    with open(installed, encoding="ascii") as file:
        if file.read() != page:
            yield f"{installed} is not what `conv-fft man` prints"


def completion_faults(place):
    """What bash offers for a line, whose last word is being typed; and zsh, which chooses by the typed part itself."""
    cases = [
        ("conv-fft tu", {"tune"}), ("conv-fft --v", {"--version"}), ("conv-fft cache l", {"list"}),
        ("conv-fft cache ", {"list", "show", "merge", "export", "clear", "verify", "repair"}),
        ("conv-fft tune --device c", {"cpu"}), ("conv-fft tune --device = a", {"auto"}),
        ("conv-fft tune --mode = ", {"measure", "exhaustive"}), ("conv-fft tune --wo", {"--workspace-limit"}),
        ("conv-fft --device cpu tune --ag", {"--again"}), ("conv-fft tune --kern", set()),
        ("conv-fft explain ker", {"kernel="}), ("conv-fft explain ff", {"fft"}), ("conv-fft check di", {"dilation="}),
        ("conv-fft explain fft --f", {"--facts"}), ("conv-fft tune net.txt --js", {"--json"}),
        ("conv-fft tune n", {"net.txt"}), ("conv-fft explain --file n", {"net.txt"}),
        ("conv-fft cache merge n", {"net.txt"}),
        ("conv-fft help be", {"bench"}), ("conv-fft devices n", set()),
    ]
    bash, zsh = shutil.which("bash"), shutil.which("zsh")
    script = place.run("completion").stdout
    installed = os.path.join(os.path.dirname(PROGRAM), "completion", "conv-fft")
    with open(installed, encoding="ascii") as file:
        if file.read() != script:
            yield f"{installed} is not what `conv-fft completion` prints"
    zsh_begin = "autoload -Uz bashcompinit; bashcompinit; complete() { :; }\n" + script + \
        "emulate -R sh; setopt kshglob noshglob braceexpand ksharrays\n"
    shells = [([bash, "--norc"], script)] * bool(bash) + [([zsh, "-f"], zsh_begin)] * bool(zsh)
    for shell, begin in shells:
        for line, wanted in cases:
            words = line.split(" ")
            ask = begin + f"COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}'); COMP_CWORD={len(words) - 1}\n" \
                "_conv_fft\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
            ended = subprocess.run(shell, input=ask, capture_output=True, text=True, cwd=place.directory)
            offered = {word for word in ended.stdout.split() if word.startswith(words[-1].strip("="))}
            if ended.returncode or ended.stderr or offered != wanted or shell[0] == bash and \
                    offered != set(ended.stdout.split()):
                yield f"{shell[0]}: completion of {line!r}: {ended.stdout.split()}, {ended.stderr}"
    fields = place.run("explain", "x=1").stderr.split("fields are ")[1].strip().split(", ")
    offered = re.search(r"'explain'\) options='[^']*' words='([^']*)'", script)[1]
    if {f"{field}=" for field in fields} != {word for word in offered.split() if word.endswith("=")}:
        yield f"the fields are {fields}, offered are {offered}"


def main():
    found = []
    for check in [table_faults, summary_faults, json_faults, check_faults, call_faults, interrupt_faults,
                  direct_faults, man_faults, completion_faults]:
        with tempfile.TemporaryDirectory() as directory:
            os.mkdir(os.path.join(directory, "fresh"))
            found += check(Place(directory))
    print("\n".join(found) or "program output: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
