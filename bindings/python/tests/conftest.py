# SPDX-License-Identifier: Apache-2.0
"""Common parts of the tests. Tests that need torch or a GPU are skipped, and counted, on machines without it."""
import collections
import os
import tempfile

# The user's records and kernels must not change a result. GPU tests may name another folder with compiled kernels.
os.environ.setdefault("CONV_FFT_CACHE_DIR", tempfile.mkdtemp(prefix="conv_fft-tests-"))
os.environ["CONV_FFT_TUNE_PATH"] = os.environ["CONV_FFT_RECORD"] = ""
os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy  # noqa: E402
import pytest  # noqa: E402

try:
    import torch
    HAS_TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 6)
except (ImportError, OSError):  # OSError: a library that it is linked with is missing
    HAS_TORCH = False
HAS_GPU = HAS_TORCH and torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0)

# The random tests begin with this number. The Makefile takes it from the commit, and the last lines of a run name it.
SEED = int(os.environ.get("CONV_FFT_TEST_SEED") or "1", 0) % 1000000

GPU = pytest.param("cuda", marks=pytest.mark.skipif(not HAS_GPU, reason="no GPU"))


def pytest_configure():
    if "torch" in os.environ.get("CONV_FFT_TEST_REQUIRE", "").split() and not HAS_TORCH:
        pytest.exit("CONV_FFT_TEST_REQUIRE names torch, and there is no torch 2.6 or newer", returncode=1)


def pytest_collection_modifyitems(items):
    """Skips files of tests that need torch. They import it within their tests."""
    for item in items:
        if item.path.name.startswith("test_torch") and not HAS_TORCH:
            item.add_marker(pytest.mark.skip(reason="no torch 2.6 or newer"))


def pytest_terminal_summary(terminalreporter):
    """How many tests were skipped, by reason."""
    reasons = collections.Counter(report.longrepr[2].removeprefix("Skipped: ")
                                  for report in terminalreporter.getreports("skipped"))
    for reason, count in reasons.most_common():
        terminalreporter.write_line("skipped: %d: %s" % (count, reason))
    terminalreporter.write_line("seed of this run: CONV_FFT_TEST_SEED=%d" % SEED)


@pytest.fixture(params=["cpu", GPU])
def device(request):
    return request.param


@pytest.fixture(autouse=True)
def fp32_is_exact(monkeypatch):
    """torch allows TF32 in convolutions unless it is told otherwise, and layers obey. Results are compared as FP32."""
    if HAS_GPU:
        monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.fixture
def random():
    return numpy.random.default_rng(SEED)
