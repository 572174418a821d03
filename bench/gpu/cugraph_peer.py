"""cuGraph (`pylibcugraph`) doing what `resident.py` measures."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np
import pylibcugraph
import rmm
from _adjacency import Adjacency, adjacency, order
from numpy.typing import NDArray

VERSION = pylibcugraph.__version__
POOL_BYTES = 8 << 30
"""What the pool begins with: without one, every call's scratch memory is a `cudaMalloc`."""
FEW, MANY = 5, 15
"""PageRank's seconds an iteration are the difference of these two runs by their iterations."""
NEVER = 1e-30
"""A tolerance that no iteration meets."""


class Peer:
    """One graph in GPU memory, numbered anew by cuGraph: its kernels count on its own order.

    Stored by destinations, without weights, for PageRank, and by sources for the others.
    """

    def __init__(self, path: Path) -> None:
        """Of the graph at `path`, codec `raw`, re-ordered."""
        memory = _memory()
        self._handle = pylibcugraph.ResourceHandle()
        self._order = order(path)
        self._own = np.empty(len(self._order), dtype=np.int32)
        self._own[self._order] = np.arange(len(self._order), dtype=np.int32)
        self.undirected = not json.loads((path / "manifest.json").read_text())["directed"]
        read = adjacency(path)
        self.arcs = len(read.indices)
        before = memory.allocation_counts.current_bytes
        self._by_destination = self._graph(read._replace(weights=None), transposed=True)
        self.pagerank_bytes = memory.allocation_counts.current_bytes - before
        self._by_source = self._graph(read, transposed=False)

    def pagerank(self, iterations: int) -> NDArray[Any]:
        """The ranks in the order of the user's ids, as all results here."""
        vertices, ranks, _ = self._pagerank(iterations)
        return self._to_user(vertices, ranks)

    def iteration_seconds(self) -> float:
        """Seconds of one iteration of PageRank, its set-up left out."""
        few, many = (_seconds(lambda n=n: self._unconverged(n)) for n in (FEW, MANY))
        return (many - few) / (MANY - FEW)

    def bfs(self, source: int) -> NDArray[Any]:
        """Hops, or -1."""
        depths, _, vertices = self._bfs(source)
        return self._to_user(vertices, cp.where(depths == np.iinfo(np.int32).max, -1, depths))

    def sssp(self, source: int) -> NDArray[Any]:
        """Distances, or `inf`."""
        vertices, distances, _ = self._sssp(source)
        unreached = distances == np.finfo(distances.dtype).max
        return self._to_user(vertices, cp.where(unreached, np.inf, distances))

    def wcc(self) -> NDArray[Any]:
        """A component's label; any, but one a component."""
        return self._to_user(*self._wcc())

    def seconds(self, algorithm: str, *source: int) -> tuple[float, float]:
        """Seconds of a traversal, and of the whole call.

        The call begins with what is the same from every source: it looks the source up, counts
        degrees, averages weights; it ends by copying results. A call that stops after one hop has
        these too, and is subtracted. WCC has no such stop: the two are equal.
        """
        if algorithm == "wcc":
            call = _seconds(self._wcc)
            return call, call
        stopped: Callable[[], object]
        if algorithm == "bfs":
            whole, stopped = lambda: self._bfs(*source), lambda: self._bfs(*source, depth=1)
        else:
            whole, stopped = lambda: self._sssp(*source), lambda: self._sssp(*source, cutoff=0.5)
        call = _seconds(whole)
        return call - _seconds(stopped), call

    def _graph(self, read: Adjacency, *, transposed: bool) -> pylibcugraph.SGGraph:
        vertices = len(read.indptr) - 1
        rows = np.repeat(np.arange(vertices, dtype=np.int32), np.diff(read.indptr))
        properties = pylibcugraph.GraphProperties(is_symmetric=self.undirected, is_multigraph=True)
        graph = pylibcugraph.SGGraph(
            self._handle,
            properties,
            cp.asarray(read.indices),
            cp.asarray(rows),
            weight_array=None if read.weights is None else cp.asarray(read.weights),
            vertices_array=cp.arange(vertices, dtype=np.int32),
            store_transposed=transposed,
            renumber=True,
            do_expensive_check=False,
        )
        cp.get_default_memory_pool().free_all_blocks()
        return graph

    def _unconverged(self, iterations: int) -> None:
        *_, converged = self._pagerank(iterations)
        if converged:
            raise RuntimeError(f"cuGraph's PageRank stopped before {iterations} iterations")

    def _pagerank(self, iterations: int) -> tuple[cp.ndarray, cp.ndarray, bool]:
        return pylibcugraph.pagerank(
            self._handle,
            self._by_destination,
            None,
            None,
            None,
            None,
            alpha=0.85,
            epsilon=NEVER,
            max_iterations=iterations,
            do_expensive_check=False,
            fail_on_nonconvergence=False,
        )

    def _bfs(self, source: int, depth: int = -1) -> tuple[cp.ndarray, ...]:
        sources = cp.asarray(self._own[source : source + 1])
        return pylibcugraph.bfs(
            self._handle, self._by_source, sources, self.undirected, depth, False, False
        )

    def _sssp(self, source: int, cutoff: float = float("inf")) -> tuple[cp.ndarray, ...]:
        return pylibcugraph.sssp(
            self._handle, self._by_source, int(self._own[source]), cutoff, True, False
        )

    def _wcc(self) -> tuple[cp.ndarray, cp.ndarray]:
        return pylibcugraph.weakly_connected_components(
            self._handle, self._by_source, None, None, None, None, False
        )

    def _to_user(self, vertices: cp.ndarray, values: cp.ndarray) -> NDArray[Any]:
        result = np.empty(len(self._order), dtype=values.dtype)
        result[self._order[vertices.get()]] = values.get()
        return result


