# SPDX-License-Identifier: Apache-2.0
"""Tuning and its records, on the CPU."""
import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import conv_fft
import pytest

LINES = ["in=1x2x9x9 kernel=3x3", "in=1x2x10x10 kernel=3x3 dtype=fp64"]


def test_tune_records_export_and_merge(tmp_path):
    network = tmp_path / "network.txt"
    network.write_text("# two layers\nfirst %s\n\n%s # x2\n" % tuple(LINES))
    seen = []
    conv_fft.tune(network, "cpu", milliseconds=200, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen) and sorted(set(seen)) == [(0, 2), (1, 2), (2, 2)]
    records = conv_fft.cache.records("cpu")
    mine = [record for record in records if "in=1x2x9x9" in record["problem"]]
    assert mine and all(record["ms"] > 0 and record["strategy"] for record in mine)
    assert conv_fft.cache.stats("cpu")["records"] == len(records)
    conv_fft.cache.export(tmp_path / "one.jsonl", LINES[:1], "cpu")
    conv_fft.cache.save(tmp_path / "all.jsonl", "cpu")
    assert len((tmp_path / "one.jsonl").read_text().splitlines()) == 1 + len(mine)
    conv_fft.cache.load(tmp_path / "one.jsonl", "cpu")
    conv_fft.cache.merge(tmp_path / "all.jsonl", "mine", "cpu")
    assert len(conv_fft.cache.records("cpu")) == len(records)
    (file,) = Path(os.environ["CONV_FFT_CACHE_DIR"]).glob("tuning-*.jsonl")
    good = file.read_bytes()
    file.write_bytes(b"x" + good)
    assert "jsonl:1: its CRC is wrong" in conv_fft.cache.report()
    assert conv_fft.cache.repair("cpu") == 1 and file.read_bytes() == good and conv_fft.cache.repair("cpu") == 0
    assert "records" in conv_fft.cache.report() and conv_fft.cache.clear() >= 1
    with pytest.raises(conv_fft.FileError, match="network.txt"):
        conv_fft.cache.load(network, "cpu")


def test_tune_returns_what_plans_take():
    """The rows are the records of the problems, each once, and the sums are those of the rows."""
    summary = conv_fft.tune([*LINES, LINES[0], "in=0x2x9x9 kernel=3x3"], "cpu", milliseconds=1000)
    rows = summary["rows"]
    assert [row["passes"] for row in rows] == [1, 6] * 3
    problems = [conv_fft.Problem.parse(line).line for line in (*LINES, "in=0x2x9x9 kernel=3x3")]
    assert [row["problem"] for row in rows] == [line for line in problems for _ in range(2)]
    assert all(value is None for row in rows[4:] for key, value in row.items() if key not in ("problem", "passes"))
    records = {(record["problem"], record["passes"]): record for record in conv_fft.cache.records("cpu")}
    for row in rows[:4]:
        record = records[row["problem"], row["passes"]]
        assert {key: row[key] for key in ("strategy", "ms", "model_ms", "workspace_bytes")} == \
            {key: record[key] for key in ("strategy", "ms", "model_ms", "workspace_bytes")}
        plan = conv_fft.Plan(row["problem"], "cpu")
        passes = ["forward"] if row["passes"] == 1 else ["backward_data", "backward_weights"]
        assert row["strategy"] == "; ".join(plan.describe(name)["strategy"] for name in passes)
    assert summary["tuned"] == 4 and summary["step_ms"] == pytest.approx(sum(row["ms"] for row in rows[:4]))
    assert summary["baseline"] is None
    both = [row for row in rows if row["model_ms"] is not None]
    gain = sum(row["model_ms"] for row in both) / sum(row["ms"] for row in both)
    assert summary["model"]["speedup"] == pytest.approx(gain) and summary["model"]["rows"] == len(both)
    limited = conv_fft.tune(LINES[:1], "cpu", milliseconds=1000, workspace_limit=1 << 30)
    assert limited["tuned"] == 2 and all(row["workspace_bytes"] <= 1 << 30 for row in limited["rows"])


def test_tune_says_what_was_not_measured():
    large = "in=8x32x64x64 out=32 kernel=5x5"
    with pytest.warns(RuntimeWarning, match="2 not measured: forward of in=8x32x64x64 .*; backward of in=8x32x64x64"):
        summary = conv_fft.tune([large, large, "in=0x2x9x9 kernel=3x3"], "cpu", milliseconds=1)
    assert summary["tuned"] == 0 and summary["model"] is None and summary["step_ms"] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        conv_fft.tune(LINES, "cpu", milliseconds=1000)


