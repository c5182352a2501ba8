# SPDX-License-Identifier: Apache-2.0
"""The examples without torch and without a GPU: they run, or say what is missing. curves.py draws a file of losses."""
import re
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest
from conftest import HAS_GPU

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(code, *arguments):
    return subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, %r); %s" % (str(EXAMPLES), code),
                           *arguments], capture_output=True, text=True)


def run_script(name, missing=(), *arguments, **options):
    """An example as the program that it is. Packages of `missing` cannot be imported."""
    code = ("import runpy; sys.modules.update(dict.fromkeys(%r)); sys.argv[0] = %r;"
            "runpy.run_path(sys.argv[0], run_name='__main__')" % (list(missing), str(EXAMPLES / name)))
    return subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, %r); %s" % (str(EXAMPLES), code),
                           *arguments], capture_output=True, text=True, **options)


def test_numpy():
    ended = run_script("numpy_layer.py")
    assert ended.returncode == 0, ended.stderr
    assert re.match(r"y: relative error \d\.\de-0[678]\n", ended.stdout) and "with a plan: " in ended.stdout


@pytest.mark.parametrize("name", ["train.py", "torch_layer.py", "where_fft_wins.py"])
def test_a_missing_torch_is_named(name):
    ended = run_script(name, ["torch"])
    assert ended.returncode == 1 and ended.stderr.startswith(name + ": torch is not installed"), ended.stderr


def test_help_needs_no_torch():
    ended = run_script("train.py", ["torch", "numpy", "conv_fft"], "--help")
    assert ended.returncode == 0 and "--steps" in ended.stdout, ended.stderr
    for argument in ("--steps", "--batch", "--edge"):
        ended = run_script("train.py", ["torch"], argument, "0")
        assert ended.returncode == 2 and "%s: it is '0'; it must be" % argument in ended.stderr, ended.stderr


def test_cupy():
    ended = run_script("cupy_layer.py", ["cupy"])
    assert ended.returncode == 1 and ended.stderr.startswith("cupy_layer.py: CuPy is not installed"), ended.stderr
    ended = run_script("cupy_layer.py")
    if HAS_GPU and "CuPy is not installed" not in ended.stderr:
        assert ended.returncode == 0 and "relative error" in ended.stdout, ended.stderr
    else:
        assert ended.returncode == 1 and re.search("^cupy_layer.py: (CuPy is|it needs)", ended.stderr, re.M)


def test_curves_are_drawn(tmp_path):
    text = "# a <device>\nmodel,layers,step_ms,accuracy,losses\n"
    for name in ("one", "two", "three"):
        text += ('%s,torch,1.5,0.5,2 1 0.5 -0.25\n%s,conv_fft,0.5,0.5,2 1 0.4 -0.2\n'
                 '%s,"torch, exact",1.5,0.5,2 1 0.5 0.1\n' % ((name,) * 3))
    (tmp_path / "losses.csv").write_text(text)
    ended = run("import curves; curves.draw(%r, %r)" % (str(tmp_path / "losses.csv"), str(tmp_path / "losses.svg")))
    assert ended.returncode == 0, ended.stderr
    root = xml.etree.ElementTree.parse(tmp_path / "losses.svg").getroot()
    width, height = (float(root.get(name)) for name in ("width", "height"))
    lines = root.findall("{*}polyline")
    assert len(lines) == 6
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        assert len(points) == 4 and all(0 <= x <= width and 0 <= y <= height for x, y in points)
        assert [y for _, y in points] == sorted(y for _, y in points)  # a falling loss falls
    said = [text.text for text in root.findall("{*}text")]
    assert "torch, 1.50 ms a step" in said and any("a <device>" in text for text in said)
