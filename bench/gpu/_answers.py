"""Whether two engines agree, by the rules of bench/README.md."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

TOLERANCE = {"pagerank": 1e-4, "wcc": 0.0, "bfs": 0.0, "sssp": 1e-6}
"""The largest relative difference that passes; of components, it is the share named otherwise."""


def difference(algorithm: str, values: NDArray[Any], reference: NDArray[Any]) -> float:
    """How far `values` are from `reference`, results of `algorithm` in one order of vertices."""
    if algorithm == "wcc":
        return float(np.mean(_smallest_members(values) != _smallest_members(reference)))
    if np.any(np.isfinite(values) != np.isfinite(reference)):
        return float("inf")
    known = np.isfinite(reference)
    values, reference = values[known].astype(np.float64), reference[known].astype(np.float64)
    scale = np.maximum(np.abs(reference), np.finfo(np.float64).tiny)
    return float(np.max(np.abs(values - reference) / scale, initial=0.0))


def _smallest_members(labels: NDArray[Any]) -> NDArray[Any]:
    """A partition with each part named by its smallest member, whatever it was named by."""
    _, first, part = np.unique(labels, return_index=True, return_inverse=True)
    members: NDArray[Any] = first[part]
    return members
