"""Triangles, cores, betweenness and communities, under NetworkX's names."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ..graph import Graph
from .graphs import View, has_loops


def _asked(view: View, values: NDArray[Any], nodes: Any, missing: str) -> Any:
    """Values of all vertices by name, of those of `nodes`, or the value of one."""
    if nodes is None:
        return view.by_label(values)
    if (at := view.position(nodes)) is not None:
        return values[at].item()
    try:
        asked = list(dict.fromkeys(nodes))
    except TypeError:
        raise nx.NetworkXError(missing) from None
    places = zip(asked, view.positions(asked).tolist(), strict=True)
    return {node: values[at].item() for node, at in places if at >= 0}


def triangles(G: Any, nodes: Any = None) -> Any:  # noqa: N803
    """`networkx.triangles`."""
    view = View(G)
    if view.count == 0:
        return {}
    found = view.graph.triangles().astype(np.int64)
    return _asked(view, found, nodes, f"Node {nodes} is not in the graph")


def clustering(G: Any, nodes: Any = None, weight: Any = None) -> Any:  # noqa: N803
    """`networkx.clustering`, without weights and directions."""
    view = View(G)
    if view.count == 0:
        return {}
    return _asked(view, view.graph.clustering(), nodes, f"Node {nodes} is not in the graph")


def average_clustering(
    G: Any,  # noqa: N803
    nodes: Any = None,
    weight: Any = None,
    count_zeros: bool = True,
) -> float:
    """`networkx.average_clustering`, without weights and directions."""
    values = clustering(G, None if nodes is None else list(nodes)).values()
    counted = [value for value in values if count_zeros or abs(value) > 0]
    return float(sum(counted) / len(counted))


def transitivity(G: Any) -> float:  # noqa: N803
    """`networkx.transitivity`."""
    view = View(G)
    if view.count == 0:
        return 0
    view.graph.triangles()
    return float(view.graph.last_run["transitivity"]) or 0


def core_number(G: Any) -> dict[Any, int]:  # noqa: N803
    """`networkx.core_number`, of graphs without directions."""
    view = View(G)
    if has_loops(G):
        raise nx.NetworkXNotImplemented("Input graph has self loops, which have no core number")
    return {} if view.count == 0 else view.by_label(view.graph.kcore())


def betweenness_centrality(
    G: Any,  # noqa: N803
    k: int | None = None,
    normalized: bool = True,
    weight: Any = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    """`networkx.betweenness_centrality`, without weights and endpoints, from all vertices."""
    view = View(G)
    if view.count == 0:
        return {}
    sums = view.graph.betweenness()
    if normalized and view.count > 2:
        both = 1 if view.graph.directed else 2
        sums = sums * (both / ((view.count - 1) * (view.count - 2)))
    return view.by_label(sums)


def louvain_communities(
    G: Any,  # noqa: N803
    weight: str | None = "weight",
    resolution: float = 1,
    threshold: float = 1e-07,
    max_level: int | None = None,
    seed: Any = None,
) -> list[set[Any]]:
    """`networkx.community.louvain_communities`, of graphs without directions."""
    return _communities(G, "louvain", resolution, seed)


def leiden_communities(
    G: Any,  # noqa: N803
    weight: str | None = "weight",
    resolution: float = 1,
    max_level: int | None = None,
    seed: Any = None,
) -> list[set[Any]]:
    """`networkx.community.leiden_communities`, which only backends have."""
    return _communities(G, "leiden", resolution, seed)


def _communities(source: Any, method: str, resolution: float, seed: Any) -> list[set[Any]]:
    view = View(source)
    if view.count == 0:
        return []
    drawn = seed if isinstance(seed, int | np.integer) else 0
    community = view.graph.run(method, resolution=float(resolution), seed=int(drawn))
    return list(view.groups(community))


def why_not(name: str, graph: Any, given: dict[str, Any]) -> str | None:
    """Why one of these is not for tiergraph; None if it is. `given` are its arguments by name."""
    directed = name in ("clustering", "average_clustering", "transitivity", "core_number") or (
        name.endswith("_communities")
    )
    if directed and graph.is_directed():
        return "for tiergraph, edges have no direction there"
    if name == "betweenness_centrality":
        if given.get("k") is not None and given["k"] != len(graph):
            return "which vertices NetworkX samples is NetworkX's"
        if given.get("weight") is not None or given.get("endpoints") or graph.is_multigraph():
            return "tiergraph counts hops, without endpoints, between nodes with one edge"
    if name in ("clustering", "average_clustering") and given.get("weight") is not None:
        return "tiergraph counts triangles without weights"
    weighted = isinstance(graph, Graph) and graph.weighted
    if name.endswith("_communities") and given.get("weight", "weight") != "weight" and weighted:
        return "tiergraph counts edges by the weights that a graph has"
    if given.get("max_level") is not None:
        return "tiergraph goes on until no vertex moves"
    return None
