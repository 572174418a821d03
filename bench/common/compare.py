"""Whether engines agree: each result against that of the first engine that gave one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import rmat

SCALED = ("networkit", "scikit_network")
"""Engines with another definition of the mass of sinks: only proportions are compared."""
TOLERANCE = {"pagerank": 1e-4, "bfs": 0.0, "sssp": 1e-6, "propagate": 1e-4}
"""The largest relative difference that a check lets pass."""

Values = NDArray[Any]


class Checks:
    """The first result of each command, and how far the later ones are from it."""

    def __init__(self, edges: rmat.Edges) -> None:
        self._first: dict[tuple[str, int | None], Values] = {}
        self._connected = np.zeros(edges.vertices, dtype=bool)
        self._connected[edges.src] = self._connected[edges.dst] = True

    def compare(
        self, engine: str, command: str, source: int | None, values: Values
    ) -> dict[str, Any]:
        """Whether `values` are right if the first ones were, and by how much they differ."""
        values = _smallest_members(values) if command == "wcc" else values.astype(np.float64)
        first = self._first.setdefault((command, source), values)
        if command == "wcc":
            equal = bool(np.array_equal(values, first))
            return {"equal": equal, "components": len(np.unique(values))}
        if engine in SCALED and command == "pagerank":
            values, first = self._proportions(values), self._proportions(first)
        difference = relative_difference(values, first)
        equal = difference <= TOLERANCE[command]
        return {"equal": equal, "source": source, "relative_difference": difference}

    def _proportions(self, ranks: Values) -> Values:
        """The ranks of vertices with edges, scaled to a sum of 1."""
        connected: Values = ranks[self._connected]
        scaled: Values = connected / connected.sum()
        return scaled


def _smallest_members(labels: Values) -> Values:
    """A partition with each part named by its smallest member, whatever it was named by."""
    _, first, part = np.unique(labels, return_index=True, return_inverse=True)
    members: Values = first[part]
    return members


def relative_difference(values: Values, reference: Values) -> float:
    """The largest difference in proportion to the reference's value; `inf` equals `inf` only."""
    if np.any(np.isfinite(values) != np.isfinite(reference)):
        return float("inf")
    known = np.isfinite(reference)
    scale = np.maximum(np.abs(reference[known]), np.finfo(np.float64).tiny)
    return float(np.max(np.abs(values[known] - reference[known]) / scale, initial=0.0))
