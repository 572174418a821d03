"""Results as files (`.parquet`, `.csv`, `.npy`), always beside the user's vertex ids."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, IoError

SUFFIXES = (".parquet", ".csv", ".npy")

CSV_ROWS = 1 << 16

Column = NDArray[np.generic]


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


def write(path: str, ids: NDArray[np.uint64], name: str, values: Column) -> None:
    """Writes the columns `vertex` and `name` to `path`, in the format that its suffix says.

    `.npy` holds a structured array: `np.load(path)["vertex"]`, `np.load(path)[name]`.
    """
    suffix = Path(check_suffix(path)).suffix.lower()
    writer = {".parquet": _write_parquet, ".csv": _write_csv, ".npy": _write_npy}[suffix]
    try:
        writer(path, ids, name, values)
    except OSError as error:
        raise IoError.of("write", path, got=error.strerror or error) from error


def top(ids: NDArray[np.uint64], values: Column, count: int) -> list[tuple[int, Any]]:
    """The `count` largest values with their vertices, ties by smaller id."""
    count = min(count, len(values))
    if count <= 0:
        return []
    numbers = values.astype(np.float64)
    threshold = np.partition(numbers, len(numbers) - count)[len(numbers) - count]
    candidates = np.flatnonzero(numbers >= threshold)
    chosen = candidates[np.lexsort((ids[candidates], -numbers[candidates]))][:count]
    return [(int(ids[i]), values[i].item()) for i in chosen]


def _write_parquet(path: str, ids: NDArray[np.uint64], name: str, values: Column) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError.of(
            "write", path, got="pyarrow is not installed", hint="pip install 'tiergraph[parquet]'"
        ) from error
    pyarrow.parquet.write_table(pyarrow.table({"vertex": ids, name: values}), path)


def _write_csv(path: str, ids: NDArray[np.uint64], name: str, values: Column) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("vertex", name))
        for start in range(0, len(ids), CSV_ROWS):
            part = slice(start, start + CSV_ROWS)
            writer.writerows(zip(ids[part], values[part], strict=True))


def _write_npy(path: str, ids: NDArray[np.uint64], name: str, values: Column) -> None:
    table = np.empty(len(ids), dtype=[("vertex", np.uint64), (name, values.dtype)])
    table["vertex"] = ids
    table[name] = values
    np.save(path, table)
