"""Components and isolated vertices, under NetworkX's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from .graphs import Positions, View


def connected_components(G: Any) -> Iterator[set[Any]]:  # noqa: N803
    """`networkx.connected_components`: in the order of their first vertices."""
    view = View(G)
    if view.count == 0:
        return
    yield from view.groups(view.graph.wcc())


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


def strongly_connected_components(G: Any) -> Iterator[set[Any]]:  # noqa: N803
    """`networkx.strongly_connected_components`: in the order of their first vertices."""
    view = View(G)
    if view.count:
        yield from view.groups(view.graph.scc())


def number_strongly_connected_components(G: Any) -> int:  # noqa: N803
    """`networkx.number_strongly_connected_components`."""
    view = View(G)
    if view.count == 0:
        return 0
    view.graph.scc()
    return int(view.graph.last_run["components"])


def is_strongly_connected(G: Any) -> bool:  # noqa: N803
    """`networkx.is_strongly_connected`."""
    if View(G).count == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_strongly_connected_components(G) == 1


weakly_connected_components = connected_components
number_weakly_connected_components = number_connected_components
is_weakly_connected = is_connected


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
