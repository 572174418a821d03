"""NetworkX's functions on graphs of tiergraph: `nx.pagerank(tg.open("web.tg"))`.

NetworkX (3.4 or newer) finds this module by its entry point, and calls it where a graph is one of
`tiergraph.open`, or with `backend="tiergraph"`: then a NetworkX graph is first written to a
temporary folder. Names, arguments, results and errors are NetworkX's; vertices are their ids, or
the nodes of the graph that was converted. What is not here NetworkX refuses for a graph on disk, by
name.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from . import links, structure
from .components import (
    connected_components,
    is_connected,
    is_strongly_connected,
    is_weakly_connected,
    isolates,
    node_connected_component,
    number_connected_components,
    number_of_isolates,
    number_strongly_connected_components,
    number_weakly_connected_components,
    strongly_connected_components,
    weakly_connected_components,
)
from .graphs import Converted, View, convert_from_nx, convert_to_nx
from .links import adamic_adar_index, jaccard_coefficient, resource_allocation_index
from .paths import (
    descendants,
    descendants_at_distance,
    has_path,
    single_source_bellman_ford_path_length,
    single_source_dijkstra_path_length,
    single_source_shortest_path_length,
)
from .ranks import eigenvector_centrality, hits, katz_centrality, pagerank
from .structure import (
    average_clustering,
    betweenness_centrality,
    clustering,
    core_number,
    leiden_communities,
    louvain_communities,
    transitivity,
    triangles,
)

__all__ = [
    "Converted",
    "View",
    "adamic_adar_index",
    "average_clustering",
    "betweenness_centrality",
    "can_run",
    "clustering",
    "connected_components",
    "convert_from_nx",
    "convert_to_nx",
    "core_number",
    "descendants",
    "descendants_at_distance",
    "eigenvector_centrality",
    "has_path",
    "hits",
    "is_connected",
    "is_strongly_connected",
    "is_weakly_connected",
    "isolates",
    "jaccard_coefficient",
    "katz_centrality",
    "leiden_communities",
    "louvain_communities",
    "node_connected_component",
    "number_connected_components",
    "number_of_isolates",
    "number_strongly_connected_components",
    "number_weakly_connected_components",
    "pagerank",
    "resource_allocation_index",
    "single_source_bellman_ford_path_length",
    "single_source_dijkstra_path_length",
    "single_source_shortest_path_length",
    "strongly_connected_components",
    "transitivity",
    "triangles",
    "weakly_connected_components",
]


def can_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Whether a call is one for tiergraph, or why not."""
    given = dict(zip(inspect.signature(globals()[name]).parameters, args, strict=False))
    given |= kwargs
    if callable(given.get("weight")):
        return "weights are an attribute of edges for tiergraph, and no function"
    graph = given["G"]
    why_not = structure.why_not(name, graph, given) or links.why_not(name, graph, given)
    return True if why_not is None else why_not
