"""SciPy's sparse matrices in `.npz` files: entry (i, j) is an edge from i to j."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .archives import Member, members
from .dataset import Dataset

STEP = 1 << 18
"""Entries that are read at a time."""


def is_one(path: Path) -> bool:
    """Whether an archive is a sparse matrix and no data set with edges."""
    names = members(path)
    return {"format", "shape", "data"} <= names and "edge_index" not in names


def from_archive(path: Path, weights: str | None) -> Dataset:
    """The matrix that `scipy.sparse.save_npz` wrote: CSR, CSC or COO, with values as weights."""
    if weights not in (None, "auto", "none"):
        raise InputError.of(
            "read weights from", path, expected="`none` or `auto`, for a matrix", got=weights
        )
    rows, columns = (int(n) for n in Member(path, "shape").array())
    if rows != columns:
        raise InputError.of(
            "build from",
            path,
            expected="a square matrix, of edges between vertices",
            got=f"shape ({rows}, {columns})",
            hint="of a bipartite graph, number the columns after the rows",
        )
    kind = Member(path, "format").array().item()
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind not in ("csr", "csc", "coo"):
        raise InputError.of("read", path, expected="a matrix in CSR, CSC or COO", got=kind)
    return Dataset(edges=_entries(path, kind, weights != "none"), vertices=rows)


def _entries(path: Path, kind: str, weighted: bool) -> Iterator[tuple[Any, ...]]:
    """Batches of edges; one row pointer a vertex is in memory."""
    data = Member(path, "data")
    count, weighted = data.shape[0], weighted and data.dtype.kind != "b"
    if weighted and data.dtype.kind not in "iuf":
        data.close()
        raise InputError.of(
            "read weights from",
            path,
            expected="real numbers",
            got=str(data.dtype),
            hint="`weights='none'` leaves them out",
        )
    inner = Member(path, "col" if kind == "coo" else "indices")
    outer = Member(path, "row") if kind == "coo" else None
    ends = None if outer is not None else Member(path, "indptr").array().astype(np.int64)
    if ends is not None and (ends[0] != 0 or ends[-1] != count or (np.diff(ends) < 0).any()):
        raise InputError.of(
            "read", path, expected=f"rows that end at {count} entries", got="others"
        )
    if inner.shape[0] != count:
        raise InputError.of("read", path, expected=f"{count} columns", got=inner.shape[0])
    for start in range(0, count, STEP):
        step = min(STEP, count - start)
        other = inner.take(step)
        if outer is not None:
            own = outer.take(step)
        else:
            assert ends is not None
            own = np.searchsorted(ends, np.arange(start, start + step), side="right") - 1
        batch = (other, own) if kind == "csc" else (own, other)
        values = data.take(step)
        yield (*batch, values.astype(np.float64)) if weighted else batch
    if not count:
        yield (np.empty(0, np.uint32), np.empty(0, np.uint32))
