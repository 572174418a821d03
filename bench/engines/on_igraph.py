"""igraph: one thread, by far the most memory. Its PageRank runs to convergence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import igraph
import numpy as np

import _edges

Fetch = Callable[[], Any]


def load(directory: str) -> Igraph:
    """Builds its graph from the arrays."""
    return Igraph(_edges.read(Path(directory)))


class Igraph:
    """The commands on igraph."""

    def __init__(self, edges: _edges.Edges) -> None:
        ends = np.column_stack((edges.src, edges.dst)).astype(np.int64)
        self._graph = igraph.Graph(n=edges.vertices, edges=ends)
        self._weights = edges.weights

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
        """Distances by Dijkstra; the weights become Python's floats the first time."""
        if "weight" not in self._graph.es.attributes():
            self._graph.es["weight"] = np.asarray(self._weights, dtype=np.float64).tolist()
        distances = self._graph.distances(source=source, weights="weight")[0]
        return lambda: np.array(distances)
