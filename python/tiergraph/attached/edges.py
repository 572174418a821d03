"""Values of edges: weights, times and features, stored with a graph for samplers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _native
from ..arguments.arrays import of_tensor, to_endpoints
from ..arguments.calls import checked
from ..arguments.checks import arguments
from ..arguments.sizes import to_bytes
from ..errors import InputError
from ..sources import datasets, objects
from ..sources.edges import BATCH_EDGES, as_batches, as_files, pieces
from ..sources.names import numbered
from ..sources.rows import from_column
from ..sources.tables import read_batches, tables_of
from .features import Attached, FeatureType, Source

PathLike = str | os.PathLike[str]
Array = NDArray[Any]
Values = Mapping[str, ArrayLike | PathLike]
Batch = tuple[Array, ...]
Kind: TypeAlias = Literal["f32", "i64"]
"""Of a column of values: floats, such as weights, or integers, such as times."""

WEIGHT = "weight"
"""What the third column of a table or of batches is called."""


@dataclass(frozen=True)
class EdgeStore:
    """What is to be stored with the edges of one graph."""

    values: dict[str, Array]
    """Numbers by name, one an edge."""
    features: Attached
    node_times: dict[str, Array]
    """Times of vertices by name, in the order of their ids: each arc has its neighbour's."""
    own: dict[str, Kind] = field(default_factory=dict)
    """What batches of edges have themselves, in the columns behind their ends: type by name."""

    @classmethod
    def of(
        cls,
        values: Values | None,
        features: Source | None,
        feature_dtype: FeatureType | None = None,
        node_times: Values | None = None,
        own: dict[str, Kind] | None = None,
    ) -> EdgeStore:
        """Values and features as users give them."""
        named = features if isinstance(features, Mapping) else {"edge_attr": features}
        arrays = {n: _column(n, given) for n, given in (values or {}).items()}
        times = {n: times_of(n, given) for n, given in (node_times or {}).items()}
        return cls(arrays, Attached(named, feature_dtype=feature_dtype), times, own or {})

    def vertices(self) -> int | None:
        """How many vertices have times, if any have."""
        return next((len(times) for times in self.node_times.values()), None)

    def times(self) -> list[tuple[str, NDArray[np.int64]]]:
        """The vertices' times as the native part takes them."""
        return list(self.node_times.items())

    def options(self, **more: Any) -> str:
        """What the native part is told before the edges come."""
        kinds = [(name, _kind(array)) for name, array in self.values.items()]
        return json.dumps({"columns": [*kinds, *self.own.items()], **more})

    def push(
        self,
        native: _native.EdgeValues,
        batches: Iterable[Batch],
        progress: _native.Progress | None,
    ) -> dict[str, Any]:
        """Hands the edges over with their values, and ends; what the graph then has."""
        try:
            done = 0
            parts = pieces(batches, BATCH_EDGES)
            for src, dst, *own in parts:
                end = done + len(src)
                if any(len(array) < end for array in self.values.values()):
                    self._check(end + sum(len(src) for src, *_ in parts))
                columns = [_native_values(a[done:end], _kind(a)) for a in self.values.values()]
                # What is not stored of them is left out.
                columns += map(_native_values, own, self.own.values())
                native.push(to_endpoints(src, "src"), to_endpoints(dst, "dst"), columns)
                done = end
            self._check(done)
            stored: dict[str, Any] = json.loads(native.finish(self.features.given(), progress))
        except BaseException:
            native.abort()
            raise
        return stored

    def _check(self, edges: int) -> None:
        """Refuses values of more or fewer edges."""
        for name, array in self.values.items():
            if len(array) != edges:
                raise InputError.of(
                    "store values of edges",
                    name,
                    expected=f"a value for each of {edges} edges",
                    got=f"{len(array)} values",
                )


