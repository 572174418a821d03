"""Edges of graphs that are extreme in one way each, as arrays or as a file."""

from __future__ import annotations

import lzma

import numpy as np
import pytest
from conftest import DATA

SPAN = 1 << 20


def star():
    return np.zeros(SPAN, np.int64), np.arange(1, SPAN + 1)


def path():
    return np.arange(SPAN), np.arange(1, SPAN + 1)


def clique():
    source, target = np.triu_indices(1500, 1)
    return source.astype(np.int64), target.astype(np.int64)


def grid():
    v = np.arange(SPAN).reshape(1 << 10, -1)
    right, down = (v[:, :-1], v[:, 1:]), (v[:-1], v[1:])
    return tuple(np.concatenate([a.ravel(), b.ravel()]) for a, b in zip(right, down, strict=True))


def two_hubs():
    return np.repeat(np.arange(2), SPAN), np.tile(np.arange(2, SPAN + 2), 2)


def isolated():
    return np.arange(SPAN // 64), np.full(SPAN // 64, SPAN - 1)


def one_edge():
    return np.array([0]), np.array([1])


def random():
    return tuple(np.random.default_rng(1).integers(SPAN, size=(2, 2 * SPAN)))


def rmat():
    """Hubs of hubs: each bit of both ends of an edge is drawn by the same four weights."""
    rng, scale = np.random.default_rng(2), SPAN.bit_length() - 1
    ends = np.zeros((2, 4 * SPAN), np.int64)
    for _ in range(scale):
        quarter = rng.choice(4, ends.shape[1], p=[0.57, 0.19, 0.19, 0.05])
        ends = ends * 2 + np.stack([quarter // 2, quarter % 2])
    return ends[0], ends[1]


def web():
    return _stored("graphs/cnr-2000/cnr-2000.graph")


def road():
    with lzma.open(_stored("graphs/dimacs/NY.gr.xz"), "rt") as lines:
        source, target = np.loadtxt(lines, np.int64, skiprows=1).T
    return source, target


def _stored(name):
    file = DATA / name
    if not file.exists():
        pytest.skip(f"test data `{file}` is missing")
    return file


SHAPES = [star, path, clique, grid, two_hubs, isolated, one_edge, random, rmat, road]
FILES = [web]
