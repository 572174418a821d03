"""What the ends of links may be: vertices of a graph, or nodes of the ends of an edge type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments.arrays import to_ids
from ..errors import InputError
from ..graph import Graph
from ..hetero import EdgeType, HeteroGraph

Ids = NDArray[np.uint64]


@dataclass(frozen=True)
class LinkEnds:
    """The vertices that links may lead between."""

    counts: tuple[int, int]
    """How many may be a source, and how many a target."""
    base: int
    """What is added to a target among the seeds, where it is of another type than a source."""

    @classmethod
    def of_graph(cls, graph: Graph) -> LinkEnds:
        """Any vertices of a graph."""
        return cls((graph.vertices, graph.vertices), 0)

    @classmethod
    def of_types(cls, graph: HeteroGraph, edge_type: EdgeType) -> LinkEnds:
        """Nodes of the types that edges of a type lead between."""
        nodes, (source, _, target) = graph.num_nodes_dict, edge_type
        return cls((nodes[source], nodes[target]), 0 if source == target else nodes[source])

    @property
    def vertices(self) -> int:
        """How many there are."""
        return self.counts[0] + (self.counts[1] if self.base else 0)

    def drawn(self, end: int, words: Ids) -> Ids:
        """Places of sources (`end` 0) or targets (1), evenly, by 32 random bits each."""
        return (words * np.uint64(self.counts[end])) >> np.uint64(32)


def edges_of(batches: Iterable[tuple[NDArray[Any], ...]]) -> Ids:
    """All edges of batches as links."""
    parts = [np.stack(batch[:2]).astype(np.uint64, copy=False) for batch in batches]
    return np.concatenate(parts, axis=1) if parts else np.empty((2, 0), np.uint64)


def links_of(given: ArrayLike) -> Ids:
    """Vertex ids of shape (2, L), row by row."""
    links = np.asarray(given)
    if links.ndim != 2 or links.shape[0] != 2:
        raise InputError.of(
            "use", "edge_label_index", expected="vertex ids of shape (2, L)", got=links.shape
        )
    return to_ids(links.reshape(-1), "edge_label_index").reshape(2, -1)


def typed_links_of(graph: HeteroGraph, given: Any) -> tuple[EdgeType, Ids]:
    """An edge type, and nodes of its ends' types of shape (2, L): all its edges without links."""
    if isinstance(given, tuple | list):
        is_type = len(given) == 3 and all(isinstance(name, str) for name in given)
        given = (tuple(given), None) if is_type else tuple(given)
    edge_type, links = given if isinstance(given, tuple) and len(given) == 2 else (None, ())
    edge_type = tuple(edge_type) if isinstance(edge_type, list) else edge_type
    if edge_type not in graph.edge_types:
        raise InputError.of(
            "use",
            "edge_label_index",
            expected="`(edge type, nodes of shape (2, L))`, with one of the edge types, "
            "or one alone for all its edges: " + ", ".join(map(str, graph.edge_types)),
            got=edge_type if edge_type is not None else type(given).__name__,
        )
    found = edges_of(graph.edge_batches(edge_type)) if links is None else links_of(links)
    for row, count, name in zip(
        found, LinkEnds.of_types(graph, edge_type).counts, edge_type[::2], strict=True
    ):
        if row.size and row.max() >= count:
            raise InputError.of(
                "use",
                "edge_label_index",
                expected=f"nodes of `{name}` from 0 to {count - 1}",
                got=row.max(),
            )
    return edge_type, found
