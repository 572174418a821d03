"""Feature rows from whatever users have, as batches of float32 that fit in memory.

Rows are in the user's order: row i belongs to the vertex with the i-th smallest id. Nothing here
holds more than a batch, except what the user already holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..arguments.arrays import of_tensor
from ..errors import InputError
from .archives import Member, members
from .names import is_text
from .reading import mapped, reading
from .tables import TABLE_SUFFIXES, Table, open_table

Array = NDArray[Any]

BATCH_VALUES = 1 << 20
"""Values of a batch, if a row has not more."""

CSV_LINES = 1 << 14

ID_NAMES = {"id", "nid", "vid", "node", "node_id", "nodeid", "vertex", "vertex_id", "vertexid"}
"""What columns of integers are called that say which vertex a row belongs to."""

SPARSE_PARTS = ("data", "indices", "indptr", "shape")


@dataclass(frozen=True)
class Rows:
    """Rows to be stored: what they are, and a path of a `.npy` file or batches."""

    described: str
    source: str | Iterator[NDArray[np.float32]]
    count: int | None = None
    """How many, where that is known before they are read."""
    positions: NDArray[np.uint32] | None = None
    """The position in the user's order of each row's vertex; None for rows in that order."""
    note: str | None = None
    """What the user is told of them."""


def from_file(path: Path, columns: Sequence[str] | None = None) -> Rows:
    """Rows of a `.npy` file, an `.npz` archive, a table or a CSV file (gzip too)."""
    suffix = path.suffix.lower()
    if columns is not None and suffix not in TABLE_SUFFIXES:
        raise InputError.of("read features from", path, expected="a table, for `--feature-columns`")
    if suffix == ".npy":
        return Rows(str(path), str(path))
    if suffix == ".npz":
        return _from_archive(path)
    if suffix in TABLE_SUFFIXES:
        return from_table(open_table(str(path)), columns)
    if suffix == ".csv" or path.name.endswith(".csv.gz"):
        return Rows(str(path), _floats(csv_batches(path, np.float32), path))
    raise InputError.of(
        "read features from", path, expected=f"one of .npy, .npz, .csv, {', '.join(TABLE_SUFFIXES)}"
    )


def from_table(table: Table, columns: Sequence[str] | None = None, by: str | None = None) -> Rows:
    """Rows of a column of lists, or of several columns of numbers; `by` is a column of ids."""
    return Rows(table.name, _floats(table_batches(table, columns, by), table.name))


def from_object(source: Any, described: str = "an array") -> Rows:
    """Rows of a SciPy sparse matrix, of anything that NumPy takes as an array, or of batches."""
    if hasattr(source, "tocsr"):
        matrix = source.tocsr()
        parts = (matrix[i : i + n] for i, n in _steps(*matrix.shape))
        return Rows(
            described, _floats((part.toarray() for part in parts), described), len_of(matrix)
        )
    if hasattr(source, "__array__") or isinstance(source, Sequence):
        array = np.asarray(of_tensor(source, described))
        if array.ndim not in (1, 2) or array.dtype.kind not in "fiub":
            raise InputError.of(
                "store the features of",
                described,
                expected="numbers of shape (N, D)",
                got=f"{array.dtype} of shape {array.shape}",
            )
        array = array.reshape(len(array), -1) if len(array) else array.reshape(0, 1)
        parts = (array[i : i + n] for i, n in _steps(*array.shape))
        return Rows(
            described, _floats(parts, described), len(array), note=_rounded(array, described)
        )
    if isinstance(source, Iterable):
        return Rows("batches", _floats(source, "batches"))
    raise InputError.of(
        "store the features of",
        type(source).__name__,
        expected="a path, an array, a sparse matrix, or batches of rows",
    )


def whole(path: Path) -> Array:
    """A small table or CSV file as one array of shape (N, T)."""
    if path.suffix.lower() in TABLE_SUFFIXES:
        return whole_table(open_table(str(path)))
    batches = list(csv_batches(path, np.float64))
    return np.concatenate(batches) if batches else np.empty((0, 1))


def whole_table(table: Table, by: str | None = None) -> Array:
    """A small table as one array of shape (N, T), without the column `by`."""
    batches = list(table_batches(table, None, by))
    return np.concatenate(batches) if batches else np.empty((0, 1))


def from_column(path: Path) -> Array:
    """A number a line or row: a `.npy` file, mapped; a table of one column or text, whole."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return mapped(path)
    if suffix in TABLE_SUFFIXES:
        table = open_table(str(path))
        names = list(table.schema.names)
        if len(names) != 1:
            raise InputError.of("read", path, expected="one column", got=", ".join(names))
        batches = table.to_batches(columns=names, batch_size=CSV_LINES)
        parts = [batch.column(0).to_numpy(zero_copy_only=False) for batch in batches]
        return np.concatenate(parts) if parts else np.empty(0)
    if suffix != ".csv" and not path.name.endswith(".csv.gz"):
        expected = f"one of .npy, .csv, {', '.join(TABLE_SUFFIXES)}"
        raise InputError.of("read values from", path, expected=expected)
    with reading(path, "numbers"), open_text(path) as lines:
        # Whole numbers stay whole: a float does not hold every 64-bit integer.
        integers = not any(set(line) & set(".eEnN") for line in islice(lines, CSV_LINES))
    blocks = list(csv_batches(path, np.int64 if integers else np.float64))
    return np.concatenate(blocks) if blocks else np.empty(0)


