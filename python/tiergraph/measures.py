"""Measures of a graph's edges and of pairs of vertices, by passes of `Graph.propagate` and degrees.

They run where the graph was opened, on a CPU or a GPU, in any memory; a few times 8 bytes a vertex
are held beside what a pass needs. Repeated edges count as often as they are there.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .arguments.calls import checked
from .arguments.checks import arguments, choice, count, number, vertex
from .errors import InputError
from .graph import Graph, opened

Ranked = list[tuple[int, float]]
"""Ids and values, the largest first."""


@checked
@arguments(graph=opened, vertex=vertex, by=choice("jaccard", "overlap", "common"), top=count)
def similar(
    graph: Graph,
    vertex: int | str,
    *,
    by: Literal["jaccard", "overlap", "common"] = "jaccard",
    top: int = 10,
) -> Ranked:
    """The vertices most similar to `vertex` by the neighbours that edges of both lead to.

    `common` counts these, `jaccard` divides by the neighbours that either has (Jaccard, 1901),
    `overlap` by those of the vertex that has fewer. Gives at most `top` pairs (id, similarity) with
    something in common, the largest first, ties by id. One pass over the edges. For graphs without
    repeated edges.
    """
    vertex = graph.vertex(vertex)
    own = np.searchsorted(graph.ids, graph.neighbors(vertex))
    marks = np.zeros(graph.vertices, np.float32)
    marks[np.unique(own)] = 1
    common = graph.propagate(marks, transpose=True).astype(np.float64)
    at = int(np.searchsorted(graph.ids, np.uint64(vertex)))
    degrees = graph.degrees().astype(np.float64)
    values = common
    if by != "common":
        either = degrees + degrees[at] - common if by == "jaccard" else None
        divisor = either if either is not None else np.minimum(degrees, degrees[at])
        values = np.divide(common, divisor, out=np.zeros_like(common), where=divisor > 0)
    values[at] = 0
    found = np.flatnonzero(values)
    order = found[np.lexsort((found, -values[found]))][:top]
    return [(int(graph.ids[i]), float(values[i])) for i in order]


@checked
@arguments(graph=opened, restart=number(0, 1, open_below=True), top=count)
def random_walk_with_restart(
    graph: Graph,
    source: int | str,
    *,
    restart: float = 0.15,
    iterations: int = 100,
    tolerance: float = 1e-6,
    top: int = 10,
) -> Ranked:
    """Where a walk from `source` is that starts again with probability `restart` (RWR).

    Gives the `top` pairs (id, probability), the largest first: proximity to `source` (Tong,
    Faloutsos and Pan, 2006). It is a personalised PageRank with one source and damping 1 -
    `restart`.
    """
    ranks = graph.pagerank(
        damping=1 - restart,
        iterations=iterations,
        tolerance=tolerance,
        sources=[graph.vertex(source)],
    )
    order = np.lexsort((graph.ids, -ranks))[:top]
    return [(int(graph.ids[i]), float(ranks[i])) for i in order if ranks[i] > 0]


@checked
@arguments(graph=opened)
def degree_assortativity(graph: Graph) -> float:
    """The correlation of the degrees at both ends of an edge, from -1 to 1 (Newman, 2003).

    Of edges with a direction, that of the out-degree of sources and the in-degree of targets. NaN
    where all degrees are the same. One pass over the edges.
    """
    out = graph.degrees("out").astype(np.float64)
    into = graph.degrees("in").astype(np.float64)
    ends = into.sum()
    if ends == 0:
        return float("nan")
    # Sums over arcs: of both ends' degrees, of each, and of their squares.
    products = float(into @ graph.propagate(out)) if graph.directed else float(out @ _pulled(graph))
    means = float(out @ out) / ends, float(into @ into) / ends
    squares = float(out @ out**2) / ends, float(into @ into**2) / ends
    spread = np.sqrt((squares[0] - means[0] ** 2) * (squares[1] - means[1] ** 2))
    return float((products / ends - means[0] * means[1]) / spread) if spread > 0 else float("nan")


def _pulled(graph: Graph) -> NDArray[np.float64]:
    """The sum of the neighbours' degrees of every vertex, without directions."""
    pulled: NDArray[np.float64] = graph.propagate(graph.degrees().astype(np.float64))
    return pulled


@checked
@arguments(graph=opened)
def degree_statistics(graph: Graph) -> dict[str, Any]:
    """Sums over degrees: mean, deviation, largest, isolated vertices, and `gini`, for each side.

    Keys are `out` and `in`, of dictionaries with `mean`, `deviation` (the standard deviation),
    `median`, `largest`, `isolated` (the vertices of degree 0) and `gini` (0 where all degrees are
    the same, near 1 where few vertices have all edges). Reads 4 bytes a vertex and side.
    """
    sides: tuple[Literal["out", "in"], ...] = ("out", "in") if graph.directed else ("out",)
    found: dict[str, Any] = {side: _statistics(graph.degrees(side)) for side in sides}
    return found if graph.directed else found | {"in": found["out"]}


def _statistics(degrees: NDArray[np.uint32]) -> dict[str, float | int]:
    if degrees.size == 0:
        raise InputError.of("describe the degrees of a graph", got="no vertex")
    ascending = np.sort(degrees).astype(np.float64)
    places = np.arange(1, len(ascending) + 1)
    total = float(ascending.sum())
    spread = float((2 * places - len(ascending) - 1) @ ascending)
    return {
        "mean": float(ascending.mean()),
        "deviation": float(ascending.std()),
        "median": float(np.median(ascending)),
        "largest": int(ascending[-1]),
        "isolated": int(np.count_nonzero(ascending == 0)),
        "gini": spread / (len(ascending) * total) if total else 0.0,
    }
