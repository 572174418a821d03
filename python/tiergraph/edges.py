"""Values of edges: weights, times and features, stored with a graph for samplers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native, datasets
from .arrays import to_endpoints
from .errors import InputError
from .features import Attached, FeatureType, Source
from .sizes import to_bytes
from .sources import BATCH_EDGES, as_batches, as_files
from .tables import TABLE_SUFFIXES, read_batches

PathLike = str | os.PathLike[str]
Array = NDArray[Any]

WEIGHT = "weight"
"""What the third column of a table or of batches is called."""


def add_edge_values(
    path: PathLike,
    source: Source,
    *,
    values: Mapping[str, ArrayLike] | None = None,
    features: Source | None = None,
    feature_dtype: FeatureType | None = None,
    columns: Sequence[str] | None = None,
    overwrite: bool | None = None,
    memory: int | str | None = None,
    progress: _native.Progress | None = None,
) -> dict[str, Any]:
    """Stores values of the edges of the graph at `path`, which was built from the same edges.

    `source` gives the edges once more: arrays `(src, dst)` or `(src, dst, weights)`, batches of
    such, tables (`columns` names theirs), or a dataset. Their order numbers them: edge i is
    `e_id` i of sampled batches. `values` has an array by name, a number an edge: floats are stored
    as float32 (weights), integers as int64 (times). Without `values`, the source's third column is
    `weight`, and PyG's `Data` gives all that it has of its edges. `features` are rows, one an edge,
    from whatever `add_features` takes; named `edge_attr`, or a dictionary of several.

    All of it is added, or after an error nothing. Where the graph has values of edges, more are
    refused or, with `overwrite`, replace them all. Streamed within `memory`. Raises `InputError`
    where the edges are not the graph's: every vertex must have as many as it has there.

    Returns `edge_values` (type by name) and `edge_features` that the graph then has.
    """
    if values is None and features is None and hasattr(source, "edge_index"):
        values, features = of_data(source)
    attached = Attached(
        features if features is None or isinstance(features, Mapping) else {"edge_attr": features},
        feature_dtype=feature_dtype,
    )
    batches = _batches(source, columns)
    first = next(batches, None)
    arrays = None if values is None else _columns(values)
    kinds = {name: _kind(array) for name, array in (arrays or {}).items()}
    if arrays is None and first is not None and len(first) == 3:
        kinds = {WEIGHT: "f32"}
    options = {
        "columns": list(kinds.items()),
        "memory": to_bytes(memory),
        "overwrite": overwrite,
    }
    native = _native.EdgeValues(os.fspath(path), json.dumps(options))
    try:
        _push(native, first, batches, arrays, bool(kinds))
        stored: dict[str, Any] = json.loads(native.finish(attached.given(), progress))
    except BaseException:
        native.abort()
        raise
    return stored


def of_data(data: Any) -> tuple[dict[str, Array], dict[str, Array]]:
    """What PyG's `Data` has of its edges: numbers by name, and matrices by name."""
    edges = int(data.edge_index.shape[1])
    values, features = {}, {}
    for name in list(data.keys()):
        if name == "edge_index" or not data.is_edge_attr(name):
            continue
        array = np.asarray(data[name])
        if array.ndim == 0 or len(array) != edges or array.dtype.kind not in "fiub":
            continue
        if array.ndim == 1 and name != "edge_attr":
            values[name] = array
        else:
            features[name] = array
    return values, features


def _push(
    native: _native.EdgeValues,
    first: tuple[Array, ...] | None,
    rest: Iterator[tuple[Array, ...]],
    arrays: Mapping[str, Array] | None,
    weighted: bool,
) -> None:
    """Hands the edges over, some at a time, with their part of every array."""
    done = 0
    for batch in _chain(first, rest):
        src, dst, *own = batch
        for start in range(0, len(src), BATCH_EDGES):
            part = slice(start, start + BATCH_EDGES)
            count = len(src[part])
            if arrays is not None:
                columns = [_native_values(a[done : done + count]) for a in arrays.values()]
            else:
                columns = [_native_values(own[0][part], "f")] if weighted else []
            done += count
            native.push(to_endpoints(src[part], "src"), to_endpoints(dst[part], "dst"), columns)
    for name, array in (arrays or {}).items():
        if len(array) != done:
            raise InputError.of(
                "store values of edges", name, expected=f"{done} values", got=len(array)
            )


def _chain(
    first: tuple[Array, ...] | None, rest: Iterator[tuple[Array, ...]]
) -> Iterator[tuple[Array, ...]]:
    if first is not None:
        yield first
    yield from rest


def _batches(source: Any, columns: Sequence[str] | None) -> Iterator[tuple[Array, ...]]:
    """The edges of anything that is read again in the same order."""
    dataset = datasets.find(source)
    if dataset is not None:
        if dataset.edges is None:
            raise InputError.of("read the edges of", source, expected="`edge_index`", got="none")
        return iter(dataset.edges)
    files = as_files(source)
    if files is None:
        return iter(as_batches(source))
    if not all(Path(file).suffix.lower() in TABLE_SUFFIXES for file in files):
        raise InputError.of(
            "read the edges of",
            ", ".join(files),
            expected=f"tables ({', '.join(TABLE_SUFFIXES)}), arrays or a dataset",
        )
    return iter(read_batches(files, columns))


def _columns(values: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Arrays of shape (E,), of floats or integers."""
    arrays = {}
    for name, given in values.items():
        array = np.asarray(given)
        if array.ndim != 1 or array.dtype.kind not in "fiub":
            raise InputError.of(
                "store values of edges",
                name,
                expected="numbers of shape (E,)",
                got=f"{array.dtype} of shape {array.shape}",
            )
        arrays[name] = array
    return arrays


def _kind(array: Array) -> str:
    return "f32" if array.dtype.kind == "f" else "i64"


def _native_values(array: Array, kind: str | None = None) -> Array:
    """A part of a column, as the native part takes it."""
    floats = (kind or array.dtype.kind) == "f"
    # What overflows becomes infinite, which is refused with its place.
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32 if floats else np.int64)
