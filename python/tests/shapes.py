"""Edges of graphs that are extreme in one way each."""

from __future__ import annotations

import numpy as np

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


SHAPES = [star, path, clique, grid, two_hubs, isolated, one_edge, random]
