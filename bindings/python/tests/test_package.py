# SPDX-License-Identifier: Apache-2.0
"""The wheel, if the variable CONV_FFT_WHEEL names one, and the Python blocks of README.md and docs."""
import os
import re
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import HAS_TORCH

ROOT = Path(__file__).resolve().parents[3]
WHEEL = os.environ.get("CONV_FFT_WHEEL", "")


@pytest.mark.skipif(not WHEEL, reason="CONV_FFT_WHEEL names no wheel")
def test_wheel_is_small_and_for_every_python():
    assert re.search(r"-py3-none-(manylinux|linux)_\w+\.whl$", WHEEL)
    assert Path(WHEEL).stat().st_size < 15 * 2 ** 20
    names = zipfile.ZipFile(WHEEL).namelist()
    assert {"conv_fft/lib/libconv_fft.so", "conv_fft/torch/__init__.py", "conv_fft/py.typed"} <= set(names)
    written = zipfile.ZipFile(WHEEL).read("conv_fft/_version.py").decode()
    assert re.search(r'^version = "%s"$' % re.escape(Path(WHEEL).name.split("-")[1]), written, re.M)
    assert not [name for name in names if "cuda" in name.lower() and name.endswith(".so") or name.startswith("include")]


@pytest.mark.skipif(not WHEEL, reason="CONV_FFT_WHEEL names no wheel")
def test_wheel_works_in_a_fresh_environment(tmp_path):
    """The wheel works without NumPy, a compiler, and this machine's search paths."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", WHEEL], check=True)
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("CONV_FFT_LIBRARY", "PYTHONPATH", "LD_LIBRARY_PATH")}
    code = ("import conv_fft, array; plan = conv_fft.Plan('in=1x1x8 kernel=3 pad=same', 'cpu');"
            "x = array.array('f', range(8)); w = array.array('f', [0, 1, 0]); y = array.array('f', [9] * 8);"
            "ws = bytearray(plan.workspace[1]); at = lambda a: a.buffer_info()[0];"
            "import ctypes; held = (ctypes.c_char * max(len(ws), 1)).from_buffer(ws or bytearray(1));"
            "conv_fft._library.check(conv_fft._library.lib.conv_fft_forward(plan.handle, at(x), at(w), None, at(y),"
            " ctypes.addressof(held), len(ws), None)); print([round(v) for v in y], conv_fft.library_path)")
    said = subprocess.run([python, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert said.stdout.startswith("[0, 1, 2, 3, 4, 5, 6, 7] %s" % tmp_path), said.stderr
    library = Path(said.stdout.split("] ", 1)[1].strip())
    assert os.access(library.parent / "conv_fft" / "compile-kernel", os.X_OK)


def snippets():
    pages = ("README.md", "examples/README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md")))
    for page in pages:
        text = (ROOT / page).read_text()
        for number, code in enumerate(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S), 1):
            yield pytest.param(code, id="%s-%d" % (page, number),
                               marks=pytest.mark.skipif("torch" in code and not HAS_TORCH,
                                                        reason="no torch 2.6 or newer"))


@pytest.mark.parametrize("code", list(snippets()))
def test_snippet(code, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # As torchrun sets them, for one process.
    alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, **alone},
                           capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
