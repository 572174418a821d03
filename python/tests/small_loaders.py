"""One small graph of each kind, and a loader of each kind over it."""

from __future__ import annotations

import itertools

import numpy as np

import tiergraph as tg

VERTICES, SEEDS, LINKS, TYPED = 400, 200, 20, 50


def build(path):
    """A directed graph on ids with gaps; half of the vertices are for training."""
    random = np.random.default_rng(3)
    ids = 2 * np.arange(VERTICES) + 5
    src, dst = random.choice(ids, (2, 3000))
    tg.build(
        (np.concatenate([src, ids]), np.concatenate([dst, np.roll(ids, 1)])),
        path,
        ids="map",
        order="degree",
        layouts="both",
        features=random.normal(size=(VERTICES, 6)).astype(np.float32),
        labels=np.arange(VERTICES) % 3,
        splits={"train": np.arange(VERTICES) % 2 == 0},
    )
    return path


def build_hetero(path):
    """Two types of nodes, and edges from one to the other."""
    random = np.random.default_rng(4)
    x = random.normal(size=(TYPED, 3)).astype(np.float32)
    ends = random.integers(0, 30, 200), random.integers(0, TYPED, 200)
    tg.build_hetero(
        path,
        nodes={"a": {"features": x, "labels": np.arange(TYPED)}, "b": {"vertices": 30}},
        edges={("b", "to", "a"): ends},
    )
    return path


def neighbors(path, **options):
    given = {"batch_size": 32, "shuffle": True, "memory": "128MiB", "threads": 2}
    return tg.NeighborLoader(path, [4, 3], "train", **(given | options))


def links(path, **options):
    ids = 2 * np.arange(2 * LINKS) + 5
    given = {"batch_size": 8, "shuffle": True, "memory": "128MiB", "neg_sampling_ratio": 1}
    return tg.LinkNeighborLoader(path, [3], ids.reshape(2, -1), **(given | options))


def typed(path, **options):
    given = {"batch_size": 8, "shuffle": True, "memory": "128MiB"}
    return tg.NeighborLoader(path, [3], "a", **(given | options))


KINDS = {
    "neighbors": (neighbors, "path", SEEDS),
    "links": (links, "path", LINKS),
    "typed": (typed, "hetero", TYPED),
}
"""What makes a loader, the fixture that has its graph's path, and its seeds or links."""


def made(kind, request, **options):
    """A loader of a kind, over the graph of a test's fixture."""
    make, fixture, _ = KINDS[kind]
    return make(request.getfixturevalue(fixture), **options)


def everything(batches):
    """Batches as plain values, to be compared."""
    return [
        {str(k): getattr(v, "tolist", lambda v=v: v)() for k, v in flat(batch.to_dict()).items()}
        for batch in batches
    ]


def flat(values, name=()):
    """Dictionaries of dictionaries as one."""
    if not isinstance(values, dict):
        return {name: values}
    return {key: one for k, v in values.items() for key, one in flat(v, (*name, k)).items()}


def inputs(batches):
    """Which seeds, or links, each batch has."""
    found = [b["a"].input_id if hasattr(b, "node_types") else b.input_id for b in batches]
    return [batch.tolist() for batch in found]


def joined(lists):
    return list(itertools.chain.from_iterable(lists))
