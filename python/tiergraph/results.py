"""Results as files (`.parquet`, `.arrow`, `.csv`, `.npy`), always beside the user's vertex ids.

What follows a run counts in its memory: results are looked through and written in steps of
`STEP_VALUES`, and ids come as a function of positions, so that no second array is made of them.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, IoError

SUFFIXES = (".parquet", ".arrow", ".csv", ".npy")

STEP_VALUES = 1 << 18
"""Values of a step, and rows of a row group."""

CSV_ROWS = 1 << 16

Column = NDArray[Any]
Columns = Mapping[str, Column]

Ids = Callable[[int, int], NDArray[np.uint64]]
"""The user's ids at positions `start` to `stop`."""

Mask = Callable[[Column], NDArray[np.bool_]]


def check_folder(path: Path) -> None:
    """Complains now, and not after the run, of a file that has no folder."""
    folder = path.resolve().parent
    if not os.access(folder, os.W_OK) or path.is_dir():
        raise IoError.of("write", path, got=f"no file in a writable directory `{folder}`")


def check_suffix(path: str) -> str:
    """`path`, if `write` can write it; called before a run, so that no result is lost after it."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError.of(
            "write", path, expected=f"a file name in {', '.join(SUFFIXES)}", got=suffix or "none"
        )
    folder = Path(path).resolve().parent
    if not os.access(folder, os.W_OK):
        raise IoError.of("write", path, got=f"no writable directory `{folder}`")
    return path


def write(path: str, ids: Ids, name: str, values: Column) -> None:
    """Writes the columns `vertex` and `name` to `path`, in the format that its suffix says.

    `.npy` holds a structured array: `np.load(path)["vertex"]`, `np.load(path)[name]`. Holds a
    step of values and ids, whatever the format.
    """
    write_columns(path, ids, {name: values})


def write_columns(path: str, ids: Ids, columns: Columns) -> None:
    """As `write`, with several columns of one length beside `vertex`."""
    suffix = Path(check_suffix(path)).suffix.lower()
    writers = {".parquet": _write_parquet, ".arrow": _write_arrow}
    writers |= {".csv": _write_csv, ".npy": _write_npy}
    try:
        writers[suffix](path, ids, columns)
    except OSError as error:
        raise IoError.of("write", path, got=error.strerror or error) from error


def top(values: Column, count: int, among: Mask | None = None) -> list[tuple[int, Any]]:
    """Positions and values of the `count` largest `values`, ties by position.

    Of those that `among` takes, where it is given. Holds a step and `count` of them.
    """
    found = np.empty(0, dtype=np.int64)
    if count <= 0:
        return []
    for start, part in _steps(values):
        least = values[found[-1]] if len(found) == count else None
        # What equals the least that is listed comes after it.
        taken = np.ones(len(part), bool) if least is None else part > least
        if among is not None:
            taken &= among(part)
        places = np.flatnonzero(taken)
        if len(places) > count:
            numbers = part[places]
            threshold = np.partition(numbers, len(numbers) - count)[len(numbers) - count]
            places = places[numbers >= threshold]
        if len(places):
            candidates = np.concatenate([found, places + start])
            order = np.lexsort((candidates, -values[candidates].astype(np.float64)))
            found = candidates[order[:count]]
    return [(int(i), values[i].item()) for i in found]


def counted(values: Column, among: Mask) -> tuple[int, Any]:
    """How many `values` there are that `among` takes, and the largest of these; None of none."""
    count, largest = 0, None
    for _, part in _steps(values):
        taken = part[among(part)]
        if len(taken):
            count += len(taken)
            most = taken.max().item()
            largest = most if largest is None else max(largest, most)
    return count, largest


def _steps(values: Column, step: int | None = None) -> Iterator[tuple[int, Column]]:
    """Where each step begins, and its values."""
    step = step or STEP_VALUES
    for start in range(0, len(values), step):
        yield start, values[start : start + step]


def _parts(ids: Ids, columns: Columns, step: int | None = None) -> Iterator[list[Column]]:
    """Ids and columns, step by step."""
    first, *others = columns.values()
    for start, part in _steps(first, step):
        stop = start + len(part)
        yield [ids(start, stop), part, *(values[start:stop] for values in others)]


def table(ids: Column, columns: Columns) -> Any:
    """A pyarrow table of ids, as `vertex`, and columns; it shares their memory."""
    pyarrow = _pyarrow("make a table of", "results")
    return pyarrow.table({"vertex": ids} | dict(columns))


def _pyarrow(op: str, what: str) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError.of(
            op, what, got="pyarrow is not installed", hint="pip install 'tiergraph[parquet]'"
        ) from error
    return pyarrow


def _schema(pyarrow: Any, columns: Columns) -> Any:
    types = {name: pyarrow.from_numpy_dtype(values.dtype) for name, values in columns.items()}
    return pyarrow.schema([("vertex", pyarrow.uint64()), *types.items()])


def _write_arrow(path: str, ids: Ids, columns: Columns) -> None:
    pyarrow = _pyarrow("write", path)
    schema = _schema(pyarrow, columns)
    with pyarrow.ipc.new_file(path, schema) as writer:
        for parts in _parts(ids, columns):
            writer.write_table(pyarrow.table(parts, schema=schema))


def _write_parquet(path: str, ids: Ids, columns: Columns) -> None:
    pyarrow = _pyarrow("write", path)
    schema = _schema(pyarrow, columns)
    # A dictionary of ids, which are all different, would only be given up.
    with pyarrow.parquet.ParquetWriter(path, schema, use_dictionary=list(columns)) as writer:
        for parts in _parts(ids, columns):
            writer.write_table(pyarrow.table(parts, schema=schema))


def _write_csv(path: str, ids: Ids, columns: Columns) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("vertex", *columns))
        for parts in _parts(ids, columns, CSV_ROWS):
            writer.writerows(zip(*parts, strict=True))


def _write_npy(path: str, ids: Ids, columns: Columns) -> None:
    names = ("vertex", *columns)
    types = [np.dtype(np.uint64), *(values.dtype for values in columns.values())]
    dtype = np.dtype(list(zip(names, types, strict=True)))
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": (len(next(iter(columns.values()))),),
    }
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for parts in _parts(ids, columns):
            table = np.empty(len(parts[0]), dtype)
            for name, part in zip(names, parts, strict=True):
                table[name] = part
            table.tofile(file)
