"""Measures of vertices by repeated passes of `Graph.propagate`: on a CPU or a GPU, in any memory.

Each takes a graph and gives float64 arrays of shape (|V|,) in the order of `graph.ids`; values that
it is given have this shape and order, too, and may be lists. A pass over the edges an iteration,
two for HITS, and one more in the first: PageRank's for what leaves a vertex, and, with `weights`,
one for the heaviest edge, so that the scale of weights does not matter. A few times 8 bytes a
vertex are held beside what a pass needs. `graph.last_run` is about the whole loop.

Raise `InputError` for values that cannot be used, `NotConvergedError` where `iterations` do not do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arguments.arrays import to_values
from .arguments.calls import checked
from .arguments.checks import arguments, number, one, truth
from .errors import Error, InputError
from .graph import Graph, opened

Floats: TypeAlias = NDArray[np.float64]

ADVICE = {"katz": "`alpha` has to be below 1 over A's largest eigenvalue; "}
"""What to see to first where a measure does not converge."""


class NotConvergedError(Error, ArithmeticError):
    """So many `iterations` were not enough."""

    iterations: int = 0
    """How many there were, with those before a checkpoint that the loop began at."""
    change: float | None = None
    """How much the last one changed all values together; None: none was left to do."""


@checked
@arguments(graph=opened, teleport=None, start=None, sinks=None, weights=truth)
def pagerank(
    graph: Graph,
    *,
    damping: float = 0.85,
    teleport: ArrayLike | None = None,
    start: ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    weights: bool = False,
    iterations: int = 100,
    tolerance: float = 1e-6,
) -> Floats:
    """PageRank whose arcs may weigh, and which may teleport anywhere; the ranks sum to 1.

    `teleport` is where walks begin again, `start` the first ranks, `sinks` where the mass of
    vertices that nothing leaves goes: distributions over the vertices (1/|V| each, and `teleport`
    for sinks), of numbers of 0 or more, which are divided by their sum. `Graph.pagerank` is faster
    where none is given. Ends once ranks change by less than `tolerance` in all. (Page et al.,
    1999.)
    """
    first = _distribution(graph, start, "start")
    restart = _distribution(graph, teleport, "teleport")
    of_sinks = restart if sinks is None else _distribution(graph, sinks, "sinks")
    arcs = _Arcs(graph, weights)

    def step(ranks: Floats) -> Floats:
        leaving = arcs.leaving
        share = np.divide(ranks, leaving, out=np.zeros_like(ranks), where=leaving > 0)
        from_sinks = float(ranks[leaving == 0].sum())
        return damping * (arcs.sums(share) + from_sinks * of_sinks) + (1 - damping) * restart

    own = {"damping": damping, "teleport": restart, "start": first, "sinks": of_sinks}
    return _fixed_point(graph, "pagerank", own, step, first, weights, iterations, tolerance)


@checked
@arguments(graph=opened, start=None, weights=truth)
def eigenvector(
    graph: Graph,
    *,
    start: ArrayLike | None = None,
    weights: bool = False,
    iterations: int = 100,
    tolerance: float = 1e-6,
) -> Floats:
    """Eigenvector centrality, of length 1: a vertex counts as those that point at it do.

    The power method on A + sI, which has A's eigenvectors and converges on bipartite graphs, too; s
    is the heaviest arc's weight (1 without weights), or the length of Ax where that is less: a
    change is as large beside A's eigenvalue at any scale of weights. `start` (ones) are the first
    values, not all 0. Ends once values change by less than `tolerance` in all. (Bonacich, J. Math.
    Sociology 2, 1972.)
    """
    first = np.ones(graph.vertices) if start is None else to_values(start, "start", graph.vertices)
    if first.size and not first.any():
        raise InputError.of("use", "start", expected="a value other than 0", got="zeros alone")
    arcs = _Arcs(graph, weights)

    def step(values: Floats) -> Floats:
        moved = arcs.sums(values)
        shift = min(1.0, _length(moved))
        return _of_length_1(moved + shift * values) if shift else values

    first = _of_length_1(first if first.sum() >= 0 else -first)
    own = {"start": first}
    return _fixed_point(graph, "eigenvector", own, step, first, weights, iterations, tolerance)


@checked
@arguments(graph=opened, alpha=number(), beta=None, start=None, weights=truth)
def katz(
    graph: Graph,
    *,
    alpha: float = 0.1,
    beta: ArrayLike = 1.0,
    start: ArrayLike | None = None,
    weights: bool = False,
    iterations: int = 1000,
    tolerance: float = 1e-6,
) -> Floats:
    """Katz centrality, not normalised: paths that end at a vertex, each `alpha` times less a step.

    x = `alpha` Aᵀx + `beta`, which is a number, or one a vertex; `start` (zeros) is the first x.
    `alpha` has to be below 1 over A's largest eigenvalue. Ends once values change by less than
    `tolerance` times the largest of `beta` in all. (Katz, Psychometrika 18, 1953.)
    """
    count = graph.vertices
    if not isinstance(beta, list | tuple | np.ndarray) and np.ndim(beta) == 0:
        beta = np.full(count, one("beta", beta, {"beta": number()}))
    added = to_values(beta, "beta", count)
    first = np.zeros(count) if start is None else to_values(start, "start", count)
    scale = _largest(added)
    added, first = added / scale, first / scale

    def step(values: Floats) -> Floats:
        # Values that shrink before they are summed do not overflow.
        sums: Floats = graph.propagate(alpha * values, weights=weights)
        return sums + added

    own = {"alpha": alpha, "beta": added, "scale": scale, "start": first}
    found = _fixed_point(graph, "katz", own, step, first, weights, iterations, tolerance)
    return found * scale


@checked
@arguments(graph=opened, start=None, weights=truth)
def hits(
    graph: Graph,
    *,
    start: ArrayLike | None = None,
    weights: bool = False,
    iterations: int = 100,
    tolerance: float = 1e-8,
) -> tuple[Floats, Floats]:
    """Hubs and authorities, each of which sums to 1: hubs point at authorities.

    `start` are the first hubs (1/|V| each), numbers of 0 or more, which are divided by their sum.
    Ends once hubs change by less than `tolerance` in all. (Kleinberg, J. ACM 46, 1999.)
    """
    first = _distribution(graph, start, "start")
    arcs = _Arcs(graph, weights)
    authorities = first

    def step(hubs: Floats) -> Floats:
        nonlocal authorities
        authorities = _of_sum_1(arcs.sums(hubs))
        return _of_sum_1(arcs.sums(authorities, transpose=True))

    own = {"start": first}
    hubs = _fixed_point(graph, "hits", own, step, first, weights, iterations, tolerance)
    return hubs, authorities


class _Arcs:
    """Passes over a graph's arcs, whose weights count as shares of the heaviest one.

    Both the smallest and the largest weights then leave sums in float64's range.
    """

    def __init__(self, graph: Graph, weights: bool) -> None:
        self._graph = graph
        self._weights = weights

    @cached_property
    def _root(self) -> float:
        """The square root of the heaviest arc's weight: 1 without weights, or where all are 0."""
        if not self._weights:
            return 1.0
        ones = np.ones(self._graph.vertices)
        heaviest = self._graph.propagate(ones, reduce="max", weights=True).max(initial=0)
        return float(np.sqrt(heaviest)) or 1.0

    @cached_property
    def leaving(self) -> Floats:
        """What the arcs that leave each vertex weigh together; their count without weights."""
        return self.sums(np.ones(self._graph.vertices), transpose=True)

    def sums(self, values: Floats, *, transpose: bool = False) -> Floats:
        """The sums of values over the arcs that enter vertices; with `transpose`, that leave them.

        One half of the scale is taken off before the pass, and one after it.
        """
        graph, weights = self._graph, self._weights
        sums = graph.propagate(values / self._root, transpose=transpose, weights=weights)
        scaled: Floats = sums / self._root
        return scaled


