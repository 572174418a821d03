"""What the GPU's tests share: whether there is one, and the graphs that they build in many ways."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiergraph as tg

MEMORY = "256MiB"
Ends = tuple[np.ndarray, np.ndarray]
Make = Callable[[np.random.Generator], Ends]


def gpu_or_reason() -> str | None:
    """Why there is no GPU to test on; None if there is one."""
    try:
        found = tg.cuda_devices()
    except tg.DeviceError as error:
        return str(error).splitlines()[0]
    return None if found else "the driver knows none"


REASON = gpu_or_reason()
needs_gpu = pytest.mark.skipif(REASON is not None, reason=f"no GPU here: {REASON}")


def rmat(rng: np.random.Generator) -> Ends:
    """A skewed graph with hubs, self-loops and isolated vertices."""
    return skewed(rng, 20_000, 60_000, 1.3)


def star(rng: np.random.Generator) -> Ends:
    """One hub, larger than a block, with arcs both ways."""
    leaves = np.arange(1, 30_000)
    hub = np.zeros_like(leaves)
    return np.concatenate([hub, leaves]), np.concatenate([leaves, hub])


def path(rng: np.random.Generator) -> Ends:
    """A path: many levels with one vertex each, and more than a word's bits of them."""
    return np.arange(70), np.arange(1, 71)


def loops(rng: np.random.Generator) -> Ends:
    """Self-loops and double arcs only."""
    return np.array([0, 0, 1, 2, 2, 0]), np.array([0, 0, 1, 2, 2, 1])


def one(rng: np.random.Generator) -> Ends:
    """One vertex."""
    return np.array([0]), np.array([0])


GRAPHS = [rmat, star, path, loops, one]
each_graph = pytest.mark.parametrize("make", GRAPHS, ids=lambda make: make.__name__)


def each_layout(layouts: Sequence[dict[str, Any]]) -> pytest.MarkDecorator:
    """Once a layout: options of `tiergraph.build`."""
    return pytest.mark.parametrize("layout", layouts, ids=lambda o: "-".join(map(str, o.values())))


def each_build(layouts: Sequence[dict[str, Any]]) -> Callable[[Any], Any]:
    """Once for each graph, layout, and whether edges have directions and weights."""
    marks = [
        pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"]),
        each_layout(layouts),
        pytest.mark.parametrize("has_weights", [False, True], ids=["unweighted", "weighted"]),
        each_graph,
    ]

    def marked(test: Any) -> Any:
        for mark in marks:
            test = mark(test)
        return test

    return marked


def skewed(rng: np.random.Generator, vertices: int, arcs: int, exponent: float) -> Ends:
    """Arcs whose ends are drawn by a power law, hubs of one end apart from those of the other."""
    ids = np.minimum(rng.zipf(exponent, (2, arcs)), vertices) - 1
    return ids[0], rng.permutation(vertices)[ids[1]]


def weighted(make: Make, seed: int = 7) -> tuple[np.ndarray, ...]:
    """The arcs that `make` draws, with weights."""
    rng = np.random.default_rng(seed)
    src, dst = make(rng)
    return src, dst, rng.random(len(src)).astype(np.float32)


def build(folder: Path, make: Make, *, has_weights: bool = True, **options: Any) -> Path:
    """The directory of a graph of the arcs that `make` draws."""
    src, dst, weights = weighted(make)
    return unnoted((src, dst, weights) if has_weights else (src, dst), folder, **options)


def build_even(folder: Path, vertices: int, arcs: int, **options: Any) -> Path:
    """The directory of a graph whose arcs join any two vertices alike."""
    ids = np.random.default_rng(3).integers(0, vertices, (2, arcs))
    return unnoted((ids[0], ids[1]), folder, **options)


def unnoted(edges: Any, folder: Path, **options: Any) -> Path:
    """Builds from arrays, whose double edges and ids without an edge are meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tg.InputWarning)
        tg.build(edges, folder / "g.tg", **({"ids": "dense"} | options))
    return folder / "g.tg"
