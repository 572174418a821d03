"""Centralities by repeated passes, under NetworkX's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from .. import centrality
from ..graph import Graph
from .graphs import View


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
    least = tol * view.count
    is_plain = all(d is None for d in distributions) and not view.weighs(weight)
    if max_iter > 0 and is_plain and least >= PLAIN:
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
    if iterations < 1:
        raise nx.PowerIterationFailedConvergence(iterations)
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
    weights = view.weighs("weight")
    how = {"start": start, "weights": weights}
    hubs, authorities = _iterated(centrality.hits, view.graph, max_iter, tol, **how)
    if not authorities.any():
        raise nx.NetworkXError("hubs and authorities are all zero, as in a graph without edges")
    if not normalized:
        authorities = authorities / np.linalg.norm(authorities)
        hubs = view.graph.propagate(authorities, transpose=True, weights=weights)
    return view.by_label(hubs), view.by_label(authorities)