def test_bad_lines_are_named_and_the_others_tuned(tmp_path):
    """The same rules as those of the program: tests/checks/tuning_program.py."""
    def tuned(extent):
        return any("in=1x2x%d " % extent in record["problem"] for record in conv_fft.cache.records("cpu"))

    network, out = tmp_path / "net.txt", tmp_path / "out.jsonl"
    network.write_bytes(b"# gr\xc3\xb6\xc3\x9fer\na in=1x2x31 kernel=3\nworse in=1x2\n"
                        b"\x1b[2Jb in=1x2x32 kernel=3\noops\n"
                        b"c in=1x2x33 kernel=3 # \xff\n")
    for path in (network, str(network)):
        with pytest.raises(conv_fft.InvalidArgument) as raised:
            conv_fft.tune(path, "cpu", milliseconds=200)
        said = str(raised.value)
        assert [part.partition("net.txt:")[2][:2] for part in said.split("; " + str(tmp_path))] == ["3:", "4:", "5:"]
        assert 'in is "1x2"; it must be' in said and "net.txt:4: there is a byte 0x1b, which" in said
    assert tuned(31) and tuned(33) and not tuned(32)
    with pytest.raises(conv_fft.InvalidArgument, match=r"^problems\[1\]: .*; problems\[2\]: "):
        conv_fft.tune(["in=1x2x34 kernel=3", "in=1x2", "", conv_fft.Problem.parse("in=1x2x35 kernel=3")], "cpu",
                      milliseconds=200)
    assert tuned(34) and tuned(35)
    with pytest.raises(conv_fft.InvalidArgument, match="net.txt:3: "):
        conv_fft.cache.export(out, network, "cpu")
    assert out.read_text().count('"problem"') == 4
    empty = tmp_path / "empty.txt"
    empty.write_text("# nothing\n")
    with pytest.raises(ValueError, match="empty.txt: there is no problem line"):
        conv_fft.tune(empty, "cpu")


def test_tune_takes_a_line():
    """A text with a field in= is a problem line, any other the name of a file."""
    for line in ("in=1x2x36 kernel=3", "name in=1x2x37 kernel=3", "kernel=3 in=1x2x38"):
        conv_fft.tune(line, "cpu", milliseconds=200)
    problems = " ".join(record["problem"] for record in conv_fft.cache.records("cpu"))
    assert all("in=1x2x%d " % extent in problems for extent in (36, 37, 38))
    with pytest.raises(conv_fft.InvalidArgument, match="^problems: in is "):
        conv_fft.tune("in=1x2 kernel=3", "cpu")
    with pytest.raises(FileNotFoundError, match="min=1"):
        conv_fft.tune("min=1", "cpu")


def test_tune_can_be_cancelled_and_callbacks_may_raise():
    with pytest.raises(conv_fft.Cancelled):
        conv_fft.tune(["in=1x1x7 kernel=3", "in=1x1x8 kernel=3"], "cpu", milliseconds=50,
                      progress=lambda done, total: True)
    with pytest.raises(ZeroDivisionError):
        conv_fft.tune(LINES, "cpu", milliseconds=50, progress=lambda done, total: 1 // 0)


def test_progress_ends_a_search():
    calls = []
    with pytest.raises(conv_fft.Cancelled):
        conv_fft.tune(LINES[:1], "cpu", again=True, progress=lambda done, total: calls.append(done) or len(calls) == 3)
    assert calls == [0, 0, 0]


INTERRUPTED = """
import conv_fft, os, signal, sys, threading, time
small, large = "in=1x2x9x9 kernel=3x3", "in=16x64x96x96 out=64 kernel=5x5"
sent = []
def send():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
conv_fft.tune([small], "cpu", milliseconds=300)
threading.Timer(float(sys.argv[2]), send).start()
try:
    %s
except KeyboardInterrupt:
    print("%%.3f" %% (time.monotonic() - sent[0]), len(conv_fft.cache.records("cpu")))
else:
    print("it went on")
"""
INTERRUPTED_CALLS = {
    "tune": "conv_fft.tune([small, large], 'cpu', mode='exhaustive')",
    "with progress": "conv_fft.tune([small, large], 'cpu', mode='exhaustive', progress=lambda done, total: False)",
    "candidates": "conv_fft.candidates(large, 'cpu', mode='exhaustive')",
    "plan": "\n    with conv_fft.autotune('exhaustive'):\n        conv_fft.Plan(large, 'cpu')"}


@pytest.mark.parametrize("call", INTERRUPTED_CALLS)
@pytest.mark.parametrize("after", [0.2, 0.7])
def test_ctrl_c_ends_measuring(tmp_path, call, after):
    """A signal, as Ctrl-C sends it, ends the call soon, whatever step it is in. Earlier records stay."""
    # Silent: without OpenBLAS there is a warning.
    environment = {**os.environ, "CONV_FFT_CACHE_DIR": str(tmp_path), "CONV_FFT_LOG": "silent"}
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED % INTERRUPTED_CALLS[call], call, str(after)],
                           capture_output=True, text=True, env=environment, timeout=100)
    assert ended.returncode == 0 and not ended.stderr, (ended.stdout, ended.stderr)
    seconds, records = ended.stdout.split()
    assert float(seconds) < 0.5 and int(records) == 2


def test_ctrl_c_ends_a_call_whose_callback_runs():
    """The handler runs within the callback, too, which then raises."""
    def interrupt(done, total):
        os.kill(os.getpid(), signal.SIGINT)
        return False

    for _ in range(20):
        with pytest.raises(KeyboardInterrupt):
            conv_fft.tune(LINES[:1], "cpu", again=True, progress=interrupt)


