"""NetworKit: adjacency lists in memory, its own algorithms."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkit as nk
import numpy as np

from common import rmat

Fetch = Callable[[], Any]


def load(directory: str, kind: str) -> NetworKit:
    """Builds its graph from the arrays, with weights or without."""
    nk.setNumberOfThreads(int(os.environ["OMP_NUM_THREADS"]))
    return NetworKit(rmat.read(Path(directory)), kind == "weighted")


class NetworKit:
    """The commands on NetworKit. The conversion of results to arrays is not timed."""

    def __init__(self, edges: rmat.Edges, weighted: bool) -> None:
        ends = tuple(np.asarray(ids, dtype=np.uint64) for ids in (edges.src, edges.dst))
        weights = np.asarray(edges.weights, dtype=np.float64)
        given = (weights, ends) if weighted else ends
        self._graph = nk.GraphFromCoo(given, n=edges.vertices, weighted=weighted)

    def pagerank(self, iterations: int) -> Fetch:
        """Its PageRank, stopped after `iterations`."""
        sinks = nk.centrality.SinkHandling.DistributeSinks
        run = nk.centrality.PageRank(self._graph, 0.85, tol=0.0, distributeSinks=sinks)
        run.maxIterations = iterations
        run.run()
        if run.numberOfIterations() != iterations:
            raise RuntimeError(f"made {run.numberOfIterations()} of {iterations} iterations")
        return lambda: np.asarray(run.scores())

    def wcc(self) -> Fetch:
        """ParallelConnectedComponents: label propagation."""
        run = nk.components.ParallelConnectedComponents(self._graph).run()
        return lambda: np.asarray(run.getPartition().getVector())

    def bfs(self, source: int) -> Fetch:
        """Its BFS, without paths."""
        run = nk.distance.BFS(self._graph, source, storePaths=False).run()
        return lambda: _finite(np.asarray(run.getDistances()), -1)

    def sssp(self, source: int) -> Fetch:
        """Dijkstra, without paths."""
        run = nk.distance.Dijkstra(self._graph, source, storePaths=False).run()
        return lambda: _finite(np.asarray(run.getDistances()), np.inf)


def _finite(distances: Any, unreached: float) -> Any:
    """Its distance of a vertex that no path reaches is the largest float64."""
    return np.where(distances == np.finfo(np.float64).max, unreached, distances)
