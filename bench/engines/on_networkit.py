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
    return NetworKit(Path(directory), kind == "weighted", kind == "directed")


class NetworKit:
    """The commands on NetworKit. The conversion of results to arrays is not timed."""

    def __init__(self, directory: Path, weighted: bool, directed: bool) -> None:
        self._directory, edges = directory, rmat.read(directory)
        ends = tuple(np.asarray(ids, dtype=np.uint64) for ids in (edges.src, edges.dst))
        weights = np.asarray(edges.weights, dtype=np.float64)
        given = (weights, ends) if weighted else ends
        self._graph = nk.GraphFromCoo(given, n=edges.vertices, weighted=weighted, directed=directed)
        self._graph.sortEdges()
        self._is_indexed = False

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

    def triangles(self) -> int:
        """TriangleEdgeScore, whose sum over edges is three times the triangles."""
        if not self._is_indexed:
            self._graph.indexEdges()
            self._is_indexed = True
        scores = nk.sparsification.TriangleEdgeScore(self._graph).run().scores()
        return int(np.asarray(scores, dtype=np.int64).sum()) // 3

    def clustering(self) -> float:
        """LocalClusteringCoefficient, the faster way that it has."""
        run = nk.centrality.LocalClusteringCoefficient(self._graph, turbo=True).run()
        return round(float(np.mean(run.scores())), 9)

    def kcore(self) -> int:
        """CoreDecomposition."""
        return int(nk.centrality.CoreDecomposition(self._graph).run().maxCoreNumber())

    def scc(self) -> int:
        """StronglyConnectedComponents."""
        return int(
            nk.components.StronglyConnectedComponents(self._graph).run().numberOfComponents()
        )

    def louvain(self) -> float:
        """PLM, parallel Louvain."""
        return self._modularity(nk.community.PLM(self._graph, refine=False))

    def leiden(self) -> float:
        """ParallelLeiden, with its defaults."""
        return self._modularity(nk.community.ParallelLeiden(self._graph))

    def betweenness(self, samples: int) -> float:
        """EstimateBetweenness from so many vertices."""
        run = nk.centrality.EstimateBetweenness(self._graph, samples, parallel=True).run()
        return float(np.max(run.scores()))

    def jaccard(self, pairs: int) -> float:
        """The sum over ends of edges, by chance, of its JaccardIndex."""
        given = rmat.ends_of_edges(self._directory, pairs).tolist()
        found = nk.linkprediction.JaccardIndex(self._graph).runOn(given)
        return round(sum(value for _, value in found), 4)

    def harmonic(self) -> float:
        """Its HyperBall: the effective diameter alone."""
        return float(
            nk.distance.EffectiveDiameterApproximation(self._graph).run().getEffectiveDiameter()
        )

    def _modularity(self, algorithm: Any) -> float:
        algorithm.run()
        return float(nk.community.Modularity().getQuality(algorithm.getPartition(), self._graph))


def _finite(distances: Any, unreached: float) -> Any:
    """Its distance of a vertex that no path reaches is the largest float64."""
    return np.where(distances == np.finfo(np.float64).max, unreached, distances)
