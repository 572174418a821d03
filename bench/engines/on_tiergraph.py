"""tiergraph, resident: a budget that holds the whole graph, as an in-memory library would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tiergraph as tg

Fetch = Callable[[], Any]
KEYS = ("seconds", "iterations", "bytes_read", "resident_bytes", "io_engine")


def load(directory: str, kind: str, memory: str, threads: str) -> TierGraph:
    """Opens the graph that the driver built, with weights or without."""
    return TierGraph(Path(directory) / f"{kind}.tg", memory, int(threads))


class TierGraph:
    """The commands on tiergraph."""

    def __init__(self, path: Path, memory: str, threads: int) -> None:
        self._graph = tg.open(path, memory=memory, threads=threads)
        self.details: dict[str, Any] = {}

    def pagerank(self, iterations: int) -> Fetch:
        """Exactly `iterations`."""
        return self._done(self._graph.pagerank(iterations=iterations, tolerance=None))

    def wcc(self) -> Fetch:
        """Components by their smallest vertex."""
        return self._done(self._graph.wcc())

    def bfs(self, source: int) -> Fetch:
        """Hops."""
        return self._done(self._graph.bfs(source))

    def sssp(self, source: int) -> Fetch:
        """Least weights."""
        return self._done(self._graph.sssp(source))

    def _done(self, values: Any) -> Fetch:
        self.details = {key: self._graph.last_run[key] for key in KEYS}
        return lambda: values
