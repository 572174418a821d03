"""Random edge lists, small, of many shapes, and what a build should make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint64]
Floats = NDArray[np.float64]
Random = np.random.Generator
T = TypeVar("T")

MOST_VERTICES = 300
MOST_EDGES = 2000


@dataclass(frozen=True)
class EdgeList:
    """Edges as a user has them: ids of both ends, uint64 of shape (E,), and weights or None."""

    shape: str
    src: Ids
    dst: Ids
    weights: Floats | None

    @property
    def least_vertices(self) -> int:
        """The number of vertices where ids are 0 to |V| - 1 and the greatest has an edge."""
        return 1 + int(max(self.src.max(initial=0), self.dst.max(initial=0)))


@dataclass(frozen=True)
class Expected:
    """The graph that a build should make: its ids, and its edges as positions in `ids`."""

    ids: Ids
    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    weights: Floats
    undirected: bool

    def arcs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Each undirected edge both ways, a self-loop once."""
        if not self.undirected:
            return self.src, self.dst, self.weights
        back = self.src != self.dst
        return (
            np.concatenate([self.src, self.dst[back]]),
            np.concatenate([self.dst, self.src[back]]),
            np.concatenate([self.weights, self.weights[back]]),
        )


def pick(random: Random, options: Sequence[T]) -> T:
    """One of the options, each as likely."""
    return options[int(random.integers(len(options)))]


def random_edges(random: Random) -> EdgeList:
    """Edges of a random shape, with random ids and weights."""
    shape = pick(random, list(SHAPES))
    n = int(random.integers(1, MOST_VERTICES))
    src, dst = (np.asarray(ends, dtype=np.int64) for ends in SHAPES[shape](random, n))
    if random.random() < 0.3 and len(src):
        again = random.integers(0, len(src), int(random.integers(1, len(src) + 1)))
        flip = random.random(len(again)) < 0.5
        src, dst = (
            np.concatenate([src, np.where(flip, dst[again], src[again])]),
            np.concatenate([dst, np.where(flip, src[again], dst[again])]),
        )
    if random.random() < 0.2:
        loops = random.integers(0, n, 3)
        src, dst = np.concatenate([src, loops]), np.concatenate([dst, loops])
    order = random.permutation(len(src))
    names = _names(random, n)
    return EdgeList(shape, names[src[order]], names[dst[order]], _weights(random, len(order)))


def expected(
    edges: EdgeList, ids: Ids, *, undirected: bool, dedup: bool, drop_self_loops: bool
) -> Expected:
    """What a build with these options makes of `edges` where its vertices are `ids`."""
    src, dst = np.searchsorted(ids, edges.src), np.searchsorted(ids, edges.dst)
    weights = np.ones(len(src)) if edges.weights is None else edges.weights
    if drop_self_loops:
        kept = src != dst
        src, dst, weights = src[kept], dst[kept], weights[kept]
    if dedup:
        low, high = (np.minimum(src, dst), np.maximum(src, dst)) if undirected else (src, dst)
        order = np.lexsort((weights, high, low))
        low, high = low[order], high[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        src, dst, weights = low[first], high[first], weights[order][first]
    return Expected(ids, src, dst, weights, undirected)


def _names(random: Random, n: int) -> Ids:
    """The user's ids of vertices 0 to n - 1: dense, with gaps, or anywhere in 64 bits."""
    kind = random.random()
    if kind < 0.5:
        return np.arange(n, dtype=np.uint64)
    if kind < 0.75:
        return np.sort(random.choice(4 * n, n, replace=False)).astype(np.uint64)
    wide = np.unique(random.integers(0, 2**64 - 1, n, dtype=np.uint64, endpoint=True))
    return np.resize(wide, n)


def _weights(random: Random, edges: int) -> Floats | None:
    kind = random.random()
    if kind < 0.4:
        return None
    if kind < 0.6:
        return random.integers(0, 5, edges).astype(np.float64)
    if kind < 0.8:
        return random.random(edges, dtype=np.float32).astype(np.float64)
    return random.random(edges) * 10.0 ** random.integers(-3, 6)


def _path(_: Random, n: int) -> Any:
    return np.arange(n - 1), np.arange(1, n)


def _cycle(_: Random, n: int) -> Any:
    return np.arange(n), np.roll(np.arange(n), 1)


def _star(random: Random, n: int) -> Any:
    hub, leaves = np.zeros(n - 1, dtype=np.int64), np.arange(1, n)
    return (hub, leaves) if random.random() < 0.5 else (leaves, hub)


def _two_hubs(_: Random, n: int) -> Any:
    leaves = np.arange(n)
    return np.concatenate([np.zeros(n), np.full(n, n - 1)]), np.concatenate([leaves, leaves])


def _clique(_: Random, n: int) -> Any:
    n = min(n, 40)
    return np.triu_indices(n, 1)


def _grid(_: Random, n: int) -> Any:
    side = max(1, int(np.sqrt(n)))
    at = np.arange(side * side).reshape(side, side)
    return (
        np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()]),
        np.concatenate([at[:, 1:].ravel(), at[1:].ravel()]),
    )


def _uniform(random: Random, n: int) -> Any:
    count = int(random.integers(1, MOST_EDGES))
    return random.integers(0, n, count), random.integers(0, n, count)


def _skewed(random: Random, n: int) -> Any:
    count = int(random.integers(1, MOST_EDGES))
    return tuple((n * random.random(count) ** 4).astype(np.int64) for _ in range(2))


def _one(_: Random, n: int) -> Any:
    return np.array([0]), np.array([n - 1])


def _none(_: Random, __: int) -> Any:
    return np.empty(0), np.empty(0)


SHAPES: dict[str, Callable[[Random, int], Any]] = {
    "path": _path,
    "cycle": _cycle,
    "star": _star,
    "two hubs": _two_hubs,
    "clique": _clique,
    "grid": _grid,
    "uniform": _uniform,
    "skewed": _skewed,
    "one edge": _one,
    "no edge": _none,
}
