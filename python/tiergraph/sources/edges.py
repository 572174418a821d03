"""What `tiergraph.build` accepts: paths, arrays, or batches of arrays."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arguments.arrays import as_array
from ..errors import InputError
from .names import are_texts

Array = NDArray[Any]
Batch = tuple[Array, Array] | tuple[Array, Array, Array]
PathLike = str | os.PathLike[str]
AnyBatch = TypeVar("AnyBatch", bound=tuple[Array, ...])
Source = PathLike | Sequence[PathLike] | Batch | Iterable[Batch]

BATCH_EDGES = 1 << 17
"""Edges that are handed to the native part at a time: conversions copy a slice and not a column,
and a slice fits a core's second cache."""

LEAST_BATCH_EDGES = 1 << 10

WAITING_EDGE_BYTES = 8 * 24
"""Bytes of the batches that are on their way at once, for an edge of each: two ids and a weight."""


def batch_edges(memory: int | None) -> int:
    """Edges of a batch in a build with `memory`, an eighth of which holds batches at most."""
    if memory is None:
        return BATCH_EDGES
    return min(BATCH_EDGES, max(LEAST_BATCH_EDGES, memory // 8 // WAITING_EDGE_BYTES))


def waiting_bytes(most: int, beside: int) -> dict[str, int]:
    """What batches of `most` edges hold in a build of this memory, and of any, with `beside`."""
    return {
        "held_bytes": WAITING_EDGE_BYTES * most + beside,
        "held_bytes_at_most": WAITING_EDGE_BYTES * BATCH_EDGES + beside,
    }


def as_files(source: Source) -> list[str] | None:
    """The paths that `source` names, patterns such as `part-*.csv` too; None where it is edges."""
    if isinstance(source, str | os.PathLike):
        return _matching(os.fspath(source))
    if isinstance(source, Sequence):
        paths = [os.fspath(s) for s in source if isinstance(s, str | os.PathLike)]
        if paths and len(paths) == len(source):
            return [found for path in paths for found in _matching(path)]
    return None


def _matching(path: str) -> list[str]:
    """The files that a pattern matches, by their names; the path itself where it is none."""
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise InputError.of("read", path, expected="a file, or a pattern of files", got="none")
    return found


def as_batches(source: Any) -> Iterator[Batch]:
    """Batches of edges from arrays, from an iterable of arrays, or from pairs of ids."""
    if isinstance(source, tuple) and source and np.ndim(source[0]) == 1:
        yield _checked(source)
        return
    own = hasattr(source, "edge_batches")
    graph = hasattr(source, "edges") and hasattr(source, "nodes")
    if own or graph or isinstance(source, dict) or not isinstance(source, Iterable):
        raise InputError.of(
            "build from",
            type(source).__name__,
            expected="a path, a tuple of arrays (src, dst) or (src, dst, weights), or batches",
            hint="`graph.edge_batches()` gives those of a graph on disk"
            if own
            else "`G.edges()`, or `G.edges(data='weight')` where edges have weights"
            if graph
            else None,
        )
    if isinstance(source, np.ndarray):
        yield _checked(_columns(source))
        return
    items = iter(source)
    first = next(items, None)
    if first is None:
        return
    items = chain([first], items)
    if not _is_edge(first):
        yield from map(_checked, items)
        return
    while edges := list(islice(items, BATCH_EDGES)):
        yield _checked(_transposed(edges))


def pieces(batches: Iterable[AnyBatch], most: int) -> Iterator[AnyBatch]:
    """The same edges, at most so many at a time."""
    for batch in batches:
        # An empty batch says whether edges have weights.
        for start in range(0, max(len(batch[0]), 1), most):
            yield tuple(column[start : start + most] for column in batch)  # type: ignore[misc]


def _is_edge(item: Any) -> bool:
    """Whether an item of an iterable is one edge, `(u, v)` or `(u, v, weight)`."""
    return isinstance(item, tuple) and len(item) in (2, 3) and np.ndim(item[0]) == 0


def _columns(edges: Array) -> tuple[Array, Array]:
    """Both columns of an array with a row an edge, as `.npy` files have them."""
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise InputError.of(
            "build from an array",
            expected="shape (|E|, 2), a row an edge",
            got=f"shape {edges.shape}",
            hint="hand over the ends as a tuple: `(src, dst)` or `(src, dst, weights)`",
        )
    return edges[:, 0], edges[:, 1]


def _transposed(edges: list[Any]) -> tuple[list[Any], ...]:
    """Columns of edges that come one by one."""
    width = len(edges[0])
    for edge in edges:
        if not isinstance(edge, tuple) or len(edge) != width or isinstance(edge[-1], Mapping):
            raise InputError.of(
                "use the edge",
                edge,
                expected="(u, v), or (u, v, weight) for all",
                hint="`G.edges(data='weight')` gives numbers"
                if isinstance(edge, tuple) and isinstance(edge[-1], Mapping)
                else None,
            )
    return tuple(list(column) for column in zip(*edges, strict=True))


def _checked(batch: Any) -> Batch:
    if not isinstance(batch, tuple) or len(batch) not in (2, 3):
        raise InputError.of(
            "use a batch of edges",
            expected="a tuple (src, dst) or (src, dst, weights)",
            got=type(batch).__name__,
        )
    src, dst, *weights = (as_array(column) for column in batch)
    if are_texts(src) != are_texts(dst) and len(src):
        raise InputError.of(
            "use a batch of edges", expected="ids that are all integers, or all text", got="both"
        )
    lengths = [len(a) for a in (src, dst, *weights)]
    if len(set(lengths)) != 1:
        raise InputError.of(
            "use a batch of edges", expected="arrays of one length", got=f"lengths {lengths}"
        )
    return (src, dst, weights[0]) if weights else (src, dst)
