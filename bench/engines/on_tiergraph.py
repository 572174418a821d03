"""tiergraph, resident: a budget that holds the whole graph, as an in-memory library would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tiergraph as tg
from common import rmat

Fetch = Callable[[], Any]
KEYS = ("seconds", "iterations", "bytes_read", "resident_bytes", "io_engine")


def load(directory: str, kind: str, memory: str, threads: str) -> TierGraph:
    """Opens the graph that the driver built, with weights or without."""
    return TierGraph(Path(directory) / f"{kind}.tg", memory, int(threads))


class TierGraph:
    """The commands on tiergraph."""

    def __init__(self, path: Path, memory: str, threads: int) -> None:
        self._graph = tg.open(path, memory=memory, threads=threads)
        self._directory = path.parent
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

    def triangles(self) -> int:
        """All of them."""
        return self._number("triangles", "triangles")

    def clustering(self) -> float:
        """The mean of all coefficients."""
        return round(self._number("clustering", "average_clustering"), 9)

    def kcore(self) -> int:
        """The largest core."""
        return self._number("kcore", "largest_core")

    def scc(self) -> int:
        """The number of strong components."""
        return self._number("scc", "components")

    def louvain(self) -> float:
        """The modularity."""
        return self._number("louvain", "modularity")

    def leiden(self) -> float:
        """The modularity."""
        return self._number("leiden", "modularity")

    def betweenness(self, samples: int) -> float:
        """The bound of the estimate's error."""
        return self._number("betweenness", "error_bound", samples=samples)

    def coloring(self) -> int:
        """The number of colours."""
        return self._number("coloring", "colors")

    def independent_set(self) -> int:
        """The size of the set."""
        return self._number("independent_set", "size")

    def cdlp(self) -> int:
        """The number of communities after 10 iterations."""
        return self._number("cdlp", "communities")

    def jaccard(self, pairs: int) -> float:
        """The sum over ends of edges, by chance, that its similarity says."""
        return round(
            float(self._graph.similarity(rmat.ends_of_edges(self._directory, pairs)).sum()), 4
        )

    def harmonic(self) -> float:
        """The effective diameter."""
        return self._number("harmonic", "effective_diameter")

    def _number(self, name: str, key: str, **options: Any) -> Any:
        self._graph.run(name, **options)
        return self._graph.last_run[key]

    def _done(self, values: Any) -> Fetch:
        self.details = {key: self._graph.last_run[key] for key in KEYS}
        return lambda: values
