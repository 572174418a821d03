"""The graph that the training scripts share: Kronecker edges, features that fill a disk, seeds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import tiergraph as tg
from common.cgroup import MemoryGroup
from common.child import Child
from common.reporting import Record, say

CLASSES = 16
SEED_SHARE = 0.01
"""Of vertices that are trained on, as in ogbn-papers100M."""
CSC_BATCH = 1 << 14
"""Vertices whose neighbours are copied at a time."""


def build(path: Path, scale: int, dim: int, threads: int) -> Record:
    """An undirected graph with features, and labels that they follow from.

    Vertices keep their order and rows lie one behind the other (`dim` is a power of two), so that
    others can map the file of features as it is.
    """
    return tg.generate(
        "rmat",
        path,
        scale=scale,
        undirected=True,
        dedup=True,
        drop_self_loops=True,
        order="none",
        layouts="both",
        features=dim,
        classes=CLASSES,
        threads=threads,
    )


def rows_file(path: Path) -> Path:
    """The features as they are on disk."""
    return path / "features" / "x.rows"


def write_seeds(path: Path, file: Path, count: int | None = None) -> int:
    """Saves vertices with neighbours to train on; the share of papers100M unless `count` says."""
    graph = tg.open(path)
    connected = np.flatnonzero(graph.degrees())
    count = int(graph.vertices * SEED_SHARE) if count is None else min(count, len(connected))
    seeds = np.random.default_rng(2).choice(connected, count, replace=False)
    np.save(file, np.sort(seeds))
    return count


def write_csc(path: Path, directory: Path) -> int:
    """All neighbours as `indptr.npy` (int64) and `indices.npy` (int32); returns how many."""
    loader = tg.NeighborLoader(
        path, [-1], batch_size=CSC_BATCH, features=None, window=1, prefetch=0
    )
    indices = np.empty(2 * loader.graph.edges, dtype=np.int32)
    degrees, filled = [], 0
    for batch in loader:
        sources = batch.n_id.numpy()[batch.edge_index[0].numpy()]
        indices[filled : filled + len(sources)] = sources
        filled += len(sources)
        degrees.append(batch.degree[: batch.batch_size].numpy())
    indptr = np.concatenate([[0], *degrees]).cumsum()
    if filled != indptr[-1]:
        raise RuntimeError(f"{filled} neighbours copied of {indptr[-1]}")
    np.save(directory / "indptr.npy", indptr)
    np.save(directory / "indices.npy", indices[:filled])
    return filled


@contextmanager
def child(
    engine: str, *arguments: str, threads: int, limit: int | None = None, python: Path | None = None
) -> Iterator[Child]:
    """A process of its own, in a memory cgroup of `limit` bytes where there is one to be had."""
    group = None if limit is None else MemoryGroup.create(limit)
    if isinstance(group, str):
        say(f"no cgroup: {group}")
        group = None
    process = Child(
        python or Path(sys.executable), engine, *arguments, threads=threads, group=group
    )
    try:
        yield process
    finally:
        process.close()
        if group is not None:
            group.remove()
