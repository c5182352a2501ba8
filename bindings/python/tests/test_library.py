# SPDX-License-Identifier: Apache-2.0
"""The bindings agree with the header, refuse another library, and import no package."""
import ctypes
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import conv_fft
import pytest
from conftest import HAS_TORCH
from conv_fft import _structs as structs
from conv_fft import errors

ROOT = Path(__file__).resolve().parents[3]
HEADER = ROOT / "include" / "conv_fft.h"
needs_header = pytest.mark.skipif(not HEADER.exists(), reason="the header is not here")

NAMES = {structs.ContextOptions: "conv_fft_context_options", structs.Problem: "conv_fft_problem",
         structs.PlanOptions: "conv_fft_plan_options", structs.Stage: "conv_fft_stage",
         structs.Description: "conv_fft_description", structs.TuneRecord: "conv_fft_tune_record",
         structs.TuneStatistics: "conv_fft_tune_statistics", structs.TuneCandidate: "conv_fft_tune_candidate"}


def c_name(field):
    return "pass" if field == "pass_" else field


@needs_header
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_structs_are_those_of_the_header(tmp_path):
    lines, wanted = [], []
    for struct, name in NAMES.items():
        lines.append('printf("%%zu\\n", sizeof(%s));' % name)
        wanted.append(ctypes.sizeof(struct))
        for field, *_ in struct._fields_:
            lines.append('printf("%%zu %%zu\\n", offsetof(%s, %s), sizeof((%s){0}.%s));'
                         % (name, c_name(field), name, c_name(field)))
            wanted.append("%d %d" % (getattr(struct, field).offset, getattr(struct, field).size))
    source = tmp_path / "layout.c"
    source.write_text('#include <conv_fft.h>\n#include <stdio.h>\nint main(void) {\n%s\nreturn 0; }\n'
                      % "\n".join(lines))
    subprocess.run(["cc", "-std=c11", "-I%s" % HEADER.parent, str(source), "-o", str(tmp_path / "layout")], check=True)
    said = subprocess.run([str(tmp_path / "layout")], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == [str(number) for number in wanted]


def listed(text, name):
    """The rows of the header's list CONV_FFT_name_LIST."""
    (body,) = re.findall(r"#define CONV_FFT_%s_LIST\(X\)((?:.*\\\n)*.*)" % name, text)
    return [re.split(r",\s*", row.replace('"', "")) for row in re.findall(r"X\((.*?)\)", body)]


@needs_header
def test_tables_are_the_lists_of_the_header():
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    for name, table in {"MATH": structs.MATHS, "PADDING": structs.PADDINGS, "LAYOUT": structs.LAYOUTS}.items():
        assert {word: int(value) for _, value, word in listed(text, name)} == table, name
    types = listed(text, "DTYPE")
    assert len(types) == len(structs.DTYPES)
    for (_, value, word, size, _bits), (name, number) in zip(types, structs.DTYPES.items()):
        assert (number, structs.ITEM_BYTES[name]) == (int(value), int(size)), name
        assert name.replace("float", "f" if name[0] == "b" else "fp") == word, name
    for name, value, _text in listed(text, "PASS"):
        short = "all" if name == "ALL_PASSES" else name.lower()
        assert getattr(structs, name) == structs.PASSES[short] == int(value), name
    assert len(structs.PASSES) == len(listed(text, "PASS"))


@needs_header
def test_constants_and_calls_are_those_of_the_header():
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    numbers = {name: int(value) for name, value in re.findall(r"\bCONV_FFT_(\w+)\s*=?\s+(-?\d+)\b", text)}
    for prefix, table in {"TUNE_": structs.TUNINGS, "KEEP_": structs.POLICIES}.items():
        for name, value in table.items():
            assert numbers[prefix + name.upper()] == value, prefix + name
    for name in ("MAX_RANK", "MAX_STAGES", "ABI", "DEVICE_AUTO", "DEVICE_CPU", "DTYPE_SAME", "ACCUMULATE_GX",
                 "ACCUMULATE_GW", "ACCUMULATE_GBIAS"):
        assert getattr(structs, name) == numbers[name], name
    statuses = {int(value): said for _, value, said in listed(text, "STATUS")}
    assert set(statuses) - {0} == set(errors.BY_STATUS)
    assert errors.NAMES == {number: said for number, said in statuses.items() if number}
    declared = set(re.findall(r"\b(conv_fft_\w+)\(", re.sub(r"#define.*", "", text)))
    unused = {"conv_fft_backward_data", "conv_fft_backward_weights", "conv_fft_plan_spectrum",
              "conv_fft_transform_weights", "conv_fft_forward_kept", "conv_fft_backward_kept"}
    assert declared - unused == set(structs.CALLS) | set(structs.OTHERS)
    # The number of parameters is that of the header.
    for name, parameters in structs.CALLS.items():
        (found,) = re.findall(r"\b%s\((.*?)\);" % name, text, re.S)
        assert len(found.split(",")) == len(parameters), name


def run_python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, **environment})


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("text, said", [("", "does not fit"), ("other", "binary interface 99")])
def test_another_library_is_refused(tmp_path, text, said):
    names = [*structs.CALLS, *structs.OTHERS] if text else ["conv_fft_version"]
    source = tmp_path / "fake.c"
    source.write_text("".join("int %s(void) { return 99; }\n" % name for name in names))
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(tmp_path / "fake.so")], check=True)
    ended = run_python("import conv_fft", CONV_FFT_LIBRARY=str(tmp_path / "fake.so"))
    assert ended.returncode == 1 and "ImportError" in ended.stderr
    assert said in ended.stderr and "fake.so" in ended.stderr


