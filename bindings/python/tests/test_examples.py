# SPDX-License-Identifier: Apache-2.0
"""The examples without torch: train.py says that torch is missing, and curves.py draws a file of losses."""
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(code):
    return subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, %r); %s" % (str(EXAMPLES), code)],
                          capture_output=True, text=True)


def test_a_missing_torch_is_named():
    ended = run("sys.modules['torch'] = None; import train")
    assert ended.returncode == 1 and ended.stderr.startswith("train.py: torch is not installed"), ended.stderr


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
