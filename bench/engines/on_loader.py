"""tiergraph's loader: several of one graph side by side, an epoch of one at a time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import tiergraph as tg
from tiergraph import pyg


def load(graph: str) -> OnLoader:
    """No loader is open yet; what loaders import when they are first used is imported."""
    pyg.geometric("data")
    return OnLoader(graph)


class OnLoader:
    """The commands."""

    def __init__(self, graph: str) -> None:
        self._graph = graph
        self._loaders: dict[str, tg.NeighborLoader] = {}

    def open(self, name: str, memory: str | int, seeds: str, **options: Any) -> dict[str, Any]:
        """Opens the loader `name` over the seeds in the file `seeds`; says what it keeps."""
        graph = tg.open(self._graph, memory=memory)
        chosen = np.load(seeds)
        loader = tg.NeighborLoader(graph, input_nodes=chosen, memory=memory, **options)
        self._loaders[name] = loader
        return loader.kept()

    def epoch(self, name: str, number: int) -> dict[str, Any]:
        """Epoch `number` of a loader, each batch dropped as soon as it is there.

        Epoch 0 is the one that was sampled to choose what is kept.
        """
        loader = self._loaders[name]
        loader.set_epoch(number)
        began = time.perf_counter()
        for batch in loader:
            del batch
        seconds = time.perf_counter() - began
        return loader.last_epoch | {"seconds": seconds}
