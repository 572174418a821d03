"""Columnar files (Parquet, Feather, Arrow IPC), streamed by record batches.

pyarrow's datasets find the files, but do not read them: they read whole row groups ahead, which
took 0.7 GB for two columns of 4 bytes. A column of a Parquet file is read by pages here, so its row
groups may be of any size; a page is as large as its writer made it, 1 MiB by most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import Error, InputError, IoError
from .sources import BATCH_EDGES

if TYPE_CHECKING:
    import pyarrow as pa

    from .sources import Array, Batch

TABLE_SUFFIXES = (".parquet", ".pq", ".arrow", ".ipc", ".feather")

DEFAULT_COLUMNS = ("src", "dst", "weight")

STREAM_BYTES = 1 << 20
"""Bytes of a column chunk that are read at a time."""

READER_BYTES = 48 << 20
"""What decoding three columns holds at most, as measured: pages, packed and not, dictionaries,
batches, and what pyarrow's threads and allocator keep of them."""

ROW_BYTES = 64
"""The same of a file of few rows, a row."""


@dataclass(frozen=True)
class Table:
    """A columnar file or a directory of such files."""

    kind: str
    schema: pa.Schema
    files: list[str]
    rows: int

    def to_batches(self, columns: Sequence[str], batch_size: int) -> Iterator[pa.RecordBatch]:
        """Reads these columns, at most `batch_size` rows at a time and nothing ahead."""
        import pyarrow

        read = _read_parquet if self.kind == "parquet" else _read_ipc
        try:
            for file in self.files:
                yield from read(file, columns, batch_size)
        finally:
            pyarrow.default_memory_pool().release_unused()


def reader_bytes(files: Sequence[str]) -> int:
    """The most memory that `read_batches` holds, beside the batch that it yields."""
    rows = sum(open_table(file).rows for file in files)
    return min(READER_BYTES, ROW_BYTES * rows)


def read_batches(
    files: Sequence[str], columns: Sequence[str] | None, rows: int = BATCH_EDGES
) -> Iterator[Batch]:
    """Yields `(src, dst)` or `(src, dst, weight)` arrays of at most `rows` rows.

    Only the chosen columns are read. `columns` None: `src`, `dst` and, if there, `weight`; or else
    the first two columns of integers.
    """
    for file in files:
        table = open_table(file)
        chosen = _choose(file, table.schema, columns)
        try:
            for batch in table.to_batches(columns=chosen, batch_size=rows):
                if batch.num_rows:
                    src, dst, *weights = (_numpy(file, batch, name) for name in chosen)
                    yield (src, dst, weights[0]) if weights else (src, dst)
        except OSError as error:
            raise IoError.of("read", file, got=error) from error


def open_table(file: str) -> Table:
    """A columnar file or a directory of such files, nothing of its columns read yet."""
    try:
        import pyarrow.dataset
    except ImportError as error:
        raise InputError.of(
            "read",
            file,
            got="pyarrow is not installed",
            hint="pip install 'tiergraph[parquet]'",
        ) from error
    suffix = Path(file).suffix.lower()
    kind = "parquet" if suffix in (".parquet", ".pq") else "ipc"
    try:
        dataset = pyarrow.dataset.dataset(file, format=kind)
        return Table(kind, dataset.schema, dataset.files, dataset.count_rows())
    except OSError as error:
        raise IoError.of("open", file, got=error) from error
    except pyarrow.ArrowInvalid as error:
        raise InputError.of("read", file, expected=f"a {kind} file", got=error) from error


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
            batch = table.get_batch(number)
            for start in range(0, batch.num_rows, batch_size):
                yield batch.slice(start, batch_size)


def _choose(file: str, schema: pa.Schema, columns: Sequence[str] | None) -> list[str]:
    """The names of the source, destination and possibly weight column."""
    import pyarrow.types

    if columns is not None:
        if len(columns) not in (2, 3):
            raise InputError.of(
                "choose columns of", file, expected="2 or 3 names", got=len(columns)
            )
        chosen = list(columns)
    elif set(DEFAULT_COLUMNS[:2]) <= set(schema.names):
        chosen = [name for name in DEFAULT_COLUMNS if name in schema.names]
    else:
        integers = [f.name for f in schema if pyarrow.types.is_integer(f.type)]
        if len(integers) < 2:
            raise _no_column(file, schema, "columns `src` and `dst`, or two columns of integers")
        chosen = integers[:2]
    for name in chosen:
        if name not in schema.names:
            raise _no_column(file, schema, f"a column `{name}`")
    return chosen


def _no_column(file: str, schema: pa.Schema, expected: str) -> Error:
    names = ", ".join(f"{field.name} ({field.type})" for field in schema)
    return InputError.of(
        "find the edges in",
        file,
        expected=expected,
        got=names,
        hint="`--columns SRC,DST` names them",
    )


def _numpy(file: str, batch: pa.RecordBatch, name: str) -> Array:
    column = batch.column(name)
    if column.null_count:
        raise InputError.of(
            "read column", name, expected=f"no missing values in {file}", got=column.null_count
        )
    values: Array = column.to_numpy(zero_copy_only=False)
    return values
