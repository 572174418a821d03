"""NetworkX's functions on graphs of tiergraph: `nx.pagerank(tg.open("web.tg"))`.

NetworkX (3.4 or newer) finds this module by its entry point, and calls it where a graph is one of
`tiergraph.open`, or with `backend="tiergraph"`: then a NetworkX graph is first written to a
temporary folder. Names, arguments, results and errors are NetworkX's; vertices are their ids, or
the nodes of the graph that was converted. What is not here NetworkX refuses for a graph on disk, by
name.
"""

from __future__ import annotations

import tempfile
import warnings
import weakref
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from . import centrality
from .errors import InputWarning
from .graph import Graph, open
from .sources.edges import Batch
from .write import build

Node: TypeAlias = Hashable
Positions: TypeAlias = NDArray[np.integer[Any]]


class Converted:
    """A NetworkX graph as one of tiergraph: vertices are numbered in the order of its nodes."""

    __networkx_backend__ = "tiergraph"

    def __init__(self, source: Any, weight: tuple[str, float] | None) -> None:
        self.nodes: list[Node] = list(source)
        self.index = {node: position for position, node in enumerate(self.nodes)}
        self._directed, self._multi = source.is_directed(), source.is_multigraph()
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
        if isinstance(self._source, Converted):
            nodes = self._source.nodes
            return nodes if positions is None else [nodes[i] for i in positions]
        ids = self._source.ids
        return list((ids if positions is None else ids[positions]).tolist())

    def position(self, node: Node) -> int | None:
        """Where a vertex is; None if there is none of that name."""
        if isinstance(self._source, Converted):
            return self._source.index.get(node)
        if not isinstance(node, int | np.integer) or node < 0:
            return None
        ids = self._source.ids
        at = int(np.searchsorted(ids, node))
        return at if at < self.count and ids[at] == node else None

    def id(self, node: Node, error: Exception) -> int:
        """The id of a vertex that has to be there."""
        at = self.position(node)
        if at is None:
            raise error
        return int(self.graph.ids_of(at, at + 1)[0])

    def weighs(self, weight: Any) -> bool:
        """Whether edges have weights, and those are asked for."""
        return weight is not None and self.graph.weighted

    def vector(self, values: Mapping[Any, float]) -> NDArray[np.float64]:
        """Values of vertices by their names, as an array; 0 of those that are not named."""
        vector = np.zeros(self.count)
        for node, value in values.items():
            if (at := self.position(node)) is not None:
                vector[at] = value
        return vector

    def by_label(self, values: NDArray[Any]) -> dict[Any, Any]:
        """Values of all vertices, by their names."""
        return dict(zip(self.labels(), values.tolist(), strict=True))

    def nearest_first(self, far: NDArray[Any], is_reached: NDArray[np.bool_]) -> dict[Any, Any]:
        """How far the vertices are that can be reached, the nearest first."""
        reached = np.flatnonzero(is_reached)
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


