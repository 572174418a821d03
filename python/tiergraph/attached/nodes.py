"""A graph's vertices as its nodes: by their names where it has names, else by their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arguments.checks import MOST_IDS
from ..errors import InputError

if TYPE_CHECKING:
    from ..graph import Graph

STEP = 1 << 16
"""Ids that are read at once where all are gone through."""

ELSEWHERE = {"nodes", "adj", "_adj", "degree", "has_node", "has_edge", "successors", "predecessors"}
"""Attributes of NetworkX's graphs, read by its functions, that a graph on disk does not have."""


def elsewhere(name: str) -> AttributeError:
    """The error for an attribute that only a graph in memory has."""
    error = InputError.of(
        "use",
        name,
        expected="a graph in memory",
        got="one on disk",
        hint="`to_networkx()` makes one that has it; NetworkX's functions take this one as it is",
    )
    return AttributeError(str(error))


def nodes_of(graph: Graph) -> Iterator[Any]:
    """All nodes, in the order of `ids`."""
    if graph.names is not None:
        yield from graph.names
        return
    for start in range(0, graph.vertices, STEP):
        yield from graph.ids_of(start, start + STEP).tolist()


def find(graph: Graph, nodes: Sequence[Any]) -> NDArray[np.int64]:
    """The positions of nodes in `ids`, int64 of shape (n,); -1 for one that the graph lacks."""
    if graph.names is not None:
        found = graph.names.known([node for node in nodes if isinstance(node, str)])
        return np.array([found.get(node, -1) for node in nodes], np.int64)
    is_id = [isinstance(n, int | np.integer) and 0 <= n < MOST_IDS for n in nodes]
    wanted = [int(node) if fits else 0 for node, fits in zip(nodes, is_id, strict=True)]
    own = graph.ids if graph.has_own_ids else None
    known = positions_of(own, graph.vertices, np.array(wanted, np.uint64))
    return np.where(np.array(is_id, bool), known, -1)


def positions_of(
    own: NDArray[np.uint64] | None, count: int, wanted: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """The positions of ids among `count` vertices, int64 of shape (n,); -1 for one of none.

    `own` are the vertices' ids, ascending; None where they are 0 to `count` - 1. Ids are compared
    as uint64: as Python's integers, NumPy would compare them as floats.
    """
    if own is None:
        return np.where(wanted < count, wanted, 0).astype(np.int64) - (wanted >= count)
    at = np.searchsorted(own, wanted)
    is_there = own.take(at, mode="clip") == wanted
    return np.where(is_there, at, -1)
