"""Results as files (`.parquet`, `.arrow`, `.csv`, `.npy`), always beside the user's vertex ids.

What follows a run counts in its memory: results are looked through and written in steps of
`STEP_VALUES`, and ids come as a function of positions, so that no second array is made of them.
"""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, IoError

if TYPE_CHECKING:
    from .attached.names import Names

SUFFIXES = (".parquet", ".arrow", ".csv", ".npy")

STEP_VALUES = 1 << 18
"""Values of a step, and rows of a row group."""

CSV_ROWS = 1 << 16

Column = NDArray[Any]
Columns = Mapping[str, Column]

Ids = Callable[[int, int], NDArray[np.uint64]]
"""The user's ids at positions `start` to `stop`."""

Mask = Callable[[Column], NDArray[np.bool_]]


def check_folder(path: Path, missing: str = "no file in a writable directory") -> None:
    """Complains now, and not after the run, of a file that cannot be written.

    `missing` says what there is not where the folder cannot be written to.
    """
    folder = path.resolve().parent
    if not os.access(folder, os.W_OK):
        raise IoError.of("write", path, got=f"{missing} `{folder}`")
    if path.is_dir():
        raise IoError.of("write", path, expected="a file", got="a directory")
    if path.exists() and not os.access(path, os.W_OK):
        raise IoError.of("write", path, got="a file that is read-only")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Where to write a file of the same name, which takes the place of `path` when it is whole.

    What stood at `path` stays there where writing fails. A pipe or a device is written as it is.
    Raises `IoError` for what the system refuses meanwhile.
    """
    target, folder = Path(os.path.realpath(path)), None
    try:
        if target.exists() and not target.is_file():
            yield target
            return
        folder = tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent)
        part = Path(folder, target.name)
        yield part
        part.replace(target)
    except OSError as error:
        raise IoError.of("write", path, got=error.strerror or error) from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def check_suffix(path: str) -> str:
    """`path`, if `write` can write it; called before a run, so that no result is lost after it."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError.of(
            "write", path, expected=f"a file name in {', '.join(SUFFIXES)}", got=suffix or "none"
        )
    check_folder(Path(path), missing="no writable directory")
    return path


def write(path: str, ids: Ids, name: str, values: Column, names: Names | None = None) -> None:
    """Writes the columns `vertex` and `name` to `path`, in the format that its suffix says.

    `.npy` holds a structured array: `np.load(path)["vertex"]`, `np.load(path)[name]`. Holds a
    step of values and ids, whatever the format. With `names`, a column `name` of text comes after
    the ids, but not in `.npy`, which has numbers alone.
    """
    write_columns(path, ids, {name: values}, names)


def write_columns(path: str, ids: Ids, columns: Columns, names: Names | None = None) -> None:
    """As `write`, with several columns of one length beside `vertex`."""
    suffix = Path(check_suffix(path)).suffix.lower()
    with whole_file(path) as part:
        if suffix == ".npy":
            _write_npy(part, ids, columns)
        elif suffix == ".csv":
            _write_csv(part, ids, columns, names)
        else:
            pyarrow = pyarrow_for("write", path)
            rows = _tables(pyarrow, ids, columns, names)
            _write_tables(part, _schema(pyarrow, columns, names), rows, list(columns))


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


def table(ids: Column, columns: Columns, names: Names | None = None) -> Any:
    """A pyarrow table of ids, as `vertex`, and columns; it shares their memory."""
    pyarrow = pyarrow_for("make a table of", "results")
    named = {} if names is None else {"name": names.to_arrow()}
    return pyarrow.table({"vertex": ids} | named | dict(columns))


def write_tables(
    path: str, schema: Any, tables: Iterable[Any], dictionaries: Sequence[str] | None = None
) -> None:
    """Writes rows that come table by table to a `.parquet`, `.arrow` or `.csv` file.

    Columns of a Parquet file that repeat values are `dictionaries`; all, if None.
    """
    pyarrow_for("write", path)
    check_holds_text(path)
    with whole_file(path) as part:
        _write_tables(part, schema, tables, dictionaries)


def check_holds_text(path: str) -> None:
    """Refuses a file of results that does not hold names."""
    if Path(check_suffix(path)).suffix.lower() == ".npy":
        raise InputError.of(
            "write",
            path,
            expected="a file of texts",
            got="one of numbers",
            hint="`.parquet`, `.arrow` and `.csv` hold names",
        )


def pyarrow_for(op: str, what: str) -> Any:
    """The module pyarrow. Raises `InputError` where it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError.of(
            op, what, got="pyarrow is not installed", hint="pip install 'tiergraph[parquet]'"
        ) from error
    return pyarrow


def _schema(pyarrow: Any, columns: Columns, names: Names | None) -> Any:
    types = {name: pyarrow.from_numpy_dtype(values.dtype) for name, values in columns.items()}
    named = [] if names is None else [("name", pyarrow.large_string())]
    return pyarrow.schema([("vertex", pyarrow.uint64()), *named, *types.items()])


def _tables(pyarrow: Any, ids: Ids, columns: Columns, names: Names | None) -> Iterator[Any]:
    """Tables of the rows of each step."""
    schema, start = _schema(pyarrow, columns, names), 0
    for own, *parts in _parts(ids, columns):
        stop = start + len(own)
        named = [] if names is None else [names.to_arrow(start, stop)]
        yield pyarrow.table([own, *named, *parts], schema=schema)
        start = stop


def _write_tables(
    path: Path, schema: Any, tables: Iterable[Any], dictionaries: Sequence[str] | None
) -> None:
    pyarrow, suffix = pyarrow_for("write", path.name), path.suffix.lower()
    if suffix == ".parquet":
        # A dictionary of ids, which are all different, would only be given up.
        repeat = True if dictionaries is None else list(dictionaries)
        writer = pyarrow.parquet.ParquetWriter(path, schema, use_dictionary=repeat)
    elif suffix == ".arrow":
        writer = pyarrow.ipc.new_file(str(path), schema)
    else:
        from pyarrow import csv as pyarrow_csv

        writer = pyarrow_csv.CSVWriter(str(path), schema)
    with writer:
        for rows in tables:
            writer.write_table(rows)


def _write_csv(path: Path, ids: Ids, columns: Columns, names: Names | None) -> None:
    named = () if names is None else ("name",)
    start = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("vertex", *named, *columns))
        for own, *parts in _parts(ids, columns, CSV_ROWS):
            stop = start + len(own)
            texts = [] if names is None else [names[start:stop]]
            writer.writerows(zip(own, *texts, *parts, strict=True))
            start = stop


def _write_npy(path: Path, ids: Ids, columns: Columns) -> None:
    names = ("vertex", *columns)
    types = [np.dtype(np.uint64), *(values.dtype for values in columns.values())]
    dtype = np.dtype(list(zip(names, types, strict=True)))
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": (len(next(iter(columns.values()))),),
    }
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for parts in _parts(ids, columns):
            table = np.empty(len(parts[0]), dtype)
            for name, part in zip(names, parts, strict=True):
                table[name] = part
            table.tofile(file)
