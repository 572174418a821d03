"""How many of a batch's rows memory does not have, by how many of the hottest it has."""

from __future__ import annotations

import time
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..loaders.node import NeighborLoader

Misses: TypeAlias = tuple[tuple[float, float], ...]

LOOKED_AT = 8
"""The first batches, of which it is counted what those after them say is not hot."""
MOST_SAMPLED = 64
"""Batches that are sampled, at most."""
MOST_SECONDS = 15.0
"""Seconds after which no further batch is sampled."""
POINTS = 48
OTHER_EPOCH = 1 << 20
"""The number of an epoch that nobody trains in, whose draws are others."""


def misses_of(loader: NeighborLoader) -> Misses:
    """Numbers of rows, and of each, how many of a batch's rows are not among so many hottest.

    From 0 to all rows; empty for batches of several types, or with times of seeds. Hot is what a
    loader keeps: vertices that many batches of an epoch want, and of those that equally many do,
    the ones of more neighbours. The batches that are counted are others.
    """
    alone = loader.without_features()
    if alone is None:
        return ()
    alone.set_epoch(OTHER_EPOCH)
    graph = loader.graph
    uses = np.zeros(graph.vertices, np.uint32)
    looked_at: list[NDArray[np.int64]] = []
    since = time.perf_counter()
    with alone:
        batches = iter(alone)
        for number, batch in enumerate(batches):
            nodes = batch.n_id.numpy()
            if number < LOOKED_AT:
                looked_at.append(nodes)
            else:
                uses[nodes] += 1
            if number >= MOST_SAMPLED or time.perf_counter() - since > MOST_SECONDS:
                break
        batches.close()
    # Vertices are drawn as neighbours by the arcs that leave them, or that enter them.
    draws_in = loader.given.how.direction == "in"
    hottest = np.lexsort((graph.degrees("out" if draws_in else "in"), uses))[::-1]
    rank = np.empty(len(hottest), np.int64)
    rank[hottest] = np.arange(len(hottest))
    wanted = np.sort(np.concatenate([rank[nodes] for nodes in looked_at]))
    sizes = np.unique(np.geomspace(1, graph.vertices, POINTS).astype(np.int64))
    missed = (len(wanted) - np.searchsorted(wanted, sizes)) / len(looked_at)
    first = (0.0, len(wanted) / len(looked_at))
    return (first, *zip(sizes.astype(float).tolist(), missed.tolist(), strict=True))
