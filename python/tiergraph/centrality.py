"""Measures of vertices by repeated passes of `Graph.propagate`: on a CPU or a GPU, in any memory.

Each takes a graph and gives float64 arrays of shape (|V|,) in the order of `graph.ids`. A pass over
the edges an iteration, two for HITS; a few times 8 bytes a vertex are held beside what a pass
needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .graph import Graph

Floats: TypeAlias = NDArray[np.float64]


class NotConvergedError(ArithmeticError):
    """So many iterations were not enough."""

    def __init__(self, iterations: int) -> None:
        super().__init__(f"no convergence within {iterations} iterations")
        self.iterations = iterations


def pagerank(
    graph: Graph,
    *,
    damping: float = 0.85,
    teleport: Floats | None = None,
    start: Floats | None = None,
    sinks: Floats | None = None,
    weights: bool = False,
    iterations: int = 100,
    tolerance: float = 1e-6,
) -> Floats:
    """PageRank whose arcs may weigh, and which may teleport anywhere; the ranks sum to 1.

    `teleport` is where walks begin again, `start` the first ranks, `sinks` where the mass of
    vertices that nothing leaves goes: distributions over the vertices (1/|V| each, and `teleport`
    for sinks). `Graph.pagerank` is faster where none is given. Ends once ranks change by less than
    `tolerance` in all; raises `NotConvergedError` where `iterations` do not do. (Page et al.,
    1999.)
    """
    count = graph.vertices
    even = np.full(count, 1 / count)
    teleport = even if teleport is None else teleport
    sinks = teleport if sinks is None else sinks
    leaving = _over(graph, np.ones(count), weights, transpose=True)
    is_sink = leaving == 0
    share = np.divide(1.0, leaving, out=np.zeros(count), where=~is_sink)

    def step(ranks: Floats) -> Floats:
        moved = _over(graph, ranks * share, weights)
        from_sinks = float(ranks[is_sink].sum())
        return damping * (moved + from_sinks * sinks) + (1 - damping) * teleport

    own = {"damping": damping, "teleport": teleport, "start": start, "sinks": sinks}
    first = even if start is None else start
    return _fixed_point(graph, "pagerank", own, step, first, weights, iterations, tolerance)


def eigenvector(
    graph: Graph,
    *,
    start: Floats | None = None,
    weights: bool = False,
    iterations: int = 100,
    tolerance: float = 1e-6,
) -> Floats:
    """Eigenvector centrality, of length 1: a vertex counts as those that point at it do.

    The power method on A + I, which has A's eigenvectors and converges on bipartite graphs, too.
    Ends and raises as `pagerank` does; `ValueError` for a `start` of zeros. (Bonacich, J. Math.
    Sociology 2, 1972.)
    """
    first = np.full(graph.vertices, 1.0) if start is None else start
    if not first.any():
        raise ValueError("the first values are all zero")

    def step(values: Floats) -> Floats:
        raised = values + _over(graph, values, weights)
        return raised / (float(np.linalg.norm(raised)) or 1.0)

    first = first / first.sum()
    own = {"start": start}
    return _fixed_point(graph, "eigenvector", own, step, first, weights, iterations, tolerance)


def katz(
    graph: Graph,
    *,
    alpha: float = 0.1,
    beta: float | Floats = 1.0,
    start: Floats | None = None,
    weights: bool = False,
    iterations: int = 1000,
    tolerance: float = 1e-6,
) -> Floats:
    """Katz centrality, not normalised: paths that end at a vertex, each `alpha` times less a step.

    x = `alpha` Aᵀx + `beta`; `alpha` has to be below 1 over A's largest eigenvalue. Ends and raises
    as `pagerank` does. (Katz, Psychometrika 18, 1953.)
    """
    first = np.zeros(graph.vertices) if start is None else start

    def step(values: Floats) -> Floats:
        return alpha * _over(graph, values, weights) + beta

    own = {"alpha": alpha, "beta": beta, "start": start}
    return _fixed_point(graph, "katz", own, step, first, weights, iterations, tolerance)


def hits(
    graph: Graph,
    *,
    start: Floats | None = None,
    weights: bool = False,
    iterations: int = 100,
    tolerance: float = 1e-8,
) -> tuple[Floats, Floats]:
    """Hubs and authorities, each of which sums to 1: hubs point at authorities.

    Ends and raises as `pagerank` does. (Kleinberg, J. ACM 46, 1999.)
    """
    first = np.full(graph.vertices, 1 / graph.vertices) if start is None else start / start.sum()

    def step(hubs: Floats) -> Floats:
        raised = _over(graph, authorities_of(hubs), weights, transpose=True)
        return raised / (float(raised.sum()) or 1.0)

    def authorities_of(hubs: Floats) -> Floats:
        raised = _over(graph, hubs, weights)
        return raised / (float(raised.sum()) or 1.0)

    own = {"start": start}
    hubs = _fixed_point(graph, "hits", own, step, first, weights, iterations, tolerance)
    return hubs, authorities_of(hubs)


def _over(graph: Graph, values: Floats, weights: bool, transpose: bool = False) -> Floats:
    """The sums of values over the arcs that enter vertices; with `transpose`, that leave them."""
    sums: Floats = graph.propagate(values, transpose=transpose, weights=weights)
    return sums


def _fixed_point(
    graph: Graph,
    name: str,
    options: dict[str, Any],
    step: Callable[[Floats], Floats],
    first: Floats,
    weights: bool,
    iterations: int,
    tolerance: float,
) -> Floats:
    """`Graph.fixed_point`, which raises where it is not reached."""
    found = graph.fixed_point(
        step,
        first,
        iterations=iterations,
        tolerance=tolerance,
        name=name,
        options=options | {"weights": weights},
    )
    if found is None:
        raise NotConvergedError(iterations)
    return found
