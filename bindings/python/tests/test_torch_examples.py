# SPDX-License-Identifier: Apache-2.0
"""The examples run, and train both networks alike."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.parametrize("model", ["replknet", "convnext", "unet3d", "longconv"])
def test_train(model, device, tmp_path):
    ended = subprocess.run([sys.executable, str(EXAMPLES / "train.py"), "--model", model, "--steps", "3", "--batch", "2", "--device", device,
                            "--out", str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"[1-9]\d* of its \d+ layers changed", ended.stdout), ended.stdout
    rows = (tmp_path / model / "losses.csv").read_text().split()
    assert len(rows) == 4
    for row in rows[1:3]:  # rounding grows with the steps
        _, theirs, ours = row.split(",")
        assert float(ours) == pytest.approx(float(theirs), rel=2e-3)