@checked
@arguments(source=None, features=None)
def add_edge_values(
    path: PathLike,
    source: Source,
    *,
    values: Values | None = None,
    features: Source | None = None,
    feature_dtype: FeatureType | None = None,
    node_times: Values | None = None,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    overwrite: bool | None = None,
    memory: int | str | None = None,
    progress: _native.Progress | None = None,
) -> dict[str, Any]:
    """Stores values of the edges of the graph at `path`, which was built from the same edges.

    `source` gives the edges once more: whatever `build` takes. Their order numbers them: edge i is
    `e_id` i of sampled batches. `values` has an array (or the path of a `.npy`, `.csv` or table
    file) by name, a number an edge: floats are stored as float32 (weights), integers as int64
    (times). Without `values`, the source's third column is `weight`, and a dataset gives all that
    it has of its edges. `features` are rows, one an edge, from whatever `add_features` takes; named
    `edge_attr`, or a dictionary of several. `node_times` has times of vertices by name, an integer
    a vertex in the order of the ids: sampling by them leaves out neighbours that are later than the
    seed. `columns` and `format` are as `build` has them.

    All of it is added, or after an error nothing. Where the graph has values of edges, more are
    refused or, with `overwrite`, replace them all. Streamed within `memory`. Raises `InputError`
    where the edges are not the graph's: every vertex must have as many as it has there. Edges of a
    graph with names are given by names.

    Returns `edge_values` (type by name), `edge_features` and `node_times` that the graph then has.
    """
    has_names = (Path(path) / "names").is_dir()
    names = _native.Names.of_graph(os.fspath(path), to_bytes(memory)) if has_names else None
    dataset = datasets.find(source)
    if values is None and features is None and node_times is None and dataset is not None:
        values, features = dataset.edge_values, dataset.edge_features
        node_times = dataset.node_times
    batches = reader(source, columns, {"format": format}, names)()
    first = next(batches, None)
    weighted = values is None and first is not None and len(first) == 3
    own: dict[str, Kind] = {WEIGHT: "f32"} if weighted else {}
    given = EdgeStore.of(values, features, feature_dtype, node_times, own)
    options = given.options(memory=to_bytes(memory), overwrite=overwrite)
    native = _native.EdgeValues(os.fspath(path), options, given.times(), names)
    return given.push(native, _chain(first, batches), progress)


def reader(
    source: Any,
    columns: Sequence[str] | None,
    options: Mapping[str, Any],
    names: _native.Names | None = None,
) -> Callable[[], Iterator[Batch]]:
    """What reads the edges of `source` from the first on; `options` are the native reader's.

    `names` has the names of vertices, where ids are text.
    """
    if datasets.is_one(source):
        return lambda: _edges_of(source, options.get("weights"))
    if (found := objects.find(source, options.get("weights"))) is not None:
        source = list(found.edges)
    tables = tables_of(source) if options.get("format") is None else None
    if tables is not None:
        weights = options.get("weights")
        return lambda: iter(read_batches(tables, columns, weights=weights, names=names))
    files = as_files(source)
    if files is not None:
        given = {**options, "columns": columns and list(columns)}
        encoded = json.dumps({k: v for k, v in given.items() if v is not None})
        return lambda: iter(_native.EdgeReader(files, encoded, names))
    if names is None:
        return lambda: iter(as_batches(source))
    return lambda: (numbered(names, batch) for batch in as_batches(source))


def read_twice(source: Any) -> None:
    """Refuses edges that can be read only once.

    Raises `InputError`.
    """
    if isinstance(source, Iterator):
        raise InputError.of(
            "build with values of edges from",
            type(source).__name__,
            expected="edges that can be read twice: arrays, files, or a list of batches",
            got="an iterator",
            hint="build without them, and then call `tiergraph edges add` with the edges",
        )


def _edges_of(source: Any, weights: str | None) -> Iterator[Batch]:
    dataset = datasets.with_edges(source, weights)
    if dataset is None or dataset.edges is None:
        raise InputError.of("read the edges of", source, expected="`edge_index`", got="none")
    return iter(dataset.edges)


def _chain(first: Batch | None, rest: Iterator[Batch]) -> Iterator[Batch]:
    if first is not None:
        yield first
    yield from rest


def _column(name: str, given: ArrayLike | PathLike) -> Array:
    """An array of shape (E,), of floats or integers."""
    path = isinstance(given, str | os.PathLike)
    array = from_column(Path(given)) if path else np.asarray(of_tensor(given, name))  # type: ignore[arg-type]
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        raise InputError.of(
            "store values of edges",
            name,
            expected="numbers of shape (E,)",
            got=f"{array.dtype} of shape {array.shape}",
        )
    return array


def times_of(name: str, given: ArrayLike | PathLike) -> NDArray[np.int64]:
    """An integer a vertex, as int64 of shape (N,). Raises `InputError` for anything else."""
    array = _column(name, given)
    if array.dtype.kind not in "iu":
        raise InputError.of("store the nodes' times", name, expected="integers", got=array.dtype)
    return np.ascontiguousarray(array, dtype=np.int64)


def _kind(array: Array) -> Kind:
    return "f32" if array.dtype.kind == "f" else "i64"


def _native_values(array: Array, kind: Kind) -> Array:
    """A part of a column, as the native part takes it."""
    # What overflows becomes infinite, which is refused with its place.
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32 if kind == "f32" else np.int64)
