# SPDX-License-Identifier: Apache-2.0
"""The examples with torch run, and both trainings have the same losses."""
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from test_examples import EXAMPLES, run, run_script


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


def test_the_list_of_models():
    ended = run("import train, digits; print(train.MODELS == list(digits.MODELS))")
    assert ended.stdout == "True\n", ended.stderr


def test_torch_layer():
    ended = run_script("torch_layer.py")
    assert ended.returncode == 0, ended.stderr
    assert "relative differences" in ended.stdout and re.search(r"^1 +Conv2d\(16, 16, 21x21, groups=16\) .* changed",
                                                                ended.stdout, re.M), ended.stdout


def test_where_fft_wins(tmp_path):
    """On most machines without matplotlib: the table, and a sentence instead of the picture."""
    pictures = []
    for missing in ([], ["matplotlib"]):
        ended = run_script("where_fft_wins.py", missing, "--quick", cwd=tmp_path)
        rows = re.findall(r"^ ?\d+x\d+((?: +\d+\.\d\dx){2})$", ended.stdout, re.M)
        assert len(rows) == 4 and "depthwise, 8 channels" in ended.stdout, ended.stderr
        pictures.append((tmp_path / "where_fft_wins.svg").exists())
        if missing or ended.returncode:
            assert ended.returncode == 1 and "no picture, because matplotlib is not installed" in ended.stderr
        else:
            assert pictures == [True]
            (tmp_path / "where_fft_wins.svg").unlink()
    assert not pictures[1]
