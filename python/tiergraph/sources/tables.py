"""Columnar files (Parquet, Feather, Arrow IPC) and tables in memory, by record batches.

pyarrow's datasets find the files, but do not read them: they read whole row groups ahead, which
took 0.7 GB for two columns of 4 bytes. A column of a Parquet file is read by pages here, so its row
groups may be of any size; a page is as large as its writer made it, 1 MiB by most.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..errors import InputError, IoError
from .edges import BATCH_EDGES, as_files
from .names import is_text, of_arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from .edges import Array, Batch

TABLE_SUFFIXES = (".parquet", ".pq", ".arrow", ".ipc", ".feather")

STREAM_BYTES = 1 << 20
"""Bytes of a column chunk that are read at a time."""

READER_BYTES = 48 << 20
"""What decoding three columns holds at most, as measured: pages, packed and not, dictionaries,
batches, and what pyarrow's threads and allocator keep of them."""

ROW_BYTES = 64
"""The same of a file of few rows, a row."""


@dataclass(frozen=True)
class Table:
    """A columnar file, a directory of such files, or a table in memory."""

    name: str
    """The path, or what the table is, for messages."""
    kind: str
    schema: pa.Schema
    files: list[str]
    rows: int
    frame: Any = None
    """What has a table in memory."""

    def to_batches(self, columns: Sequence[str], batch_size: int) -> Iterator[pa.RecordBatch]:
        """Reads these columns, at most `batch_size` rows at a time and nothing ahead."""
        import pyarrow

        if self.frame is not None:
            for batch in pyarrow.RecordBatchReader.from_stream(self.frame):
                yield from _sliced(batch.select(columns), batch_size)
            return
        read = _read_parquet if self.kind == "parquet" else _read_ipc
        try:
            for file in self.files:
                yield from read(file, columns, batch_size)
        finally:
            pyarrow.default_memory_pool().release_unused()

    def choose(
        self, columns: Sequence[str] | None, weights: str | None
    ) -> tuple[list[str], list[str]]:
        """The names of the columns of sources, of targets and perhaps of weights, and notes.

        `columns` and `weights` are as `tiergraph.build` has them; the names that columns are found
        by are those of text files too.
        """
        if len(set(self.schema.names)) != len(self.schema.names):
            raise InputError.of(
                "read the columns of", self.name, expected="different names", got=self.schema.names
            )
        kinds = [_kind(field.type) for field in self.schema]
        asked = {"columns": columns and list(columns), "weights": weights or "auto"}
        chosen = json.loads(
            _native.choose_columns(self.name, self.schema.names, json.dumps([kinds, asked]))
        )
        ends = [chosen["src"], chosen["dst"], chosen["weight"]]
        return [self.schema.names[i] for i in ends if i is not None], chosen["notes"]


def tables_of(source: Any) -> list[Table] | None:
    """The tables that `source` names or is, or None where it is anything else."""
    if hasattr(source, "__arrow_c_stream__"):
        return [from_frame(source)]
    if isinstance(source, list) and source and all(map(is_frame, source)):
        return [from_frame(frame) for frame in source]
    if hasattr(source, "iloc"):
        raise InputError.of(
            "build from",
            type(source).__name__,
            expected="a table that Arrow reads (`__arrow_c_stream__`)",
            got="one of an older version",
            hint="give `pyarrow.Table.from_pandas(df)`",
        )
    files = as_files(source)
    if files is None or not all(Path(file).suffix.lower() in TABLE_SUFFIXES for file in files):
        return None
    return [table for file in files for table in open_tables(file)]


def reader_bytes(tables: Sequence[str | Table]) -> int:
    """The most memory that `read_batches` holds, beside the batch that it yields."""
    rows = sum(_opened(table).rows for table in tables)
    return min(READER_BYTES, ROW_BYTES * rows)


def have_names(
    tables: Sequence[str | Table], columns: Sequence[str] | None, weights: str | None
) -> bool:
    """Whether the ends of edges are names in all tables; not in any, if False.

    Raises `InputError` where they are in some columns.
    """
    found = {}
    for table in map(_opened, tables):
        chosen, _ = table.choose(columns, weights)
        for name in chosen[:2]:
            found[is_text(table.schema.field(name).type)] = f"{table.name}:{name}"
    if len(found) > 1:
        raise InputError.of(
            "read ids from",
            found[True],
            expected="integers, as the other column of ids, or text in both",
            got="text",
        )
    return found.get(True) is not None


def notes_of(
    tables: Sequence[str | Table], columns: Sequence[str] | None, weights: str | None
) -> list[str]:
    """What to tell about the columns that `read_batches` chooses, once for all files."""
    return _opened(tables[0]).choose(columns, weights)[1] if tables else []


def read_batches(
    tables: Sequence[str | Table],
    columns: Sequence[str] | None,
    rows: int = BATCH_EDGES,
    weights: str | None = None,
    names: _native.Names | None = None,
) -> Iterator[Batch]:
    """Yields `(src, dst)` or `(src, dst, weight)` arrays of at most `rows` rows.

    Only the columns that `Table.choose` gives are read. A table without rows is an empty batch.
    With `names`, ends are text, and come as the numbers that `names` gives.
    """
    for table in map(_opened, tables):
        chosen, _ = table.choose(columns, weights)
        found = 0
        try:
            for batch in table.to_batches(columns=chosen, batch_size=rows):
                if batch.num_rows:
                    src, dst = _ends(table.name, batch, chosen[:2], names)
                    own = [_weights(table.name, batch, name, found) for name in chosen[2:]]
                    found += batch.num_rows
                    yield (src, dst, own[0]) if own else (src, dst)
        except OSError as error:
            raise IoError.of("read", table.name, got=error) from error
        if not found:
            ends = np.empty(0, np.uint32)
            yield (ends, ends, np.empty(0)) if len(chosen) == 3 else (ends, ends)


