# SPDX-License-Identifier: Apache-2.0
"""The wheel, if the variable CONV_FFT_WHEEL names one, and the Python blocks of README.md and docs."""
import os
import re
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import conv_fft
import pytest
from conftest import HAS_TORCH
from conv_fft.tuning import read_problems

ROOT = Path(__file__).resolve().parents[3]
WHEEL = os.environ.get("CONV_FFT_WHEEL", "")


@pytest.mark.skipif(not WHEEL, reason="CONV_FFT_WHEEL names no wheel")
def test_wheel_is_small_and_for_every_python():
    assert re.search(r"-py3-none-(many)?linux[\w.]+\.whl$", WHEEL)
    assert Path(WHEEL).stat().st_size < 15 * 2 ** 20
    names = zipfile.ZipFile(WHEEL).namelist()
    assert {"conv_fft/lib/libconv_fft.so", "conv_fft/torch/__init__.py", "conv_fft/py.typed"} <= set(names)
    # No library is left for auditwheel to rename: OpenBLAS shall share the OpenMP runtime, which it finds by soname.
    assert not [name for name in names if ".libs/" in name]
    for folder, suffix in ("networks", "txt"), ("tuning/nvidia-h200", "jsonl"):
        source = {"conv_fft/share/conv_fft/%s/%s" % (folder, path.name)
                  for path in (ROOT / folder).glob("*." + suffix)}
        assert source and source <= set(names)
    written = zipfile.ZipFile(WHEEL).read("conv_fft/_version.py").decode()
    assert re.search(r'^version = "%s"$' % re.escape(Path(WHEEL).name.split("-")[1]), written, re.M)
    assert not [name for name in names if "cuda" in name.lower() and name.endswith(".so") or name.startswith("include")]


CLEAN = {name: value for name, value in os.environ.items()
         if name not in ("CONV_FFT_LIBRARY", "PYTHONPATH", "LD_LIBRARY_PATH")}


@pytest.fixture(scope="module")
def fresh_python(tmp_path_factory):
    """The Python of a new environment in which only the wheel is installed."""
    if not WHEEL:
        pytest.skip("CONV_FFT_WHEEL names no wheel")
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", WHEEL], check=True)
    return python


def test_wheel_works_in_a_fresh_environment(fresh_python, tmp_path):
    """The wheel works without NumPy, a compiler, and this machine's search paths."""
    code = ("import conv_fft, array; plan = conv_fft.Plan('in=1x1x8 kernel=3 pad=same', 'cpu');"
            "x = array.array('f', range(8)); w = array.array('f', [0, 1, 0]); y = array.array('f', [9] * 8);"
            "ws = bytearray(plan.workspace[1]); at = lambda a: a.buffer_info()[0];"
            "import ctypes; held = (ctypes.c_char * max(len(ws), 1)).from_buffer(ws or bytearray(1));"
            "conv_fft._library.check(conv_fft._library.lib.conv_fft_forward(plan.handle, at(x), at(w), None, at(y),"
            " ctypes.addressof(held), len(ws), None)); print([round(v) for v in y], conv_fft.library_path)")
    said = subprocess.run([fresh_python, "-c", code], env=CLEAN, cwd=tmp_path, capture_output=True, text=True)
    assert said.stdout.startswith("[0, 1, 2, 3, 4, 5, 6, 7] %s" % Path(fresh_python).parents[1]), said.stderr
    library = Path(said.stdout.split("] ", 1)[1].strip())
    assert os.access(library.parent / "conv_fft" / "compile-kernel", os.X_OK)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_wheel_computes_on_threads(fresh_python, tmp_path):
    code = "import conv_fft; print(conv_fft.context('cpu').description)"
    said = subprocess.run([fresh_python, "-c", code], env={**CLEAN, "OMP_NUM_THREADS": "2"}, cwd=tmp_path,
                          capture_output=True, text=True)
    assert ", 2 threads," in said.stdout, said.stdout + said.stderr


@pytest.mark.parametrize("command", [["conv-fft"], ["python", "-m", "conv_fft"]], ids=lambda words: words[-1])
def test_program_of_the_wheel(command, fresh_python, tmp_path):
    """Both ways run the program, give its exit status, and find the networks of the wheel."""
    environment = {**CLEAN, "CONV_FFT_CACHE_DIR": str(tmp_path), "CONV_FFT_LOG": "silent"}

    def run(*words):
        return subprocess.run([str(Path(fresh_python).parent / command[0]), *command[1:], *words], cwd=tmp_path,
                              env=environment, capture_output=True, text=True)

    version = run("--version")
    assert re.fullmatch(r"conv-fft \d+\.\d+\.\d+\n", version.stdout), version.stderr
    explained = run("explain", "--device", "cpu", "--file", "networks/causal.txt")
    assert explained.returncode == 0 and "staged" in explained.stdout, explained.stderr
    wrong = run("explain", "in=1x1x8", "kernel=0")
    assert wrong.returncode == 1 and wrong.stderr.startswith("conv-fft: "), wrong.stderr


def test_program_of_a_source_tree_is_missed():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "bindings" / "python"),
                   "CONV_FFT_LIBRARY": conv_fft.library_path}
    ended = subprocess.run([sys.executable, "-m", "conv_fft", "devices"], env=environment,
                           cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.startswith("conv-fft: there is no program %s" % (ROOT / "bindings" / "python")), ended.stderr


def test_networks_are_found_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (Path(conv_fft.data_folder) / "tuning" / "nvidia-h200" / "alexnet.jsonl").is_file()
    assert len(read_problems("networks/alexnet.txt")[0]) == 5
    with pytest.raises(FileNotFoundError, match="'networks/none.txt'"):
        read_problems("networks/none.txt")
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "alexnet.txt").write_text("in=1x1x8 kernel=3\n")  # a file in this folder comes first
    assert len(read_problems("networks/alexnet.txt")[0]) == 1


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
    alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
             "USE_LIBUV": "0"}  # Debian's torch has none
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, **alone},
                           capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