def _seconds(call: Callable[[], object]) -> float:
    cp.cuda.Device().synchronize()
    begin = time.perf_counter()
    call()
    cp.cuda.Device().synchronize()
    return time.perf_counter() - begin


def _memory() -> rmm.mr.StatisticsResourceAdaptor:
    """A pool for cuGraph, as its guide advises, that counts what is in use."""
    current = rmm.mr.get_current_device_resource()
    if not isinstance(current, rmm.mr.StatisticsResourceAdaptor):
        pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), POOL_BYTES)
        current = rmm.mr.StatisticsResourceAdaptor(pool)
        rmm.mr.set_current_device_resource(current)
    return current


class OfLists:
    """One undirected graph in GPU memory, for the algorithms that `lists.py` measures."""

    def __init__(self, src: NDArray[np.int32], dst: NDArray[np.int32], vertices: int) -> None:
        """A graph of edges, each of which is given once."""
        _memory()
        self._handle = pylibcugraph.ResourceHandle()
        begin = time.perf_counter()
        ends = [cp.asarray(ids) for ids in (src, dst)]
        self._graph = pylibcugraph.SGGraph(
            self._handle,
            pylibcugraph.GraphProperties(is_symmetric=True, is_multigraph=False),
            cp.concatenate(ends),
            cp.concatenate(ends[::-1]),
            vertices_array=cp.arange(vertices, dtype=np.int32),
            store_transposed=False,
            renumber=True,
            do_expensive_check=False,
        )
        cp.cuda.Device().synchronize()
        self.build_seconds = time.perf_counter() - begin
        del ends
        cp.get_default_memory_pool().free_all_blocks()

    def run(self, algorithm: str, sources: list[int]) -> tuple[float, NDArray[Any] | float]:
        """Seconds of one call, and its values by id; of communities their modularity."""
        begin = time.perf_counter()
        found = self._run(algorithm, cp.asarray(sources, dtype=np.int32))
        cp.cuda.Device().synchronize()
        seconds = time.perf_counter() - begin
        if len(found) == 3:
            return seconds, float(found[2])
        vertices, values = (cp.asnumpy(array) for array in found)
        by_id = np.zeros(len(vertices), dtype=values.dtype)
        by_id[vertices] = values
        return seconds, by_id

    def jaccard(self, pairs: NDArray[np.int32]) -> tuple[float, NDArray[Any]]:
        """Seconds of one call over pairs in the host's memory, and their coefficients there."""
        begin = time.perf_counter()
        first, second = (cp.asarray(ids) for ids in pairs.T)
        *_, values = pylibcugraph.jaccard_coefficients(
            self._handle, self._graph, first, second, use_weight=False, do_expensive_check=False
        )
        found = cp.asnumpy(values)
        return time.perf_counter() - begin, found

    def _run(self, algorithm: str, sources: cp.ndarray) -> tuple[Any, ...]:
        handle, graph = self._handle, self._graph
        if algorithm == "triangles":
            return pylibcugraph.triangle_count(handle, graph, None, do_expensive_check=False)
        if algorithm == "kcore":
            return pylibcugraph.core_number(handle, graph, "incoming", do_expensive_check=False)
        if algorithm == "betweenness":
            return pylibcugraph.betweenness_centrality(
                handle, graph, sources, None, False, False, do_expensive_check=False
            )
        if algorithm == "louvain":
            return pylibcugraph.louvain(handle, graph, 100, 1e-7, 1.0, do_expensive_check=False)
        if algorithm == "leiden":
            return pylibcugraph.leiden(handle, 1, graph, 100, 1.0, 1.0, do_expensive_check=False)
        raise KeyError(algorithm)