def csv_batches(path: Path, dtype: type[np.generic]) -> Iterator[Array]:
    """The lines of a CSV file without a header, some thousands at a time."""
    with reading(path, "numbers"), open_text(path) as lines:
        while block := list(islice(lines, CSV_LINES)):
            yield np.loadtxt(block, delimiter=",", dtype=dtype, ndmin=2)


def open_text(path: Path) -> IO[str]:
    """Opens a text file, unzipped where its name says so."""
    if path.suffix == ".gz":
        import gzip

        return gzip.open(path, "rt")
    return path.open()


def len_of(matrix: Any) -> int:
    """The rows of anything with a shape."""
    return int(matrix.shape[0])


def _from_archive(path: Path) -> Rows:
    """The features in an archive: a sparse or dense `x`, SciPy's own layout, or the only array."""
    names = members(path)
    for prefix in ("x_", ""):
        if {prefix + part for part in SPARSE_PARTS} <= names:
            return _from_sparse(path, prefix)
    dense = [n for n in ("x", "node_feat", "feat", "features") if n in names]
    if not dense and len(names) != 1:
        raise InputError.of(
            "find the features in",
            path,
            expected="`x`, or `x_data`, `x_indices`, `x_indptr` and `x_shape`",
            got=", ".join(sorted(names)),
        )
    return from_member(path, next(iter(dense or names)))


def from_member(path: Path, name: str) -> Rows:
    """Rows of one dense array of an archive."""
    member = Member(path, name)
    if len(member.shape) != 2:
        raise InputError.of("read", member.name, expected="shape (N, D)", got=str(member.shape))
    rows, dim = member.shape
    parts = (member.take(n * dim).reshape(n, dim) for _, n in _steps(rows, dim))
    return Rows(member.name, _floats(parts, path), rows)


def _from_sparse(path: Path, prefix: str) -> Rows:
    """Compressed sparse rows, made dense some at a time."""
    data, indices, indptr = (Member(path, prefix + part) for part in SPARSE_PARTS[:3])
    rows, dim = (int(n) for n in Member(path, prefix + "shape").take(2))
    if indptr.shape != (rows + 1,) or data.shape != indices.shape:
        raise InputError.of(
            "read",
            path,
            expected=f"sparse rows of shape ({rows}, {dim})",
            got=f"{indptr.shape} row starts, {indices.shape} columns, {data.shape} values",
        )

    def dense() -> Iterator[Array]:
        last = int(indptr.take(1)[0])
        for first, n in _steps(rows, dim):
            ends = indptr.take(n).astype(np.int64)
            counts = np.diff(ends, prepend=last)
            last = int(ends[-1])
            if counts.min(initial=0) < 0 or last > indices.shape[0]:
                raise InputError.of("read", path, expected="ascending row starts", got=f"{last}")
            columns = indices.take(int(counts.sum())).astype(np.int64)
            if columns.size and not 0 <= columns.min() <= columns.max() < dim:
                raise InputError.of(
                    "read rows of",
                    path,
                    expected=f"columns below {dim}",
                    got=f"{columns.max()} in rows {first} to {first + n - 1}",
                )
            batch = np.zeros((n, dim), dtype=np.float32)
            np.add.at(batch, (np.repeat(np.arange(n), counts), columns), data.take(columns.size))
            yield batch

    return Rows(str(path), dense(), rows)


