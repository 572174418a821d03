"""igraph: one thread, by far the most memory. Its PageRank runs to convergence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import igraph
import numpy as np

from common import rmat

Fetch = Callable[[], Any]


def load(directory: str, kind: str) -> Igraph:
    """Builds its graph from the arrays, with weights or without."""
    return Igraph(rmat.read(Path(directory)), kind == "weighted")


class Igraph:
    """The commands on igraph."""

    def __init__(self, edges: rmat.Edges, weighted: bool) -> None:
        ends = np.column_stack((edges.src, edges.dst)).astype(np.int64)
        self._graph = igraph.Graph(n=edges.vertices, edges=ends)
        del ends
        if weighted:
            self._graph.es["weight"] = np.asarray(edges.weights, dtype=np.float64).tolist()

    def pagerank(self, iterations: int) -> Fetch:
        """PRPACK to convergence: it cannot be told how many iterations."""
        del iterations
        ranks = self._graph.pagerank(directed=False, damping=0.85, implementation="prpack")
        return lambda: np.array(ranks)

    def wcc(self) -> Fetch:
        """Its connected components."""
        components = self._graph.connected_components(mode="weak")
        return lambda: np.array(components.membership)

    def bfs(self, source: int) -> Fetch:
        """Distances without weights."""
        hops = self._graph.distances(source=source)[0]
        return lambda: np.nan_to_num(np.array(hops), posinf=-1)

    def sssp(self, source: int) -> Fetch:
        """Distances by Dijkstra."""
        distances = self._graph.distances(source=source, weights="weight")[0]
        return lambda: np.array(distances)
