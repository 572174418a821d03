"""Lengths of shortest paths, and what they reach, under NetworkX's names."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from .graphs import View


def single_source_shortest_path_length(
    G: Any,  # noqa: N803
    source: Any,
    cutoff: float | None = None,
) -> dict[Any, int]:
    """`networkx.single_source_shortest_path_length`: the nearest first."""
    missing = nx.NodeNotFound(f"Source {source} is not in G")
    # NetworkX goes on to the next level while the cutoff is above this one.
    return _hops(G, source, None if cutoff is None else np.ceil(cutoff), missing)


def _hops(
    source_graph: Any, source: Any, cutoff: float | None, missing: Exception
) -> dict[Any, Any]:
    view = View(source_graph)
    if view.count == 0:
        raise missing
    hops = view.graph.bfs(view.id(source, missing))
    return view.nearest_first(hops, hops >= 0, source, cutoff)


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
    return view.nearest_first(far, np.isfinite(far), source, cutoff)


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
