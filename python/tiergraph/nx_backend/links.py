"""How similar pairs of nodes are, under NetworkX's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import networkx as nx
import numpy as np

from .graphs import View

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
    similar = view.graph.similarity(view.graph.ids[at].reshape(-1, 2), by=by)
    return iter([(u, v, p) for (u, v), p in zip(given, similar.tolist(), strict=True)])


def why_not(name: str, given: dict[str, Any]) -> str | None:
    """Why one of these is not for tiergraph; None if it is. `given` are its arguments by name."""
    is_one = name in ("jaccard_coefficient", "adamic_adar_index", "resource_allocation_index")
    if is_one and given.get("ebunch") is None:
        return "tiergraph compares the pairs that are given (`ebunch`), and not all"
    return None