def _distribution(graph: Graph, given: ArrayLike | None, name: str) -> Floats:
    """Shares of vertices that sum to 1; the same for all where none are given."""
    count = graph.vertices
    values = np.ones(count) if given is None else to_values(given, name, count)
    if values.size and (values.min() < 0 or values.max() == 0):
        got = "zeros alone" if values.min() == 0 else f"`{values.min():g}`"
        raise InputError.of("use", name, expected="numbers of 0 or more, one above 0", got=got)
    return _of_sum_1(values)


def _largest(values: Floats) -> float:
    """The largest magnitude, or 1 where there is none above 0."""
    return float(np.abs(values).max(initial=0)) or 1.0


def _of_sum_1(values: Floats) -> Floats:
    """Values of 0 or more over their sum; zeros stay."""
    scaled = values / _largest(values)
    shares: Floats = scaled / (float(scaled.sum()) or 1.0)
    return shares


def _length(values: Floats) -> float:
    """The Euclidean length, of numbers whose squares are not in float64's range, too."""
    largest = _largest(values)
    return largest * float(np.linalg.norm(values / largest))


def _of_length_1(values: Floats) -> Floats:
    """Values over their length; zeros stay."""
    scaled = values / _largest(values)
    unit: Floats = scaled / (float(np.linalg.norm(scaled)) or 1.0)
    return unit


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
    # Values that grow without end are told below.
    with np.errstate(over="ignore", invalid="ignore"):
        found = graph.fixed_point(
            step,
            first,
            iterations=iterations,
            tolerance=tolerance,
            name=name,
            options=options | {"weights": weights},
        )
    if found is None:
        raise _not_converged(graph, name, iterations, tolerance)
    return found


def _not_converged(graph: Graph, name: str, iterations: int, tolerance: float) -> NotConvergedError:
    details = graph.last_run["details"]
    change = details[-1]["measure"] if details else None
    more = "give more `iterations`, or a larger `tolerance`"
    if change is None:
        got = "as many before its checkpoint"
    elif np.isfinite(change):
        got = f"{change:.3g} in the last"
    else:
        got, more = "values beyond float64's range", "give smaller numbers"
    if change is None or graph.last_run.get("checkpoints_written"):
        more += "; `--resume` goes on from the checkpoint that it left"
    error = NotConvergedError.of(
        "find the fixed point of",
        name,
        expected=f"a change of less than {tolerance:g} within {iterations} iterations",
        got=got,
        hint=ADVICE.get(name, "") + more,
    )
    error.iterations, error.change = iterations, change
    return error
