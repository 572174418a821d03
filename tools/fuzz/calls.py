"""Random calls on an opened graph, each compared with a plain twin in NumPy."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import tiergraph as tg

from .graphs import Expected, Floats, Random, pick

Check = Callable[[Random, tg.Graph, Expected], str]


class WrongValueError(AssertionError):
    """A result that differs from the twin's."""


def check_call(random: Random, graph: tg.Graph, wanted: Expected) -> str:
    """Makes one random call, compares what it gives, and returns the call as text."""
    checks: Sequence[Check] = (
        _degrees,
        _pagerank,
        _personalised,
        _wcc,
        _bfs,
        _sssp,
        _propagate,
    )
    return pick(random, checks)(random, graph, wanted)


def _degrees(random: Random, graph: tg.Graph, wanted: Expected) -> str:
    direction: Literal["out", "in"] = pick(random, ("out", "in"))
    src, dst, _ = wanted.arcs()
    ends = src if direction == "out" else dst
    call = f"degrees({direction!r})"
    _equal(call, graph.degrees(direction), np.bincount(ends, minlength=len(wanted.ids)))
    return call


def _pagerank(random: Random, graph: tg.Graph, wanted: Expected) -> str:
    damping = pick(random, [0.0, 0.5, 0.85, 1.0])
    iterations = int(random.integers(1, 30))
    call = f"pagerank(damping={damping}, iterations={iterations})"
    n = len(wanted.ids)
    twin = _ranks(wanted, damping, iterations, np.full(n, 1 / max(n, 1)))
    _close(call, graph.pagerank(damping=damping, iterations=iterations), twin, 1e-4)
    return call


def _personalised(random: Random, graph: tg.Graph, wanted: Expected) -> str:
    n = len(wanted.ids)
    if n == 0:
        return "nothing"
    chosen = random.choice(n, int(random.integers(1, min(n, 4) + 1)), replace=False)
    iterations = int(random.integers(1, 20))
    sources = wanted.ids[chosen]
    call = f"pagerank(sources={sources.tolist()}, iterations={iterations})"
    ranks = graph.pagerank(sources=sources, iterations=iterations)
    if abs(float(ranks.sum()) - 1) > 1e-3 or float(ranks.min()) < 0:
        raise WrongValueError(f"{call}: ranks sum to {ranks.sum()}")
    teleport = np.zeros(n)
    teleport[chosen] = 1 / len(chosen)
    _close(call, ranks, _ranks(wanted, 0.85, iterations, teleport), 1e-3, floor=1e-7)
    return call


def _ranks(wanted: Expected, damping: float, iterations: int, teleport: Floats) -> Floats:
    """LDBC Graphalytics' PageRank; with a teleport vector, it is where ranks begin, too."""
    src, dst, _ = wanted.arcs()
    n = len(wanted.ids)
    degrees = np.bincount(src, minlength=n)
    ranks = teleport.copy()
    for _ in range(iterations):
        share = np.divide(ranks, degrees, out=np.zeros(n), where=degrees > 0)
        pulled = np.bincount(dst, weights=share[src], minlength=n)
        lost = ranks[degrees == 0].sum()
        ranks = (1 - damping) * teleport + damping * (pulled + lost * teleport)
    return ranks


def _wcc(_: Random, graph: tg.Graph, wanted: Expected) -> str:
    names = np.arange(len(wanted.ids))
    while True:
        least = names.copy()
        np.minimum.at(least, wanted.src, names[wanted.dst])
        np.minimum.at(least, wanted.dst, names[wanted.src])
        if np.array_equal(least, names):
            break
        names = least[least]
    _equal("wcc()", graph.wcc(), wanted.ids[names])
    return "wcc()"


def _bfs(random: Random, graph: tg.Graph, wanted: Expected) -> str:
    if len(wanted.ids) == 0:
        return "nothing"
    source = int(random.integers(len(wanted.ids)))
    src, dst, _ = wanted.arcs()
    order = np.argsort(src, kind="stable")
    starts = np.searchsorted(src[order], np.arange(len(wanted.ids) + 1))
    depths = np.full(len(wanted.ids), -1)
    depths[source] = 0
    queue = deque([source])
    while queue:
        v = queue.popleft()
        for u in dst[order[starts[v] : starts[v + 1]]]:
            if depths[u] < 0:
                depths[u] = depths[v] + 1
                queue.append(u)
    call = f"bfs({wanted.ids[source]})"
    _equal(call, graph.bfs(int(wanted.ids[source])), depths)
    return call


def _sssp(random: Random, graph: tg.Graph, wanted: Expected) -> str:
    if len(wanted.ids) == 0:
        return "nothing"
    source = int(random.integers(len(wanted.ids)))
    src, dst, weights = wanted.arcs()
    order = np.argsort(src, kind="stable")
    starts = np.searchsorted(src[order], np.arange(len(wanted.ids) + 1))
    distances = np.full(len(wanted.ids), np.inf)
    distances[source] = 0
    heap = [(0.0, source)]
    while heap:
        distance, v = heapq.heappop(heap)
        if distance > distances[v]:
            continue
        for arc in order[starts[v] : starts[v + 1]]:
            u, longer = int(dst[arc]), distance + float(weights[arc])
            if longer < distances[u]:
                distances[u] = longer
                heapq.heappush(heap, (longer, u))
    call = f"sssp({wanted.ids[source]})"
    _close(call, graph.sssp(int(wanted.ids[source])), distances, 1e-6)
    return call


def _propagate(random: Random, graph: tg.Graph, wanted: Expected) -> str:
    n, columns = len(wanted.ids), int(random.integers(0, 4))
    kind = pick(random, [np.float32, np.float64])
    x = random.random((n, columns) if columns else n).astype(kind)
    reduce: Literal["sum", "min", "max"] = pick(random, ("sum", "min", "max"))
    transpose, weighted = random.random() < 0.5, graph.weighted and random.random() < 0.5
    src, dst, weights = wanted.arcs()
    if transpose:
        src, dst = dst, src
    values = x.astype(np.float64)[src]
    if weighted:
        values = values * (weights[:, None] if columns else weights)
    identity = {"sum": 0.0, "min": np.inf, "max": -np.inf}[reduce]
    twin = np.full(x.shape, identity)
    {"sum": np.add, "min": np.minimum, "max": np.maximum}[reduce].at(twin, dst, values)
    y = graph.propagate(x, reduce=reduce, transpose=transpose, weights=weighted)
    call = (
        f"propagate(x of {kind.__name__} {x.shape}, {reduce!r}, transpose={transpose}, "
        f"weights={weighted})"
    )
    if y.shape != x.shape or y.dtype != x.dtype:
        raise WrongValueError(f"{call}: {y.dtype} of shape {y.shape}")
    _close(call, y, twin, 1e-4)
    return call


def _equal(call: str, got: NDArray[Any], wanted: NDArray[Any]) -> None:
    if got.shape != wanted.shape or not np.array_equal(got, wanted.astype(got.dtype)):
        raise WrongValueError(f"{call}:\n  got    {got}\n  wanted {wanted}")


def _close(
    call: str, got: NDArray[Any], wanted: NDArray[Any], relative: float, floor: float = 1e-12
) -> None:
    if got.shape != wanted.shape or not np.allclose(got, wanted, rtol=relative, atol=floor):
        raise WrongValueError(f"{call}:\n  got    {got}\n  wanted {wanted}")
