"""scikit-network: SciPy's sparse matrices. It has no weighted shortest paths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sknetwork.path import get_distances
from sknetwork.ranking import PageRank
from sknetwork.topology import get_connected_components

from common import rmat

Fetch = Callable[[], Any]


def load(directory: str, kind: str) -> ScikitNetwork:
    """Builds the adjacency matrix from the arrays."""
    if kind == "weighted":
        raise NotImplementedError("it has no weighted shortest paths")
    return ScikitNetwork(rmat.read(Path(directory)))


class ScikitNetwork:
    """The commands on scikit-network."""

    def __init__(self, edges: rmat.Edges) -> None:
        once = sparse.csr_matrix(
            (np.ones(len(edges.src), dtype=np.float32), (edges.src, edges.dst)),
            shape=(edges.vertices, edges.vertices),
        )
        self._adjacency = (once + once.T).tocsr()

    def pagerank(self, iterations: int) -> Fetch:
        """Its power iteration, which starts elsewhere: equal once converged."""
        run = PageRank(damping_factor=0.85, solver="piteration", n_iter=iterations, tol=-1.0)
        scores = run.fit_predict(self._adjacency)
        return lambda: scores

    def wcc(self) -> Fetch:
        """SciPy's connected components."""
        labels = get_connected_components(self._adjacency, connection="weak")
        return lambda: labels

    def bfs(self, source: int) -> Fetch:
        """Distances in hops."""
        distances = get_distances(self._adjacency, source)
        return lambda: distances
