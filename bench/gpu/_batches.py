"""What the batches of a loader cost, for the scripts that train."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch


def per_batch(batches: Iterator[Any], work: Callable[[Any], None]) -> float:
    """Seconds a batch from the second one on."""
    work(next(batches))
    torch.cuda.synchronize()
    start, count = time.perf_counter(), 0
    for batch in batches:
        work(batch)
        count += 1
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count
