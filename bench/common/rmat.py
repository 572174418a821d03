"""Graph500's Kronecker edges, made with NumPy so that every engine gets the same ones.

Needs no tiergraph: the peers' environment imports it too.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EDGE_FACTOR = 16
QUADRANTS = (0.57, 0.19, 0.19, 0.05)
CHUNK_EDGES = 1 << 22
DRAW_BITS = 16

Ids = NDArray[np.uint32]


class Edges(NamedTuple):
    """An undirected graph: each edge once, no self loops, weights in (0, 1)."""

    vertices: int
    src: Ids
    dst: Ids
    weights: NDArray[np.float32]
    sources: list[int]
    """Four vertices of the largest component, to start BFS and SSSP from."""


def pairs(scale: int, seed: int = 1) -> Ids:
    """2^`scale` x 16 edges as drawn, shape (|E|, 2): duplicates, loops and permuted ids."""
    edges = np.empty((EDGE_FACTOR << scale, 2), dtype=np.uint32)
    permutation = np.random.default_rng(seed).permutation(1 << scale).astype(np.uint32)
    for chunk, start in enumerate(range(0, len(edges), CHUNK_EDGES)):
        rng = np.random.default_rng((seed, chunk))
        part = edges[start : start + CHUNK_EDGES]
        part[:] = permutation[_descend(scale, len(part), rng)]
    return edges


def _descend(scale: int, count: int, rng: np.random.Generator) -> Ids:
    """Two levels of the quadtree a draw: 16 joint outcomes in a table of 2^16, one for the odd."""
    ids = np.zeros((count, 2), dtype=np.uint32)
    for level in range(0, scale, 2):
        levels = min(2, scale - level)
        outcome = _table(levels)[rng.integers(0, 1 << DRAW_BITS, count, dtype=np.uint16)]
        ids[:, 0] = ids[:, 0] << levels | outcome >> levels
        ids[:, 1] = ids[:, 1] << levels | outcome & ((1 << levels) - 1)
    return ids


def _table(levels: int) -> NDArray[np.uint8]:
    """An outcome (source bits, then target bits) for each draw, in Graph500's proportions."""
    joint = np.array(QUADRANTS).reshape(2, 2)
    if levels == 2:
        joint = np.kron(joint, joint)
    ends = np.rint(np.cumsum(joint.ravel()) * (1 << DRAW_BITS)).astype(np.int64)
    return np.repeat(np.arange(joint.size, dtype=np.uint8), np.diff(ends, prepend=0))


def write_undirected(directory: Path, scale: int, seed: int = 1) -> int:
    """Writes the arrays of `Edges` for `read` and returns |E|."""
    drawn = pairs(scale, seed)
    low, high = drawn.min(axis=1), drawn.max(axis=1)
    del drawn
    keys = low.astype(np.uint64) << np.uint64(32) | high
    keys = np.unique(keys[low != high])
    src = (keys >> np.uint64(32)).astype(np.uint32)
    dst = keys.astype(np.uint32)
    rng = np.random.default_rng((seed, scale))
    weights = rng.random(len(src), dtype=np.float32)
    np.maximum(weights, np.finfo(np.float32).tiny, out=weights)
    # Nearly every edge is in the largest component, so an edge's end is in it.
    sources = np.unique(src[rng.integers(0, len(src), 64)])[:: 64 // 8][:4]
    for name, array in (("src", src), ("dst", dst), ("weights", weights), ("sources", sources)):
        np.save(directory / f"{name}.npy", array)
    np.save(directory / "vertices.npy", 1 << scale)
    return len(src)


@cache
def ends_of_edges(directory: Path, count: int) -> NDArray[np.int64]:
    """Pairs of different ends of edges, by chance, some fewer than `count`, of shape (p, 2)."""
    edges = read(directory)
    chosen = np.random.default_rng(1).integers(0, len(edges.src), (count, 2))
    ends = np.column_stack((edges.src[chosen[:, 0]], edges.dst[chosen[:, 1]])).astype(np.int64)
    return ends[ends[:, 0] != ends[:, 1]]


def read(directory: Path) -> Edges:
    """The edges in `directory`, mapped from their files."""
    src, dst, weights = (
        np.load(directory / f"{name}.npy", mmap_mode="r") for name in ("src", "dst", "weights")
    )
    vertices = int(np.load(directory / "vertices.npy"))
    return Edges(vertices, src, dst, weights, np.load(directory / "sources.npy").tolist())
