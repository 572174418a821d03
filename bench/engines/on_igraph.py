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
    return Igraph(Path(directory), kind == "weighted", kind == "directed")


class Igraph:
    """The commands on igraph."""

    def __init__(self, directory: Path, weighted: bool, directed: bool) -> None:
        self._directory, edges = directory, rmat.read(directory)
        ends = np.column_stack((edges.src, edges.dst)).astype(np.int64)
        self._graph = igraph.Graph(n=edges.vertices, edges=ends, directed=directed)
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

    def triangles(self) -> int:
        """The closed paths of two edges, from its transitivity and the degrees."""
        degrees = np.array(self._graph.degree(), dtype=np.float64)
        paths = float((degrees * (degrees - 1) / 2).sum())
        return round(self._graph.transitivity_undirected() * paths / 3)

    def clustering(self) -> float:
        """The mean of its local transitivity."""
        return round(float(np.mean(self._graph.transitivity_local_undirected(mode="zero"))), 9)

    def kcore(self) -> int:
        """coreness."""
        return int(max(self._graph.coreness()))

    def scc(self) -> int:
        """Its strongly connected components."""
        return len(self._graph.connected_components(mode="strong"))

    def louvain(self) -> float:
        """community_multilevel."""
        return float(self._graph.community_multilevel().modularity)

    def leiden(self) -> float:
        """community_leiden, two iterations."""
        found = self._graph.community_leiden(objective_function="modularity", n_iterations=2)
        return float(found.modularity)

    def betweenness(self, samples: int) -> float:
        """From the first so many vertices with edges."""
        sources = [v for v in range(self._graph.vcount()) if self._graph.degree(v) > 0][:samples]
        return float(max(self._graph.betweenness(sources=sources)))

    def jaccard(self, pairs: int) -> float:
        """The sum over ends of edges, by chance, of similarity_jaccard."""
        given = rmat.ends_of_edges(self._directory, pairs)
        return round(sum(self._graph.similarity_jaccard(pairs=given, loops=False)), 4)

    def coloring(self) -> int:
        """vertex_coloring_greedy."""
        return max(self._graph.vertex_coloring_greedy()) + 1
