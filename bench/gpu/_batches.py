"""What the batches of a loader cost, for the scripts that train."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

import tiergraph as tg

AHEAD = 4
"""Batches of an epoch after which as many are on their way as ever are."""


def per_batch(batches: Iterator[Any], work: Callable[[Any], None]) -> float:
    """Seconds a batch from the second one on, to the end."""
    work(next(batches))
    torch.cuda.synchronize()
    start, count = time.perf_counter(), 0
    for batch in batches:
        work(batch)
        count += 1
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count


class Middle(NamedTuple):
    """The middle of an epoch."""

    seconds: float
    """Seconds per batch."""
    counts: dict[str, float]
    """The loader's counters (`nodes`, `reads`, `bytes_ssd`, …), per batch."""


def middle(loader: tg.NeighborLoader, work: Callable[[Any], None] | None, batches: int) -> Middle:
    """What a batch takes and has, where as many others are on their way before it as after it.

    Neither an epoch's begin, where some batches lie ready, nor its end, which waits for those that
    nobody takes. Without `work` each is waited for.
    """
    work = work or (lambda _: torch.cuda.synchronize())
    with contextlib.closing(iter(loader)) as epoch:
        for batch in itertools.islice(epoch, AHEAD):
            work(batch)
        torch.cuda.synchronize()
        before, start, count = epoch.stats(), time.perf_counter(), 0
        for batch in itertools.islice(epoch, batches):
            work(batch)
            count += 1
        torch.cuda.synchronize()
        seconds, after = time.perf_counter() - start, epoch.stats()
    begun = max(after["batches"] - before["batches"], 1)
    numbers = {key for key, value in after.items() if isinstance(value, int | float)}
    counts = {key: (after[key] - before[key]) / begun for key in numbers}
    return Middle(seconds / count, counts)