def can_run(_name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Whether a call is one for tiergraph, or why not."""
    if any(callable(value) for value in (kwargs.get("weight"), *args[1:])):
        return "weights are an attribute of edges for tiergraph, and no function"
    return True


def pagerank(
    G: Any,  # noqa: N803 (NetworkX's name)
    alpha: float = 0.85,
    personalization: Mapping[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Mapping[Any, float] | None = None,
    weight: str | None = "weight",
    dangling: Mapping[Any, float] | None = None,
) -> dict[Any, float]:
    """`networkx.pagerank`. Without weights and distributions, `Graph.pagerank` does it."""
    view = View(G)
    if view.count == 0:
        return {}
    distributions = (personalization, nstart, dangling)
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    least = tol * view.count
    if all(d is None for d in distributions) and not view.weighs(weight) and least >= PLAIN:
        ranks = view.graph.pagerank(damping=alpha, iterations=max_iter, tolerance=least)
        if not view.graph.last_run["converged"]:
            raise nx.PowerIterationFailedConvergence(max_iter)
        return view.by_label(ranks)
    teleport, start, sinks = (
        None if values is None else _distribution(view.vector(values)) for values in distributions
    )
    return view.by_label(
        _iterated(
            centrality.pagerank,
            view.graph,
            max_iter,
            least,
            damping=alpha,
            teleport=teleport,
            start=start,
            sinks=sinks,
            weights=view.weighs(weight),
        )
    )


PLAIN = 1e-6
"""The least change of all float32 ranks together that `Graph.pagerank` is asked for."""


def _distribution(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values that sum to 1."""
    total = values.sum()
    if total == 0:
        raise ZeroDivisionError("the values of a distribution are all zero")
    scaled: NDArray[np.float64] = values / total
    return scaled


def _iterated(measure: Any, graph: Graph, iterations: int, tolerance: float, **how: Any) -> Any:
    """What a measure gives, or NetworkX's error where its iterations do not do."""
    try:
        return measure(graph, iterations=iterations, tolerance=tolerance, **how)
    except centrality.NotConvergedError:
        raise nx.PowerIterationFailedConvergence(iterations) from None


def eigenvector_centrality(
    G: Any,  # noqa: N803
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Mapping[Any, float] | None = None,
    weight: str | None = None,
) -> dict[Any, float]:
    """`networkx.eigenvector_centrality`."""
    view = View(G)
    if view.count == 0:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    start = None if nstart is None else view.vector(nstart)
    if start is not None and not start.any():
        raise nx.NetworkXError("initial vector cannot have all zero values")
    how = {"start": start, "weights": view.weighs(weight)}
    least = tol * view.count
    return view.by_label(_iterated(centrality.eigenvector, view.graph, max_iter, least, **how))


def katz_centrality(
    G: Any,  # noqa: N803
    alpha: float = 0.1,
    beta: float | Mapping[Any, float] = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-6,
    nstart: Mapping[Any, float] | None = None,
    normalized: bool = True,
    weight: str | None = None,
) -> dict[Any, float]:
    """`networkx.katz_centrality`."""
    view = View(G)
    if view.count == 0:
        return {}
    if isinstance(beta, Mapping):
        if set(beta) != set(view.labels()):
            raise nx.NetworkXError("beta dictionary must have a value for every node")
        added: Any = view.vector(beta)
    else:
        try:
            added = float(beta)
        except (TypeError, ValueError):
            raise nx.NetworkXError("beta must be a number") from None
    start = None if nstart is None else view.vector(nstart)
    how = {"alpha": alpha, "beta": added, "start": start, "weights": view.weighs(weight)}
    values = _iterated(centrality.katz, view.graph, max_iter, tol * view.count, **how)
    length = np.linalg.norm(values) if normalized else 1.0
    return view.by_label(values / (length or 1.0))


def hits(
    G: Any,  # noqa: N803
    max_iter: int = 100,
    tol: float = 1e-8,
    nstart: Mapping[Any, float] | None = None,
    normalized: bool = True,
) -> tuple[dict[Any, float], dict[Any, float]]:
    """`networkx.hits`, by the power method."""
    view = View(G)
    if view.count == 0:
        return {}, {}
    start = None if nstart is None else view.vector(nstart)
    how = {"start": start, "weights": view.weighs("weight")}
    both = _iterated(centrality.hits, view.graph, max_iter, tol, **how)
    hubs, authorities = (v if normalized else v / np.linalg.norm(v) for v in both)
    return view.by_label(hubs), view.by_label(authorities)


def connected_components(G: Any) -> Iterator[set[Any]]:  # noqa: N803
    """`networkx.connected_components`: in the order of their first vertices."""
    view = View(G)
    if view.count == 0:
        return
    component = view.graph.wcc()
    in_order = np.argsort(component, kind="stable")
    begins = np.flatnonzero(np.diff(component[in_order])) + 1
    for positions in np.split(in_order, begins):
        yield set(view.labels(positions))


def number_connected_components(G: Any) -> int:  # noqa: N803
    """`networkx.number_connected_components`."""
    view = View(G)
    if view.count == 0:
        return 0
    view.graph.wcc(largest=0)
    return int(view.graph.last_run["components"])


def is_connected(G: Any) -> bool:  # noqa: N803
    """`networkx.is_connected`."""
    if View(G).count == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_connected_components(G) == 1


def node_connected_component(G: Any, n: Any) -> set[Any]:  # noqa: N803
    """`networkx.node_connected_component`."""
    view = View(G)
    at = view.position(n) if view.count else None
    if at is None:
        raise KeyError(n)
    component = view.graph.wcc()
    return set(view.labels(np.flatnonzero(component == component[at])))


weakly_connected_components = connected_components
number_weakly_connected_components = number_connected_components
is_weakly_connected = is_connected


def single_source_shortest_path_length(
    G: Any,  # noqa: N803
    source: Any,
    cutoff: float | None = None,
) -> dict[Any, int]:
    """`networkx.single_source_shortest_path_length`: the nearest first."""
    missing = nx.NodeNotFound(f"Source {source} is not in G")
    return _hops(G, source, cutoff, missing)


def _hops(
    source_graph: Any, source: Any, cutoff: float | None, missing: Exception
) -> dict[Any, Any]:
    view = View(source_graph)
    if view.count == 0:
        raise missing
    hops = view.graph.bfs(view.id(source, missing))
    most = np.inf if cutoff is None else cutoff
    return view.nearest_first(hops, (hops >= 0) & (hops <= most))


def single_source_dijkstra_path_length(
    G: Any,  # noqa: N803
    source: Any,
    cutoff: float | None = None,
    weight: Any = "weight",
) -> dict[Any, float]:
    """`networkx.single_source_dijkstra_path_length`: the nearest first."""
    missing = nx.NodeNotFound(f"Node {source} not found in graph")
    view = View(G)
    if view.count == 0 or not view.weighs(weight):
        return _hops(G, source, cutoff, missing)
    far = view.graph.sssp(view.id(source, missing))
    most = np.inf if cutoff is None else cutoff
    return view.nearest_first(far, np.isfinite(far) & (far <= most))


def single_source_bellman_ford_path_length(
    G: Any,  # noqa: N803
    source: Any,
    weight: Any = "weight",
) -> dict[Any, float]:
    """`networkx.single_source_bellman_ford_path_length`, of weights of 0 or more."""
    return single_source_dijkstra_path_length(G, source, None, weight)


def has_path(G: Any, source: Any, target: Any) -> bool:  # noqa: N803
    """`networkx.has_path`."""
    view = View(G)
    missing = nx.NodeNotFound(f"Either source {source} or target {target} is not in G")
    if view.count == 0:
        raise missing
    at = view.position(target)
    hops = view.graph.bfs(view.id(source, missing))
    if at is None:
        raise missing
    return bool(hops[at] >= 0)


def descendants(G: Any, source: Any) -> set[Any]:  # noqa: N803
    """`networkx.descendants`."""
    missing = nx.NetworkXError(f"The node {source} is not in the graph.")
    return set(_hops(G, source, None, missing)) - {source}


def descendants_at_distance(G: Any, source: Any, distance: int) -> set[Any]:  # noqa: N803
    """`networkx.descendants_at_distance`."""
    missing = nx.NetworkXError(f"The node {source} is not in the graph.")
    found = _hops(G, source, distance, missing)
    return {node for node, hops in found.items() if hops == distance}


def isolates(G: Any) -> Iterator[Any]:  # noqa: N803
    """`networkx.isolates`."""
    view = View(G)
    return iter(view.labels(_isolated(view)) if view.count else [])


def number_of_isolates(G: Any) -> int:  # noqa: N803
    """`networkx.number_of_isolates`."""
    view = View(G)
    return len(_isolated(view)) if view.count else 0


def _isolated(view: View) -> Positions:
    graph = view.graph
    return np.flatnonzero((graph.degrees("out") == 0) & (graph.degrees("in") == 0))
