"""SuiteSparse:GraphBLAS through python-graphblas: LAGraph's algorithms, written with semirings."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import graphblas as gb
import numpy as np
from graphblas import Matrix, Vector, binary, semiring
from scipy import sparse

from common import rmat

Fetch = Callable[[], Any]

DAMPING = 0.85
PULL_ABOVE = 1 / 16
"""The share of vertices in the frontier from which a BFS level pulls."""
DELTA = 0.1
"""Width of SSSP's buckets, for weights even in (0, 1)."""


def load(directory: str, kind: str) -> GraphBLAS:
    """Builds the matrix from the arrays, with weights or all 1."""
    gb.ss.config["nthreads"] = int(os.environ["OMP_NUM_THREADS"])
    return GraphBLAS(rmat.read(Path(directory)), kind == "weighted")


class GraphBLAS:
    """The commands on SuiteSparse:GraphBLAS."""

    def __init__(self, edges: rmat.Edges, weighted: bool) -> None:
        n = self._n = edges.vertices
        once = sparse.csr_matrix((edges.weights, (edges.src, edges.dst)), shape=(n, n))
        both = (once + once.T).tocsr()
        del once
        self._degrees = np.diff(both.indptr).astype(np.float32)
        if weighted:
            # Split beforehand, as a user with several sources would. A Python float compared with
            # float32 entries selects none.
            weights, delta = _matrix(both, both.data), np.float32(DELTA)
            self._light = weights.select("<=", delta).new()
            self._heavy = weights.select(">", delta).new()
        else:
            self._pattern = _matrix(both, np.float32(1))

    def pagerank(self, iterations: int) -> Fetch:
        """LAGraph's PageRank: plus_second, float32, the mass of sinks spread evenly."""
        n, sinks = self._n, self._degrees == 0
        scale = Vector.from_dense(DAMPING / np.maximum(self._degrees, 1))
        sink_mask = Vector.from_coo(np.flatnonzero(sinks), np.float32(1), size=n)
        rank = Vector.from_scalar(1 / n, n, dtype=gb.dtypes.FP32)
        for _ in range(iterations):
            lost = (sink_mask.ewise_mult(rank, binary.second)).reduce().get(0.0)
            share = binary.times(rank & scale).new()
            rank = Vector.from_scalar(((1 - DAMPING) + DAMPING * lost) / n, n, dtype=gb.dtypes.FP32)
            rank(binary.plus) << self._pattern.mxv(share, semiring.plus_second)
        rank.wait()
        return rank.to_dense

    def wcc(self) -> Fetch:
        """FastSV (Zhang, Azad, Hu, SIAM PP 2020): min_second, hooking, shortcutting."""
        parent = np.arange(self._n, dtype=np.int64)
        grandparent = parent
        while True:
            least = Vector.from_dense(grandparent)
            least(binary.min) << self._pattern.mxv(
                Vector.from_dense(grandparent), semiring.min_second
            )
            near = least.to_dense()
            hooked = Vector.from_coo(parent, near, size=self._n, dup_op=binary.min)
            parent = np.minimum(parent, hooked.to_dense(fill_value=self._n))
            parent = np.minimum(np.minimum(parent, near), grandparent)
            following = parent[parent]
            if np.array_equal(following, grandparent):
                return lambda: parent
            grandparent = following

    def bfs(self, source: int) -> Fetch:
        """Direction-optimising: any_pair, pushed from small frontiers, pulled from large ones."""
        levels = Vector(gb.dtypes.INT32, self._n)
        frontier = Vector.from_coo([source], True, size=self._n)
        level = 0
        while frontier.nvals:
            levels(frontier.S) << level
            mask = ~levels.S
            if frontier.nvals > PULL_ABOVE * self._n:
                reached = self._pattern.mxv(frontier, semiring.any_pair)
            else:
                reached = frontier.vxm(self._pattern, semiring.any_pair)
            frontier(mask, replace=True) << reached
            level += 1
        return lambda: levels.to_dense(fill_value=-1)

    def sssp(self, source: int) -> Fetch:
        """Delta-stepping (Sridhar et al., IPDPSW 2019): a bucket's light edges, then heavy."""
        distance = Vector.from_coo([source], 0.0, size=self._n, dtype=gb.dtypes.FP64)
        bucket = 0
        while True:
            pending = distance.select(">=", bucket * DELTA).new()
            if pending.nvals == 0:
                return lambda: distance.to_dense(fill_value=np.inf)
            bucket = max(bucket, int(pending.reduce(gb.monoid.min).get() / DELTA))
            settled = self._light_phase(distance, bucket)
            _relax(distance, settled, self._heavy)
            bucket += 1

    def _light_phase(self, distance: Vector, bucket: int) -> Vector:
        """Relaxes light edges until the bucket stays empty; what was in it."""
        active = distance.select(">=", bucket * DELTA).new()
        active = active.select("<", (bucket + 1) * DELTA).new()
        settled = Vector(gb.dtypes.FP64, self._n)
        while active.nvals:
            settled(active.S) << active
            improved = _relax(distance, active, self._light)
            active = improved.select("<", (bucket + 1) * DELTA).new()
        return settled


def _matrix(csr: sparse.csr_matrix, values: Any) -> Matrix:
    return Matrix.from_csr(csr.indptr, csr.indices, values, ncols=csr.shape[1])


def _relax(distance: Vector, active: Vector, matrix: Matrix) -> Vector:
    """Lowers `distance` over the edges from `active`; the entries that fell, with their values."""
    offers = active.vxm(matrix, semiring.min_plus).new(dtype=gb.dtypes.FP64)
    worse = offers.ewise_mult(distance, binary.ge).new()
    improved = offers.dup(mask=~worse.V)
    distance(binary.min) << improved
    return improved