def _opened(table: str | Table) -> Table:
    return open_table(table) if isinstance(table, str) else table


def is_frame(source: Any) -> bool:
    """Whether `from_frame` takes it: a table, and not a column."""
    return hasattr(source, "__arrow_c_stream__") and hasattr(source, "columns")


def from_frame(frame: Any) -> Table:
    """A table in memory: of pandas, Polars, pyarrow, or anything with `__arrow_c_stream__`."""
    name = type(frame).__name__
    try:
        import pyarrow as pa
    except ImportError as error:
        raise _no_pyarrow(name) from error
    try:
        with pa.RecordBatchReader.from_stream(frame) as stream:
            return Table(name, "memory", stream.schema, [], 0, frame)
    except (ValueError, pa.ArrowTypeError, TypeError) as error:
        raise InputError.of("build from", name, expected="a table", got=error) from error


def _no_pyarrow(name: str) -> InputError:
    return InputError.of(
        "read", name, got="pyarrow is not installed", hint="pip install 'tiergraph[parquet]'"
    )


def open_table(file: str) -> Table:
    """A columnar file or a directory of such files, nothing of its columns read yet."""
    try:
        import pyarrow.dataset
    except ImportError as error:
        raise _no_pyarrow(file) from error
    suffix = Path(file).suffix.lower()
    kind = "parquet" if suffix in (".parquet", ".pq") else "ipc"
    try:
        dataset = pyarrow.dataset.dataset(file, format=kind)
        return Table(file, kind, dataset.schema, dataset.files, dataset.count_rows())
    except OSError as error:
        raise IoError.of("open", file, got=error) from error
    except pyarrow.ArrowInvalid as error:
        raise InputError.of(
            "read",
            file,
            expected="a parquet file" if kind == "parquet" else "a file in Arrow's file format",
            got=error,
            hint=None if kind == "parquet" else "`pyarrow.ipc.new_file` writes it, streams are not",
        ) from error


def open_tables(file: str) -> list[Table]:
    """A columnar file, or each of a directory of them: their columns may be different ones."""
    table = open_table(file)
    return [table] if table.files == [file] else [open_table(one) for one in table.files]


def _read_parquet(file: str, columns: Sequence[str], batch_size: int) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(file, buffer_size=STREAM_BYTES, pre_buffer=False) as table:
        yield from table.iter_batches(batch_size, columns=list(columns))


def _read_ipc(file: str, columns: Sequence[str], batch_size: int) -> Iterator[pa.RecordBatch]:
    """Maps the file: a batch may be as large as the file, and lies there as it is in memory."""
    import pyarrow as pa

    with pa.memory_map(file) as mapped:
        names = pa.ipc.open_file(mapped).schema.names
        options = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns])
        table = pa.ipc.open_file(mapped, options=options)
        for number in range(table.num_record_batches):
            yield from _sliced(table.get_batch(number), batch_size)


def _sliced(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _kind(of: pa.DataType) -> str:
    """What values of a type may be, in the words of the native part."""
    import pyarrow.types as types

    if types.is_integer(of) or _is_whole(of):
        return "integer"
    return "number" if types.is_floating(of) or types.is_decimal(of) else "other"


def _is_whole(of: pa.DataType) -> bool:
    """Whether a type is of decimals without digits after the point."""
    import pyarrow.types as types

    return bool(types.is_decimal(of) and of.scale == 0)


def _numpy(file: str, batch: pa.RecordBatch, name: str) -> Array:
    import pyarrow as pa

    column = _whole(file, batch, name)
    if pa.types.is_decimal(column.type):
        kind = pa.int64() if _is_whole(column.type) else pa.float64()
        try:
            column = column.cast(kind)
        except pa.ArrowInvalid as error:
            raise InputError.of(
                "read column", name, expected=f"{kind} numbers in {file}", got=error
            ) from error
    values: Array = column.to_numpy(zero_copy_only=False)
    return values


def _weights(file: str, batch: pa.RecordBatch, name: str, before: int) -> Array:
    """Weights, of rows after so many others."""
    values = _numpy(file, batch, name)
    if values.dtype.kind in "iuf" and not (values.min() >= 0 and np.isfinite(values.max())):
        odd = int(np.flatnonzero(~((values >= 0) & np.isfinite(values)))[0])
        raise InputError.of(
            "read column",
            name,
            expected=f"weights of 0 or more in {file}",
            got=f"{values[odd]} in row {before + odd + 1}",
            hint="`weights='none'` reads only the ids",
        )
    return values


def _ends(
    file: str, batch: pa.RecordBatch, columns: Sequence[str], names: _native.Names | None
) -> list[Array]:
    """The ids in both columns of ends, or the numbers of their names."""
    if names is None:
        return [_numpy(file, batch, name) for name in columns]
    return of_arrow(names, [_whole(file, batch, name) for name in columns])


def _whole(file: str, batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of which every row has a value."""
    import pyarrow as pa

    column = batch.column(name)
    if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
        column = column.dictionary_decode()
    if column.null_count:
        raise InputError.of(
            "read column", name, expected=f"no missing values in {file}", got=column.null_count
        )
    return column
