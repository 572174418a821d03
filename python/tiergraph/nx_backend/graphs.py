"""Graphs as the backend has them: on disk, or of NetworkX and written to a temporary folder."""

from __future__ import annotations

import tempfile
import warnings
import weakref
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ..attached.nodes import find
from ..errors import InputWarning
from ..graph import Graph, open
from ..sources.edges import Batch
from ..write import build

Node: TypeAlias = Hashable
Positions: TypeAlias = NDArray[np.integer[Any]]


class Converted:
    """A NetworkX graph as one of tiergraph: vertices are numbered in the order of its nodes."""

    __networkx_backend__ = "tiergraph"

    def __init__(self, source: Any, weight: tuple[str, float] | None) -> None:
        self.nodes: list[Node] = list(source)
        self.index = {node: position for position, node in enumerate(self.nodes)}
        self._directed, self._multi = source.is_directed(), source.is_multigraph()
        self.has_loops = any(u == v for u, v in source.edges())
        self.graph = None if not self.nodes else self._written(source, weight)

    def _written(self, source: Any, weight: tuple[str, float] | None) -> Graph:
        ends = [(self.index[u], self.index[v]) for u, v in source.edges()]
        src, dst = np.array(ends, np.uint64).reshape(-1, 2).T
        edges: Batch = (src, dst)
        if weight is not None:
            name, default = weight
            given = [default if w is None else w for _, _, w in source.edges(data=name)]
            if any(w != default for w in given):
                edges = (src, dst, _weights(given))
        folder = tempfile.TemporaryDirectory(prefix="tiergraph-networkx-")
        path = Path(folder.name) / "graph.tg"
        with warnings.catch_warnings():
            # Edges that are there more than once are what the graph has.
            warnings.simplefilter("ignore", InputWarning)
            build(edges, path, vertices=len(self.nodes), undirected=not self._directed, ids="dense")
        graph = open(path)
        weakref.finalize(self, folder.cleanup)
        return graph

    def is_directed(self) -> bool:
        """Whether an edge has a direction."""
        return bool(self._directed)

    def is_multigraph(self) -> bool:
        """Whether two nodes may have several edges."""
        return bool(self._multi)

    def number_of_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __contains__(self, node: object) -> bool:
        return node in self.index


def _weights(given: list[Any]) -> NDArray[np.float64]:
    """Weights that tiergraph takes."""
    try:
        weights = np.array(given, np.float64)
    except (TypeError, ValueError):
        raise NotImplementedError("weights of edges are numbers for tiergraph") from None
    if not (weights >= 0).all() or np.isinf(weights).any():
        raise NotImplementedError("weights of edges are 0 or more, and finite, for tiergraph")
    return weights


def has_loops(graph: Any) -> bool:
    """Whether an edge of a graph without directions leads from a node to itself."""
    if isinstance(graph, Graph):
        # An edge is two arcs, a self-loop one.
        info = graph.info()
        return bool(2 * info["edges"] > info["arcs"])
    return graph.has_loops if isinstance(graph, Converted) else nx.number_of_selfloops(graph) > 0


class View:
    """Either kind of graph: positions from 0 on, and what they are called."""

    def __init__(self, source: Graph | Converted) -> None:
        self._source = source
        self.count = len(source)

    @property
    def graph(self) -> Graph:
        """The graph that algorithms run on. There is none of a graph without nodes."""
        graph = self._source if isinstance(self._source, Graph) else self._source.graph
        assert graph is not None, "a graph without nodes has been dealt with"
        return graph

    def labels(self, positions: Positions | None = None) -> list[Any]:
        """What vertices are called: all, or those at some positions."""
        if positions is None:
            return list(self._source)
        if isinstance(self._source, Converted):
            return [self._source.nodes[i] for i in positions]
        if self._source.names is not None:
            return self._source.names.of(np.asarray(positions))
        return list(self._source.ids[positions].tolist())

    def positions(self, nodes: Sequence[Node]) -> NDArray[np.int64]:
        """The positions of nodes, int64 of shape (n,); -1 for one that is not there."""
        if isinstance(self._source, Graph):
            return find(self._source, nodes)
        return np.array([self._source.index.get(node, -1) for node in nodes], np.int64)

    def position(self, node: Node) -> int | None:
        """The position of a node; None if it is not there."""
        try:
            at = int(self.positions([node])[0])
        except TypeError:
            # What has no hash is no node.
            return None
        return None if at < 0 else at

    def id(self, node: Node, error: Exception) -> int:
        """The id of a vertex that has to be there."""
        at = self.position(node)
        if at is None:
            raise error
        return int(self.graph.ids_of(at, at + 1)[0])

    def weighs(self, weight: Any) -> bool:
        """Whether edges have weights, and those are asked for.

        Of a graph on disk they are the attribute `weight`. It has no other: each edge counts 1.
        """
        if weight is None or (isinstance(self._source, Graph) and weight != "weight"):
            return False
        return self.graph.weighted

    def vector(self, values: Mapping[Any, float]) -> NDArray[np.float64]:
        """Values of vertices by their names, as an array; 0 of those that are not named."""
        vector = np.zeros(self.count)
        at = self.positions(list(values))
        vector[at[at >= 0]] = np.array(list(values.values()), np.float64)[at >= 0]
        return vector

    def by_label(self, values: NDArray[Any]) -> dict[Any, Any]:
        """Values of all vertices, by their names."""
        return dict(zip(self.labels(), values.tolist(), strict=True))

    def groups(self, names: NDArray[Any]) -> Iterator[set[Any]]:
        """The vertices of each name, as sets, in the order of names."""
        in_order = np.argsort(names, kind="stable")
        begins = np.flatnonzero(np.diff(names[in_order])) + 1
        labels = self.labels()
        for positions in np.split(in_order, begins):
            yield {labels[i] for i in positions.tolist()}

    def nearest_first(
        self, far: NDArray[Any], is_reached: NDArray[np.bool_], source: Node, cutoff: float | None
    ) -> dict[Any, Any]:
        """How far vertices are from `source`: of those that can be reached, the nearest first.

        Those farther than `cutoff` are left out, but `source` never.
        """
        is_near = is_reached if cutoff is None else is_reached & (far <= cutoff)
        is_near[self.position(source)] = True
        reached = np.flatnonzero(is_near)
        reached = reached[np.argsort(far[reached], kind="stable")]
        return dict(zip(self.labels(reached), far[reached].tolist(), strict=True))


def convert_from_nx(
    graph: Any,
    edge_attrs: Mapping[str, Any] | None = None,
    preserve_edge_attrs: bool = False,
    **_others: Any,
) -> Converted | Graph:
    """The graph, written to a temporary folder; with the one attribute that weighs its edges."""
    if isinstance(graph, Converted | Graph):
        return graph
    if preserve_edge_attrs or (edge_attrs is not None and len(edge_attrs) > 1):
        raise NotImplementedError("edges have one weight for tiergraph, and no other attribute")
    weight = None
    for name, default in (edge_attrs or {}).items():
        weight = (name, 1.0 if default is None else float(default))
    return Converted(graph, weight)


def convert_to_nx(result: Any, **_options: Any) -> Any:
    """Results are Python's own already; a graph on disk does not become one in memory."""
    if isinstance(result, Graph | Converted):
        raise NotImplementedError(
            "a graph of tiergraph does not become one of NetworkX: it may not fit in memory"
        )
    return result