def test_a_plan_that_nobody_takes_is_freed():
    from conv_fft import _measuring, _structs
    closed = []

    class Result:
        def close(self):
            closed.append(self)

    def function(callback):
        callback()
        return Result()

    def visit():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _measuring.call(function, _structs.PlanOptions(), visit)
    assert len(closed) == 1


def test_candidates():
    found = conv_fft.candidates(LINES[0], "cpu")
    assert found and {"strategy", "predicted_ms", "verdict"} <= set(found[0]) and found[0]["measured_ms"] is None


@pytest.mark.parametrize("name", ["any_alignment", "own_kernels", "trusted"])
def test_options_of_plans_reach_the_library(monkeypatch, name):
    seen = []

    class Spy:
        def __getattr__(self, function):
            return getattr(conv_fft._library.lib, function)

        def conv_fft_plan_create(self, context, problem, options, handle):
            seen.append(getattr(options._obj, name))
            return conv_fft._library.lib.conv_fft_plan_create(context, problem, options, handle)

    monkeypatch.setattr(conv_fft.plan, "lib", Spy())
    conv_fft.Plan(LINES[0], "cpu")
    conv_fft.Plan(LINES[0], "cpu", **{name: True})
    assert seen == [0, 1]


def test_autotune_is_over_when_its_block_is():
    with conv_fft.autotune(milliseconds=100):
        conv_fft.Plan("in=1x3x19 kernel=5", "cpu")
    count = conv_fft.cache.stats("cpu")["records"]
    assert any("in=1x3x19 " in record["problem"] for record in conv_fft.cache.records("cpu"))
    conv_fft.Plan("in=1x3x23 kernel=5", "cpu")
    assert conv_fft.cache.stats("cpu")["records"] == count
    with pytest.raises(ValueError, match="mode"):
        with conv_fft.autotune("fast"):
            pass


def test_autotune_in_threads_that_overlap():
    """Of two threads the one that begins first ends first. The other's mode stays, and at the end neither's is left."""
    from conv_fft.plan import tunings
    one, other = conv_fft.autotune(milliseconds=100), conv_fft.autotune(milliseconds=100)
    begun, ended = threading.Event(), threading.Event()

    def run():
        with other:
            begun.set()
            ended.wait()

    thread = threading.Thread(target=run)
    with one:
        thread.start()
        begun.wait()
    during = list(tunings)
    ended.set()
    thread.join()
    assert during[-1]["tuning"] == "measure" and tunings == [{"tuning": "cached", "tune_milliseconds": 0}]
    with pytest.raises(KeyError):
        with conv_fft.autotune():
            raise KeyError
    assert len(tunings) == 1


def test_tune_measures():
    for mode in ("off", "cached", "best"):
        with pytest.raises(ValueError, match="^mode is '%s'; it must be one of 'measure', 'exhaustive'" % mode):
            conv_fft.tune(LINES, "cpu", mode=mode)
        with pytest.raises(ValueError, match="^mode is "):
            conv_fft.autotune(mode).__enter__()


def test_record_writes_the_plans_of_a_script(tmp_path):
    """Records without torch, of a script that fails at its end."""
    script, out = tmp_path / "script.py", tmp_path / "layers.txt"
    script.write_text("import conv_fft, numpy, sys\nfor _ in range(2):\n"
                      "    conv_fft.forward(numpy.ones((1, 2, 9)), numpy.ones((3, 2, 5)))\n"
                      "sys.exit(3)\n")
    ended = subprocess.run([sys.executable, "-m", "conv_fft.record", "--out", str(out), str(script)],
                           capture_output=True, text=True)
    assert ended.returncode == 3 and "1 kinds of layers" in ended.stderr
    (problem,) = (conv_fft.Problem.parse(line) for line in out.read_text().splitlines() if not line.startswith("#"))
    assert problem.input_shape == (1, 2, 9) and problem.dtype == "float64"


@pytest.mark.parametrize("text", [None, "import conv_fft\n"])
def test_record_keeps_its_file_if_there_is_nothing_to_record(tmp_path, text):
    script, out = tmp_path / "script.py", tmp_path / "layers.txt"
    out.write_text("in=1x2x9 kernel=5\n")
    if text:
        script.write_text(text)
    ended = subprocess.run([sys.executable, "-m", "conv_fft.record", "--out", str(out), str(script)],
                           capture_output=True, text=True)
    assert ended.returncode == (0 if text else 1) and "ran no convolution" in ended.stderr
    assert out.read_text() == "in=1x2x9 kernel=5\n"


def test_candidates_of_some_passes():
    line = "in=2x3x16x16 out=4 kernel=5x5"
    for passes, sets in (("forward", {1}), (6, {6}), ("backward_data", {2}), ("all", {1, 6})):
        assert {c["passes"] for c in conv_fft.candidates(line, "cpu", passes=passes)} == sets
    for passes in (0, 8, "fprop"):
        with pytest.raises(ValueError, match="passes is %r; it must be" % passes):
            conv_fft.candidates(line, "cpu", passes=passes)
