"""Data sets: graphs with features, labels, splits and values of edges, whatever they lie in."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import InputError
from . import graphbolt, igb, matrices, ogb, pyg
from .dataset import Dataset, TypedDataset

FOLDERS: tuple[ModuleType, ...] = (graphbolt, igb, ogb)
"""What reads folders: each says `is_one`, `has_types`, and has `from_folder` and `typed`."""


def is_one(source: Any) -> bool:
    """Whether `find` finds a dataset."""
    if not isinstance(source, str | os.PathLike):
        return hasattr(source, "edge_index")
    path = Path(source)
    if path.is_dir():
        return _reader(path) is not None
    return path.suffix.lower() == ".npz" and path.is_file()


def find(source: Any) -> Dataset | None:
    """The dataset that `source` is, or None where it is anything else.

    Raises `InputError` for a folder with several types of nodes or edges.
    """
    if not is_one(source):
        return None
    if not isinstance(source, str | os.PathLike):
        return pyg.from_data(source)
    path = Path(source)
    reader = _reader(path) if path.is_dir() else None
    if reader is None:
        return pyg.from_archive(path)
    if has_types(path):
        raise InputError.of(
            "build one graph from",
            path,
            expected="one type of nodes and of edges",
            got="several, or types with names",
            hint=f"`tiergraph.build_hetero(path, {str(path)!r})`, or `tiergraph build` with the "
            "folder alone, makes a heterogeneous graph",
        )
    found: Dataset = reader.from_folder(path)
    return found


def has_types(source: Any) -> bool:
    """Whether `find_typed` finds a dataset."""
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    reader = _reader(path) if path is not None and path.is_dir() else None
    return reader is not None and bool(reader.has_types(path))


def find_typed(source: Any) -> TypedDataset | None:
    """The dataset of several types of nodes and edges that a folder is, or None."""
    if not isinstance(source, str | os.PathLike):
        return None
    reader = _reader(Path(source))
    found: TypedDataset | None = None if reader is None else reader.typed(Path(source))
    return found


def with_edges(source: Any, weights: str | None) -> Dataset | None:
    """As `find`, for who needs edges: a sparse matrix in a file is edges then, and not features.

    `weights` is as `tiergraph.build` has it: `none` leaves a matrix's values out.
    """
    return matrices.from_archive(Path(source), weights) if is_matrix(source) else find(source)


def is_matrix(source: Any) -> bool:
    """Whether `with_edges` gives the entries of a sparse matrix in a file."""
    if not isinstance(source, str | os.PathLike):
        return False
    path = Path(source)
    return path.suffix.lower() == ".npz" and path.is_file() and matrices.is_one(path)


def _reader(folder: Path) -> ModuleType | None:
    return next((reader for reader in FOLDERS if folder.is_dir() and reader.is_one(folder)), None)
