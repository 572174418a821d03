"""The batches of an epoch, one after the other."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self

from .. import _native
from ..errors import InputError

if TYPE_CHECKING:
    from .moving import Moved

END = object()
"""What comes after the last batch; a batch may be anything else."""


@dataclass
class Source:
    """A native epoch, and what makes PyG's data of the arrays of its batches."""

    native: _native.Epoch | _native.GpuEpoch
    collate: Callable[[Any], Any]

    def next(self) -> Any:
        """The next batch as it is handed over; `END` after the last."""
        batch = self.native.next()
        return END if batch is None else self.collate(batch)

    def stats(self) -> dict[str, Any]:
        """What was done so far: bytes by tier, pages, seconds by stage."""
        stats: dict[str, Any] = json.loads(self.native.stats())
        return stats

    def close(self) -> None:
        """Stops what prepares further batches."""
        self.native.close()


@dataclass
class Progress:
    """How far an epoch is."""

    epoch: int
    taken: int
    """Batches that were handed out, or left out at its begin."""
    batches: int


class Batches:
    """The batches of one epoch; dropping it, or leaving a loop over it, stops its threads.

    It belongs to the process that began it: it is neither forked nor pickled.
    """

    def __init__(
        self, source: Source | Moved, progress: Progress, ended: Callable[[dict[str, Any]], None]
    ) -> None:
        self._source, self._progress, self._ended = source, progress, ended
        self._process = os.getpid()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        self._check_process()
        batch = self._source.next()
        if batch is END:
            self.close()
            raise StopIteration
        self._progress.taken += 1
        return batch

    def stats(self) -> dict[str, Any]:
        """What was done so far: bytes by tier, pages, seconds by stage."""
        self._check_process()
        return self._source.stats()

    def close(self) -> None:
        """Ends the epoch."""
        self._check_process()
        self._source.close()
        self._ended(self._source.stats())

    def is_here(self) -> bool:
        """Whether this process began it."""
        return self._process == os.getpid()

    def _check_process(self) -> None:
        if not self.is_here():
            raise self._stays_here("use", "a forked process")

    def __reduce__(self) -> NoReturn:
        raise self._stays_here("pickle", "a pickle")

    def _stays_here(self, op: str, got: str) -> InputError:
        return InputError.of(
            f"{op} the batches of",
            f"epoch {self._progress.epoch}",
            expected="the process that began it",
            got=got,
            hint="hand over the loader: `loader.batches(first)` begins its next epoch there",
        )
