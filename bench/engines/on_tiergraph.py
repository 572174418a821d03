"""tiergraph, resident: a budget that holds the whole graph, as an in-memory library would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tiergraph as tg

Fetch = Callable[[], Any]
KEYS = ("seconds", "iterations", "bytes_read", "resident_bytes", "io_engine")


def load(directory: str, memory: str, threads: str) -> TierGraph:
    """Opens the graphs that the driver built: one without weights, one with them for SSSP."""
    return TierGraph(Path(directory), memory, int(threads))


class TierGraph:
    """The commands on tiergraph."""

    def __init__(self, directory: Path, memory: str, threads: int) -> None:
        self._plain = tg.open(directory / "plain.tg", memory=memory, threads=threads)
        self._weighted = tg.open(directory / "weighted.tg", memory=memory, threads=threads)
        self.details: dict[str, Any] = {}

    def pagerank(self, iterations: int) -> Fetch:
        """Exactly `iterations`."""
        return self._done(self._plain, self._plain.pagerank(iterations=iterations, tolerance=None))

    def wcc(self) -> Fetch:
        """Components by their smallest vertex."""
        return self._done(self._plain, self._plain.wcc())

    def bfs(self, source: int) -> Fetch:
        """Hops."""
        return self._done(self._plain, self._plain.bfs(source))

    def sssp(self, source: int) -> Fetch:
        """Least weights."""
        return self._done(self._weighted, self._weighted.sssp(source))

    def _done(self, graph: tg.Graph, values: Any) -> Fetch:
        self.details = {key: graph.last_run[key] for key in KEYS}
        return lambda: values
