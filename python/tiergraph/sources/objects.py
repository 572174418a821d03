"""Graphs and matrices of other libraries in memory: NetworkX, igraph, NetworKit, SciPy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Array = NDArray[Any]
Edges = Iterator[tuple[Any, ...]]

STEP = 1 << 17
"""Edges that are taken from a graph of Python's objects at a time."""


@dataclass(frozen=True)
class Object:
    """What a graph of another library says."""

    edges: Edges
    """Batches `(src, dst)` or `(src, dst, weights)`, or edges one by one."""
    directed: bool
    vertices: int | None = None
    """How many vertices there are, where they are 0 to this less one."""
    listed: Array | list[str] | None = None
    """All vertices, by ids or by names; None where they are counted."""


def find(source: Any, weights: str | None) -> Object | None:
    """The graph that `source` is, or None where it is anything else.

    `weights` is `none`, the name of an attribute of edges, or None: `weight`, where edges have it.
    Raises `InputError` for graphs whose edges or nodes tiergraph cannot have.
    """
    if hasattr(source, "tocoo") and hasattr(source, "shape"):
        return _of_matrix(source, weights)
    if hasattr(source, "vcount") and hasattr(source, "get_edgelist"):
        return _of_igraph(source, weights)
    if hasattr(source, "numberOfNodes") and hasattr(source, "iterEdges"):
        return _of_networkit(source, weights)
    if hasattr(source, "adjacency") and hasattr(source, "nodes") and hasattr(source, "edges"):
        return _of_networkx(source, weights)
    if (graph := _viewed(source)) is not None:
        _check_own(weights, "a view of NetworkX's edges")
        edges = (edge[:2] for edge in source) if weights == "none" else iter(source)
        return Object(edges, graph.is_directed())
    return None


def _viewed(source: Any) -> Any:
    """The graph whose edges a view of NetworkX has; None of anything else."""
    if not type(source).__module__.startswith("networkx."):
        return None
    view = getattr(source, "_viewer", source)
    return getattr(view, "_graph", None)


def _of_matrix(matrix: Any, weights: str | None) -> Object:
    """A sparse matrix of SciPy: row i, column j is an edge from i to j."""
    _check_own(weights, "SciPy's matrix")
    rows, columns = matrix.shape
    if rows != columns:
        raise InputError.of(
            "build from a matrix",
            expected="a square one, of edges between vertices",
            got=f"shape {matrix.shape}",
            hint="of a bipartite graph, number the columns after the rows",
        )
    entries = matrix.tocoo()
    batch: tuple[Any, ...] = (entries.row, entries.col)
    if weights != "none" and entries.data.dtype.kind != "b":
        batch += (entries.data,)
    return Object(iter([batch]), directed=True, vertices=rows)


def _of_igraph(graph: Any, weights: str | None) -> Object:
    """igraph's: vertices by the attribute `name` where they have it, else by number."""
    ends = np.array(graph.get_edgelist(), np.int64).reshape(-1, 2)
    name = _attribute(weights, graph.es.attributes(), "igraph's edges")
    own = () if name is None else (np.array(graph.es[name], np.float64),)
    directed, count = graph.is_directed(), graph.vcount()
    if "name" not in graph.vs.attributes():
        return Object(iter([(ends[:, 0], ends[:, 1], *own)]), directed, count)
    names = np.array(graph.vs["name"], object)
    if odd := [name for name in names if not isinstance(name, str)]:
        raise InputError.of(
            "name the vertices",
            expected="a text as the `name` of every vertex",
            got=repr(odd[0]),
        )
    _refuse_twice(names)
    batch = (names[ends[:, 0]], names[ends[:, 1]], *own)
    return Object(iter([batch]), directed, listed=names.tolist())


def _of_networkit(graph: Any, weights: str | None) -> Object:
    """NetworKit's: nodes by their numbers, those that were removed included."""
    _check_own(weights, "NetworKit's graph")
    if graph.isWeighted() and weights != "none":
        edges = _batches(graph.iterEdgesWeights())
    else:
        edges = _batches(graph.iterEdges())
    return Object(edges, graph.isDirected(), int(graph.upperNodeIdBound()))


def _of_networkx(graph: Any, weights: str | None) -> Object:
    """NetworkX's: nodes are all integers, or all texts."""
    nodes = list(graph.nodes)
    texts = bool(nodes) and all(isinstance(node, str) for node in nodes)
    ids = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in nodes)
    if not texts and not (ids and all(0 <= n < 2**64 for n in nodes)):
        raise InputError.of(
            "build from",
            type(graph).__name__,
            expected="nodes that are all text, or all integers of 0 or more",
            hint="`networkx.convert_node_labels_to_integers` numbers others",
        )
    found = {name for _, _, data in graph.edges(data=True) for name in data}
    name = _attribute(weights, found, "the edges")
    if name is None:
        edges = _batches(graph.edges())
    else:
        missing = next((e for e in graph.edges(data=name) if e[2] is None), None)
        if missing is not None:
            raise InputError.of(
                "read the weights of edges",
                expected=f"`{name}` of every edge",
                got=f"none of {missing[:2]}",
                hint="`weights='none'` leaves them out",
            )
        edges = _batches(graph.edges(data=name))
    if texts:
        return Object(edges, graph.is_directed(), listed=nodes)
    if ids and sorted(nodes) == list(range(len(nodes))):
        return Object(edges, graph.is_directed(), len(nodes))
    return Object(edges, graph.is_directed(), listed=np.array(nodes, np.uint64))


def _check_own(weights: str | None, what: str) -> None:
    """Refuses names of weights where edges have one number at most."""
    if weights not in (None, "auto", "none"):
        raise InputError.of(
            "read weights from",
            what,
            expected="`none` or `auto`, as they have no name",
            got=weights,
        )


def _attribute(weights: str | None, there: Iterable[str], what: str) -> str | None:
    """The attribute that weighs edges."""
    there = list(there)
    if weights == "none":
        return None
    if weights is None or weights == "auto":
        return "weight" if "weight" in there else None
    if weights not in there:
        names = ", ".join(f"`{name}`" for name in sorted(there)) or "no attributes"
        raise InputError.of("read weights from", what, expected=f"one of {names}", got=weights)
    return weights


def _batches(edges: Iterable[tuple[Any, ...]]) -> Edges:
    """Columns of edges that come one by one."""
    each = iter(edges)
    while taken := list(islice(each, STEP)):
        yield tuple(list(column) for column in zip(*taken, strict=True))


def _refuse_twice(names: Array) -> None:
    found, counts = np.unique(names.astype(str), return_counts=True)
    if len(found) < len(names):
        twice = found[np.argmax(counts)]
        raise InputError.of("name the vertices", expected="each name once", got=f"`{twice}` twice")