@pytest.mark.parametrize("found, good", [("1.4.0", True), ("1.4.9", True), ("1.5.0", True), ("1.3.9", False),
                                         ("2.4.0", False)])
def test_an_older_library_is_refused(found, good):
    from conv_fft import _library
    if good:
        _library._check_version(found, "lib.so", "1.4.2")
    else:
        with pytest.raises(ImportError, match=r"lib\.so is version %s.* version 1\.4\.2 " % re.escape(found)):
            _library._check_version(found, "lib.so", "1.4.2")


def test_a_missing_library_is_named(tmp_path):
    ended = run_python("import conv_fft", CONV_FFT_LIBRARY=str(tmp_path / "none.so"))
    assert ended.returncode == 1 and "ImportError" in ended.stderr and "none.so" in ended.stderr


def test_a_struct_of_another_size_is_refused(monkeypatch):
    from conv_fft import _library

    class Longer(ctypes.Structure):
        _fields_ = [*structs.Problem._fields_, ("more", ctypes.c_int64)]
    monkeypatch.setattr(structs, "Problem", Longer)
    with pytest.raises(ImportError, match="struct Longer of"):
        _library._check(_library.lib, "a library")


def test_everything_that_is_public_says_what_it_is():
    packages = ["conv_fft", "conv_fft.torch"] if HAS_TORCH else ["conv_fft"]
    public = [(package, name) for package in packages for name in importlib.import_module(package).__all__]
    modules = ["conv_fft.cache", "conv_fft.torch.functional"][:len(packages)]
    public += [(module, name) for module in modules for name, found in vars(importlib.import_module(module)).items()
               if getattr(found, "__module__", None) == module and not name.startswith("_")]
    assert ("conv_fft.cache", "merge") in public
    for module, name in public:
        found = getattr(importlib.import_module(module), name)
        has_text = not callable(found) or vars(found).get("__doc__", found.__doc__)
        assert has_text, "%s.%s has no docstring" % (module, name)


def test_import_brings_no_package_with_it():
    ended = run_python("import sys, conv_fft; packages = 'torch', 'numpy', 'cupy', 'jax', 'numba'; "
                       "print([name for name in packages if name in sys.modules])")
    assert ended.stdout.strip() == "[]", ended.stderr


def test_problem_lines():
    line = "in=8x16x32x30 out=32 kernel=9x3 stride=1x2 pad=4:4x1:0 groups=2 mode=circular dtype=bf16"
    problem = conv_fft.Problem.parse(line)
    assert problem.input_shape == (8, 16, 32, 30)
    assert problem.weight_shape == (32, 8, 9, 3) and problem.output_shape == (8, 32, 32, 15)
    same = conv_fft.Problem((8, 16, 32, 30), (32, 8, 9, 3), stride=(1, 2), padding=((4, 4), (1, 0)), groups=2,
                            padding_mode="circular", dtype="bfloat16")
    assert same == problem and hash(same) == hash(problem) and conv_fft.Problem.parse(same.line).line == problem.line
    last = conv_fft.Problem((8, 32, 30, 16), (32, 9, 3, 16), layout="last")
    assert last.output_shape == (8, 24, 28, 32) and "layout=last" in last.line
    plain = conv_fft.Problem((1, 1, 5), (1, 1, 3), dtype="float16")
    assert plain.weight_dtype == plain.weight_grad_dtype == "float16" and " w=" not in plain.line
    assert conv_fft.Problem((1, 1, 5), (1, 1, 3), dtype="float16", weight_dtype="float16") == plain
    master = conv_fft.Problem((1, 1, 5), (1, 1, 3), dtype="float16", weight_dtype="float32")
    assert master != plain and "dtype=fp16 w=fp32 math" in master.line
    assert master.weight_dtype == master.weight_grad_dtype == "float32" and master.dtype == "float16"
    assert conv_fft.Problem.parse(master.line).weight_dtype == "float32"
    with pytest.raises(conv_fft.InvalidArgument):
        conv_fft.Problem.parse("in=8x16")
    with pytest.raises(ValueError, match="padding_mode"):
        conv_fft.Problem((1, 1, 5), (1, 1, 3), padding_mode="mirror")


def test_devices_and_contexts():
    assert conv_fft.context("cpu") is conv_fft.context(-2) and conv_fft.context("cpu").device == -2
    assert "CPU" in conv_fft.context("cpu").description
    assert "libcuda" in conv_fft.devices()
    with pytest.raises(ValueError, match="device"):
        conv_fft.context("tpu")


def test_folders_of_wheels_come_after_what_the_user_named(tmp_path, monkeypatch):
    """The folders of pip's CUDA packages are found, and added to CONV_FFT_LIBRARY_PATH."""
    (tmp_path / "nvidia" / "cublas" / "lib").mkdir(parents=True)
    (tmp_path / "nvidia" / "cublas" / "lib" / "libcublas.so.13").touch()
    (tmp_path / "nvidia" / "__init__.py").touch()  # before any other package of this name
    (tmp_path / "nvidia" / "empty" / "lib").mkdir(parents=True)
    code = ("import os, conv_fft\nconv_fft.devices()\nconv_fft.devices()\n"
            "print(os.environ['CONV_FFT_LIBRARY_PATH'])")
    ended = run_python(code, PYTHONPATH="%s:%s" % (tmp_path, os.environ.get("PYTHONPATH", "")),
                       CONV_FFT_LIBRARY_PATH="/named")
    folders = ended.stdout.strip().split(":")
    assert folders[0] == "/named" and folders.count(str(tmp_path / "nvidia" / "cublas" / "lib")) == 1
    assert not any("empty" in folder for folder in folders)
