# SPDX-License-Identifier: Apache-2.0
"""The examples run, and both trainings have the same losses."""
import re
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.parametrize("model", ["replknet", "convnext", "unet3d", "longconv"])
def test_train(model, device, tmp_path):
    ended = subprocess.run([sys.executable, str(EXAMPLES / "train.py"), "--model", model, "--steps", "3", "--batch",
                            "2", "--edge", "32", "--device", device, "--out", str(tmp_path)], capture_output=True,
                           text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"[1-9]\d* of its \d+ layers changed", ended.stdout), ended.stdout
    lines = (tmp_path / "losses.csv").read_text().splitlines()
    assert lines[0].startswith("# ") and lines[1] == "model,layers,step_ms,accuracy,losses" and len(lines) == 5
    theirs, ours, exact = ([float(loss) for loss in line.rpartition(",")[2].split()] for line in lines[2:])
    assert len(theirs) == 3
    for losses in (theirs, ours):
        assert losses[:2] == pytest.approx(exact[:2], rel=2e-3)  # rounding grows with the steps
    assert re.search(r"exact layers: torch's \d\.\de.\d\d, conv_fft's \d\.\de.\d\d$", ended.stdout, re.M), ended.stdout
    curves = xml.etree.ElementTree.parse(tmp_path / "losses.svg").getroot().findall("{*}polyline")
    assert [len(curve.get("points").split()) for curve in curves] == [3, 3]
