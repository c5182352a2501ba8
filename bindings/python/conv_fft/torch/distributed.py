# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training. All ranks have to choose the same strategies, as the slowest rank decides the time of a
step."""
from __future__ import annotations

import os
import tempfile

import torch.distributed as dist

from .. import cache
from ..tuning import forget_plans


def share_records(source: int = 0, group=None, device="auto") -> int:
    """Give the tuning records of rank `source` to all ranks of a group, and let them make new plans from these.

        if dist.get_rank() == 0:
            with conv_fft.autotune():
                model(x).sum().backward()
        conv_fft.torch.share_records()

    `device` is this rank's. All ranks have to call. Returns the number of records. Cache directories are not
    changed."""
    message = [None]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records.jsonl")
        if dist.get_rank() == source:
            cache.save(path, device)
            with open(path, "rb") as file:
                message = [file.read()]
        dist.broadcast_object_list(message, source, group)
        if dist.get_rank() != source and _has_records(message[0]):
            with open(path, "wb") as file:
                file.write(message[0])
            cache.load(path, device)
    forget_plans()
    return cache.stats(device)["records"]


def _has_records(content: bytes) -> bool:
    """The first line of a file of records is its header."""
    return len(content.splitlines()) > 1
