"""The batches of an epoch that the CPU prepares, one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from . import _native

if TYPE_CHECKING:
    from torch_geometric.data import Data as Batch


class Batches:
    """The batches of one epoch; dropping it, or leaving a loop over it, stops its threads.

    `to_data` makes PyG's data of a batch's arrays; `ended` is told what the epoch did.
    """

    def __init__(
        self,
        native: _native.Epoch,
        to_data: Callable[[_native.Batch], Batch],
        ended: Callable[[dict[str, Any]], None],
    ) -> None:
        self._native, self._to_data, self._ended = native, to_data, ended

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        batch = self._native.next()
        if batch is None:
            self.close()
            raise StopIteration
        return self._to_data(batch)

    def stats(self) -> dict[str, Any]:
        """What was done so far: bytes by tier, pages, seconds by stage."""
        stats: dict[str, Any] = json.loads(self._native.stats())
        return stats

    def close(self) -> None:
        """Ends the epoch."""
        self._native.close()
        self._ended(self.stats())
