"""Results as files (`.parquet`, `.csv`, `.npy`), always beside the user's vertex ids.

What follows a run counts in its memory: results are looked through and written in steps of
`STEP_VALUES`, and ids come as a function of positions, so that no second array is made of them.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, IoError

SUFFIXES = (".parquet", ".csv", ".npy")

STEP_VALUES = 1 << 18
"""Values of a step, and rows of a row group."""

CSV_ROWS = 1 << 16

Column = NDArray[Any]

Ids = Callable[[int, int], NDArray[np.uint64]]
"""The user's ids at positions `start` to `stop`."""

Mask = Callable[[Column], NDArray[np.bool_]]


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
    suffix = Path(check_suffix(path)).suffix.lower()
    writer = {".parquet": _write_parquet, ".csv": _write_csv, ".npy": _write_npy}[suffix]
    try:
        writer(path, ids, name, values)
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


def _write_parquet(path: str, ids: Ids, name: str, values: Column) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError.of(
            "write", path, got="pyarrow is not installed", hint="pip install 'tiergraph[parquet]'"
        ) from error
    types = {"vertex": pyarrow.uint64(), name: pyarrow.from_numpy_dtype(values.dtype)}
    schema = pyarrow.schema(list(types.items()))
    # A dictionary of ids, which are all different, would only be given up.
    with pyarrow.parquet.ParquetWriter(path, schema, use_dictionary=[name]) as writer:
        for start, part in _steps(values):
            columns = [ids(start, start + len(part)), part]
            writer.write_table(pyarrow.table(columns, schema=schema))


def _write_csv(path: str, ids: Ids, name: str, values: Column) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("vertex", name))
        for start, part in _steps(values, CSV_ROWS):
            writer.writerows(zip(ids(start, start + len(part)), part, strict=True))


def _write_npy(path: str, ids: Ids, name: str, values: Column) -> None:
    dtype = np.dtype([("vertex", np.uint64), (name, values.dtype)])
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": (len(values),),
    }
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start, part in _steps(values):
            table = np.empty(len(part), dtype)
            table["vertex"] = ids(start, start + len(part))
            table[name] = part
            table.tofile(file)
