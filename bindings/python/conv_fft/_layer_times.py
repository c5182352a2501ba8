# SPDX-License-Identifier: Apache-2.0
"""What conv_fft.torch.convert() has measured, kept beside the tuning records for its next run.

The file `torch-layers.jsonl` of the cache directory has one JSON object a line: a key, which says what was measured
where and by which versions, and the times. Of several lines with one key the last counts. Lines that cannot be read are
skipped. A file that cannot be used is as good as none: then everything is measured again."""
from __future__ import annotations

import json
import os
import stat
from pathlib import Path

NAME = "torch-layers.jsonl"
LIMIT = 8 << 20  # bytes; a longer file is begun anew
TIMES = ("torch_ms", "ours_ms", "torch_host_ms", "ours_host_ms", "predicted_ms")


def folder():
    """The cache directory, as conv_fft_context_options names it; None if there is none."""
    named = os.environ.get("CONV_FFT_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return Path(base) / "conv_fft"
    home = os.environ.get("HOME")
    return Path(home) / ".cache" / "conv_fft" if home and os.path.isabs(home) else None


def _trusted(path):
    """Whether nobody else can have written it."""
    found = os.stat(path)
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def read():
    """{key: {name: milliseconds or None}}"""
    found = {}
    try:
        path = folder() / NAME
        if not _trusted(path.parent) or not _trusted(path) or path.stat().st_size > LIMIT:
            return {}
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, TypeError):  # TypeError: there is no folder
        return {}
    for line in lines:
        try:
            entry = json.loads(line)
            key, times = entry["key"], {name: entry.get(name) for name in TIMES}
            if all(ms is None or (isinstance(ms, (int, float)) and 0 <= ms < 1e9) for ms in times.values()):
                found[key] = times
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def write(measured):
    """Append {key: {name: milliseconds or None}}. Failures are not reported: the times are measured again then."""
    if not measured:
        return
    lines = "".join(json.dumps({"key": key, **times}) + "\n" for key, times in measured.items()).encode()
    try:
        path = folder() / NAME
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _trusted(path.parent) or (path.exists() and not _trusted(path)):
            return
        fresh = path.exists() and path.stat().st_size + len(lines) > LIMIT
        # One write, so that lines of several processes do not mix.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if fresh else 0), 0o600)
        try:
            os.write(descriptor, lines)
        finally:
            os.close(descriptor)
    except (OSError, TypeError):
        return


def clear(directory=None):
    """Remove the file of a directory; None: the default one. Returns how many files were removed."""
    try:
        (folder() if directory is None else Path(os.fsdecode(directory))).joinpath(NAME).unlink()
        return 1
    except (OSError, AttributeError):
        return 0