def table_batches(
    table: Table, columns: Sequence[str] | None = None, by: str | None = None
) -> Iterator[Array]:
    """Rows of a column of lists, or of several columns of numbers, `by` left out.

    Raises `InputError` for a column of ids that is neither `by` nor asked for, unless they ascend:
    rows in the order of a table are not those of its ids.
    """
    from pyarrow import types

    fields = [field for field in table.schema if field.name != by]
    lists = [
        f.name
        for f in fields
        if types.is_list(f.type) or types.is_large_list(f.type) or types.is_fixed_size_list(f.type)
    ]
    numbers = [f.name for f in fields if types.is_floating(f.type) or types.is_integer(f.type)]
    ids = [
        f.name
        for f in fields
        if is_text(f.type) or (types.is_integer(f.type) and f.name.lower() in ID_NAMES)
    ]
    if len(ids) == 1 and columns is None and _ascends(table, ids[0]):
        numbers, ids = [name for name in numbers if name != ids[0]], []
    if ids and columns is None:
        raise InputError.of(
            "take rows in the order of",
            table.name,
            expected="columns of numbers alone",
            got=f"`{ids[0]}`, which looks like ids",
            hint=f"`tiergraph features add GRAPH --by {ids[0]}`, or `add_features(path, "
            f"by={ids[0]!r})`, finds vertices by it, once there is a graph; `--feature-columns` "
            "names the columns of rows that are in the order of the ids",
        )
    chosen = list(columns) if columns is not None else lists[:1] or numbers
    missing = [name for name in chosen if name not in lists + numbers]
    if missing or not chosen or (columns is None and len(lists) > 1):
        raise InputError.of(
            "find the features in",
            table.name,
            expected=f"numbers in `{missing[0]}`" if missing else "one column of lists, or numbers",
            got=", ".join(f"{f.name} ({f.type})" for f in table.schema),
            hint="`--feature-columns A,B` names them",
        )
    for batch in table.to_batches(columns=chosen, batch_size=CSV_LINES):
        if batch.num_rows:
            parts = [_column(table.name, name, batch.column(name)) for name in chosen]
            yield parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _ascends(table: Table, column: str) -> bool:
    """Whether a column has integers that ascend, each once."""
    last = None
    if is_text(table.schema.field(column).type):
        return False
    for batch in table.to_batches(columns=[column], batch_size=CSV_LINES):
        if batch.column(0).null_count:
            return False
        values = batch.column(0).to_numpy(zero_copy_only=False)
        if len(values) and last is not None and values[0] <= last:
            return False
        if (values[1:] <= values[:-1]).any():
            return False
        last = values[-1] if len(values) else last
    return True


def _column(path: str, name: str, column: Any) -> Array:
    """A column as an array of shape (rows, width)."""
    rows = len(column)
    values = (
        column.flatten() if hasattr(column, "flatten") and hasattr(column, "values") else column
    )
    if column.null_count or values.null_count or len(values) % rows:
        raise InputError.of("read column", name, expected=f"rows of one length in {path}")
    widths = column.value_lengths() if hasattr(column, "value_lengths") else None
    if widths is not None and len(widths.unique()) != 1:
        raise InputError.of("read column", name, expected=f"rows of one length in {path}")
    flat: Array = values.to_numpy(zero_copy_only=False)
    return flat.reshape(rows, -1)


def _steps(rows: int, dim: int) -> Iterator[tuple[int, int]]:
    """The first row and the number of rows of every batch."""
    step = max(1, BATCH_VALUES // max(1, dim))
    for first in range(0, rows, step):
        yield first, min(step, rows - first)


def _rounded(array: Array, described: str) -> str | None:
    """What is said of integers that float32 does not hold; None where it holds all."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 4:
        return None
    for first, n in _steps(*array.shape):
        part = array[first : first + n]
        # As float64, which holds what float32 does: an integer of 64 bits could overflow again.
        other = part.astype(np.float32).astype(np.float64) != part
        if other.any():
            value = part[other][0]
            return (
                f"{described}: integers are stored as float32, which holds whole numbers to "
                f"{1 << 24:,}: {value} becomes {int(np.float32(value))}"
            )
    return None


def _floats(batches: Iterable[Any], described: object) -> Iterator[NDArray[np.float32]]:
    """Batches as contiguous float32 of shape (n, D); 64-bit numbers are rounded."""
    for given in batches:
        batch = np.asarray(given)
        if batch.ndim == 1:
            batch = batch[:, None]
        if batch.ndim != 2 or batch.dtype.kind not in "fiub":
            raise InputError.of(
                "store the features of",
                described,
                expected="batches of numbers of shape (n, D)",
                got=f"{batch.dtype} of shape {batch.shape}",
            )
        # What overflows becomes infinite, which is refused with its place.
        with np.errstate(over="ignore"):
            floats = np.ascontiguousarray(batch, dtype=np.float32)
        yield floats
