"""How similar pairs of nodes are, under NetworkX's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ..graph import Graph
from .graphs import View, has_loops

Pairs = Iterable[tuple[Any, Any]] | None
Predicted = Iterator[tuple[Any, Any, float]]


def jaccard_coefficient(G: Any, ebunch: Pairs = None) -> Predicted:  # noqa: N803
    """`networkx.jaccard_coefficient`, of pairs that are given."""
    return _predicted(G, ebunch, "jaccard")


def adamic_adar_index(G: Any, ebunch: Pairs = None) -> Predicted:  # noqa: N803
    """`networkx.adamic_adar_index`, of pairs that are given."""
    return _predicted(G, ebunch, "adamic_adar")


def resource_allocation_index(G: Any, ebunch: Pairs = None) -> Predicted:  # noqa: N803
    """`networkx.resource_allocation_index`, of pairs that are given."""
    return _predicted(G, ebunch, "resource_allocation")


def _predicted(
    source: Any, pairs: Pairs, by: Literal["jaccard", "adamic_adar", "resource_allocation"]
) -> Predicted:
    view, given = View(source), [(u, v) for u, v in pairs or ()]
    if not given:
        return iter(())
    ends = [node for pair in given for node in pair]
    at = view.positions(ends)
    if (at < 0).any():
        raise nx.NodeNotFound(f"Node {ends[np.argmin(at)]} not in G.")
    ids = view.graph.ids[at].reshape(-1, 2)
    similar = view.graph.similarity(ids, by=by)
    if has_loops(source):
        similar = _without_ends(view.graph, ids, similar)
    return iter([(u, v, p) for (u, v), p in zip(given, similar.tolist(), strict=True)])


def _without_ends(
    graph: Graph, pairs: NDArray[np.uint64], jaccard: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Jaccard coefficients as NetworkX counts them: a pair's own vertices are not in common.

    Tiergraph counts one that has a self-loop, and an edge to the other. Reads the neighbours of
    pairs that have any in common.
    """
    common = graph.similarity(pairs, by="common")
    either = np.rint(np.divide(common, jaccard, out=np.ones_like(common), where=jaccard > 0))
    for i in np.flatnonzero(common):
        common[i] -= _ends_in_common(graph, *pairs[i])
    found: NDArray[np.float64] = common / either
    return found


def _ends_in_common(graph: Graph, u: np.uint64, v: np.uint64) -> int:
    """How many of the two vertices are neighbours of both."""
    near = graph.neighbors(int(u))
    if not (near == v).any():
        return 0
    own = (graph.neighbors(int(v)) == v).any() if u != v else False
    return int((near == u).any()) + int(own)


def why_not(name: str, graph: Any, given: dict[str, Any]) -> str | None:
    """Why one of these is not for tiergraph; None if it is. `given` are its arguments by name."""
    is_one = name in ("jaccard_coefficient", "adamic_adar_index", "resource_allocation_index")
    if is_one and given.get("ebunch") is None:
        return "tiergraph compares the pairs that are given (`ebunch`), and not all"
    if name in ("adamic_adar_index", "resource_allocation_index") and has_loops(graph):
        return "NetworkX counts a self-loop twice in a degree, and tiergraph once"
    return None
