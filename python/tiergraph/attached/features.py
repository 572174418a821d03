"""Features, labels and splits: stored with a graph, and read back."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _native
from ..arguments.arrays import of_tensor, to_ids
from ..arguments.calls import checked, checked_class, warn
from ..arguments.checks import arguments, text
from ..arguments.sizes import to_bytes
from ..errors import InputError, InputWarning
from ..opening import Opening
from ..sources import datasets, rows
from ..sources.archives import Member, members
from ..sources.dataset import MAIN_FEATURES, MAIN_LABELS, narrowed, split_name
from ..sources.reading import mapped
from ..sources.tables import TABLE_SUFFIXES, from_frame, is_frame
from .places import Vertices

PathLike = str | os.PathLike[str]
Array = NDArray[Any]

FeatureType: TypeAlias = Literal["f32", "f16", "int8"]

Source: TypeAlias = Any
"""A path, an array, a sparse matrix, batches, a dataset; or a dictionary of these by name."""

PIECE_VALUES = 1 << 18
"""Values of labels that go over at a time."""


@dataclass(frozen=True)
class Attached:
    """What `build` and `add_features` are told about a graph's vertices.

    `features`: a path (`.npy`, `.npz` dense or sparse, `.csv`, `.csv.gz`, Parquet, Feather, Arrow),
    an array, a SciPy sparse matrix, an iterable of batches of rows, PyG's `Data`, or a folder in
    OGB's layout; named `x`, or a dictionary of several by name. `labels`, likewise, are one value
    (or row) a vertex, named `y`. `splits` are masks, or lists of positions, by name: a dictionary,
    an `.npz`, a `.npy` named after its file, a `Data`, an OGB folder.
    """

    features: Source | None = None
    labels: Source | None = None
    splits: Source | None = None
    feature_dtype: FeatureType | None = None
    """`f32`; `f16`, half the bytes, relative error to 2^-11; `int8`, a quarter, a scale a row.

    Integers become floats, and an array of shape (N,) is a column; a note says where float32 does
    not hold the integers of an array.
    """
    feature_columns: Sequence[str] | None = None
    """Which columns of a table are features: one of lists, or several of numbers."""
    allow_nan: bool = False
    """Store NaN and infinities, instead of refusing them with their place."""

    def given(self) -> list[_native.Given]:
        """All of it, as the native part takes it."""
        return [*self._features(), *self._labels(), *self._splits()]

    def _features(self) -> Iterator[_native.Given]:
        named = (
            self.features if isinstance(self.features, Mapping) else {MAIN_FEATURES: self.features}
        )
        for name, source in named.items():
            if source is not None:
                found = _rows(source, self.feature_columns, name)
                if found.note is not None and not isinstance(source, rows.Rows):
                    warn(found.note, InputWarning)
                described = self._describe("features", name, found.described)
                text = json.dumps(described | {"rows": found.count})
                if found.positions is None or isinstance(found.source, str):
                    yield text, found.source
                else:
                    yield text, (found.source, found.positions)

    def _labels(self) -> Iterator[_native.Given]:
        named = self.labels if isinstance(self.labels, Mapping) else {MAIN_LABELS: self.labels}
        for name, source in named.items():
            if source is not None:
                yield self._array("labels", name, _labels(source, name))

    def _splits(self) -> Iterator[_native.Given]:
        if self.splits is not None:
            for name, source in _splits(self.splits).items():
                yield self._array("split", name, source)

    def _array(self, role: str, name: str, source: str | Array) -> _native.Given:
        if isinstance(source, str):
            return json.dumps(self._describe(role, name, source)), source
        return json.dumps(self._describe(role, name, "an array")), _pieces(source)

    def _describe(self, role: str, name: str, source: str) -> dict[str, Any]:
        dtype = {"dtype": self.feature_dtype} if role == "features" else {}
        return {
            "role": role,
            "name": name,
            "source": source,
            "allow_nan": self.allow_nan,
            **dtype,
        }


@checked
@arguments(features=None, labels=None)
def add_features(
    path: PathLike,
    *,
    features: Source | None = None,
    labels: Source | None = None,
    splits: Source | None = None,
    feature_dtype: FeatureType | None = None,
    feature_columns: Sequence[str] | None = None,
    by: str | None = None,
    allow_nan: bool = False,
    overwrite: bool | None = None,
    memory: int | str | None = None,
    progress: _native.Progress | None = None,
) -> dict[str, Any]:
    """Adds features, labels and splits to the graph at `path`: all of them, or none.

    Takes what `Attached` describes, in the user's order: row i belongs to the i-th smallest id.
    With `by`, features and labels are tables (files, or pandas', Polars' and pyarrow's) in any
    order, and `by` is their column with the vertices' ids or, of a graph with names, their names:
    each vertex in one row. Lists of names in `splits` are vertices.

    Streamed: `memory` bounds what puts rows in the graph's order; a column of ids takes 4 bytes a
    vertex more, and labels by ids are in memory. `overwrite` replaces what has the same name.
    Returns the features, labels and splits that the graph then has.

    Raises `InputError` for what does not belong to this graph, for NaN without `allow_nan`, and for
    a name that it has without `overwrite`; `BudgetError` where `memory` is too little.
    """
    vertices = Vertices(path, memory)
    if by is not None:
        features = vertices.rows(features, by, feature_columns)
        labels = vertices.labels(labels, by)
    splits = vertices.splits(splits)
    attached = Attached(features, labels, splits, feature_dtype, feature_columns, allow_nan)
    options = {"memory": to_bytes(memory), "overwrite": overwrite}
    stored: dict[str, Any] = json.loads(
        _native.add(os.fspath(path), json.dumps(options), attached.given(), progress)
    )
    return stored


@checked
@arguments(name=text)
def checksum_features(
    path: PathLike,
    name: str = "x",
    *,
    memory: int | str | None = None,
    progress: _native.Progress | None = None,
) -> dict[str, Any]:
    """Stores a checksum of each row of the features `name`, in place of those that are there.

    Every graph that is built now has them; this is for graphs of older versions, without which a
    row is not read alone from a drive. Rows stay where they are. Reads them once, and checks their
    pages, in `memory` bytes: a block, and 4 bytes a page. Returns `rows`, `bytes` and `seconds`.

    Raises `InputError` for features that the graph does not have, `FormatError` for damaged pages,
    `BudgetError` where `memory` is too little.
    """
    report: dict[str, Any] = json.loads(
        _native.checksum_features(os.fspath(path), name, to_bytes(memory), progress)
    )
    return report


@checked_class
class Features:
    """One matrix of features of an opened graph; made by `graph.features[name]`."""

    def __init__(self, opening: Opening, name: str, info: Mapping[str, Any]) -> None:
        self._opening = opening
        self.name = name
        self.shape: tuple[int, int] = (info["rows"], info["dim"])
        self.dtype: str = info["dtype"]
        """How values are stored: `f32`, `f16` or `int8`; they are read as float32."""

    def __repr__(self) -> str:
        return f"<Features {self.name}: {self.shape[0]:,} x {self.shape[1]:,} {self.dtype}>"

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, vertices: ArrayLike) -> NDArray[np.float32]:
        """The rows of these vertices, by the user's ids: float32 of shape (n, D).

        Reads the pages that hold them, once each if they are together no more than 4 MiB, and
        checks them. A loader does this for batches; here it is for looking things up. Raises
        `InputError` for an id that is no vertex, `IoError` and `FormatError` for pages that cannot
        be read or are damaged.
        """
        ids = to_ids(np.asarray(vertices), "vertices")
        return self._opening.native.read_features(self.name, ids)


class Arrays(Mapping[str, Array]):
    """A graph's labels or splits by name, mapped by NumPy, in ascending order of the ids.

    A file is compared with its checksums when it is first asked for: raises `FormatError` for one
    that is damaged, or another's.
    """

    def __init__(self, graph: str, folder: str, names: Sequence[str]) -> None:
        self._graph = Path(graph).absolute()
        self._folder = folder
        self._names = list(names)
        self._checked: set[str] = set()

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        file = f"{self._folder}/{name}.npy"
        if name not in self._checked:
            _native.check_array(str(self._graph), file)
            self._checked.add(name)
        return mapped(self._graph / file)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _rows(source: Source, columns: Sequence[str] | None, name: str) -> rows.Rows:
    if isinstance(source, rows.Rows):
        return source
    dataset = datasets.find(source)
    if dataset is not None and MAIN_FEATURES in dataset.features:
        return dataset.features[MAIN_FEATURES]
    if isinstance(source, str | os.PathLike):
        return rows.from_file(Path(source), columns)
    if is_frame(source):
        return rows.from_table(from_frame(source), columns)
    return rows.from_object(of_tensor(source, name))


def _labels(source: Source, name: str) -> str | Array:
    dataset = datasets.find(source)
    if dataset is not None and MAIN_LABELS in dataset.labels:
        return dataset.labels[MAIN_LABELS]
    return _path_or_array(source, name)


def _splits(source: Source) -> dict[str, str | Array]:
    if isinstance(source, Mapping):
        return {split_name(name): _path_or_array(one, name) for name, one in source.items()}
    dataset = datasets.find(source)
    if dataset is not None and dataset.splits:
        return dict(dataset.splits)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.suffix == ".npz":
            return {split_name(n): Member(path, n).array() for n in members(path)}
        return {split_name(path.name.split(".")[0]): _path_or_array(path, path.name)}
    raise InputError.of(
        "store the splits of",
        type(source).__name__,
        expected="a dictionary of masks or positions by name, or a path",
    )


def _path_or_array(source: Source, name: str) -> str | Array:
    """The path of a `.npy` file, or the array that anything else holds."""
    if is_frame(source):
        return narrowed(rows.whole_table(from_frame(source)))
    if not isinstance(source, str | os.PathLike):
        array = np.asarray(of_tensor(source, name))
        if array.dtype.kind not in "fiub":
            raise InputError.of("store", "an array", expected="numbers", got=array.dtype)
        return array
    path = Path(source)
    if path.suffix == ".npy":
        return str(path)
    if path.suffix in TABLE_SUFFIXES or ".csv" in path.suffixes:
        return narrowed(rows.whole(path))
    raise InputError.of("read", path, expected="a .npy, .npz, .csv or table file")


def _pieces(array: Array) -> Iterator[bytes]:
    """The bytes of the `.npy` file of an array, piece after piece."""
    header = io.BytesIO()
    flat = np.ascontiguousarray(array)
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(flat))
    yield header.getvalue()
    values = flat.reshape(-1)
    for first in range(0, len(values), PIECE_VALUES):
        yield values[first : first + PIECE_VALUES].tobytes()
