"""Edges from columnar files (Parquet, Feather, Arrow IPC), streamed by record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import Error, InputError, IoError

if TYPE_CHECKING:
    import pyarrow as pa

    from .sources import Array, Batch

TABLE_SUFFIXES = (".parquet", ".pq", ".arrow", ".ipc", ".feather")

DEFAULT_COLUMNS = ("src", "dst", "weight")

BATCH_ROWS = 1 << 20


def read_batches(files: Sequence[str], columns: Sequence[str] | None) -> Iterator[Batch]:
    """Yields `(src, dst)` or `(src, dst, weight)` arrays of at most 2^20 rows.

    Only the chosen columns are read. `columns` None: `src`, `dst` and, if there, `weight`; or else
    the first two columns of integers.
    """
    for file in files:
        dataset = open_table(file)
        chosen = _choose(file, dataset.schema, columns)
        try:
            for batch in dataset.to_batches(columns=chosen, batch_size=BATCH_ROWS):
                if batch.num_rows:
                    src, dst, *weights = (_numpy(file, batch, name) for name in chosen)
                    yield (src, dst, weights[0]) if weights else (src, dst)
        except OSError as error:
            raise IoError.of("read", file, got=error) from error


def open_table(file: str) -> Any:
    """A columnar file as a dataset of pyarrow's, nothing of it read yet."""
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
        return pyarrow.dataset.dataset(file, format=kind)
    except OSError as error:
        raise IoError.of("open", file, got=error) from error
    except pyarrow.ArrowInvalid as error:
        raise InputError.of("read", file, expected=f"a {kind} file", got=error) from error


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
        "find the edges in", file, expected=expected, got=names, hint="--columns SRC,DST[,WEIGHT]"
    )


def _numpy(file: str, batch: pa.RecordBatch, name: str) -> Array:
    column = batch.column(name)
    if column.null_count:
        raise InputError.of(
            "read column", name, expected=f"no missing values in {file}", got=column.null_count
        )
    values: Array = column.to_numpy(zero_copy_only=False)
    return values
