"""Graphs with features, labels, splits, values of edges: PyG's `Data`, archives, OGB's folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from . import graphbolt, matrices
from .archives import Member, members
from .dataset import SPLIT_NAMES, SPLIT_SUFFIXES, Array, Dataset, split_name
from .reading import mapped
from .rows import Rows, csv_batches, from_column, from_file, from_member, from_object

EDGE_ROWS = {"edge_attr": "edge_attr", "edge_feat": "edge_attr"}
"""Arrays of rows, one an edge, and what they are stored as."""


def is_one(source: Any) -> bool:
    """Whether `find` finds a dataset."""
    if not isinstance(source, str | os.PathLike):
        return hasattr(source, "edge_index")
    path = Path(source)
    if path.is_dir():
        return ogb_root(path) is not None or graphbolt.is_one(path)
    return path.suffix.lower() == ".npz" and path.is_file()


def find(source: Any) -> Dataset | None:
    """The dataset that `source` is, or None where it is anything else."""
    if not is_one(source):
        return None
    if not isinstance(source, str | os.PathLike):
        return from_data(source)
    path = Path(source)
    if path.is_dir():
        return graphbolt.from_folder(path) if graphbolt.is_one(path) else from_ogb(path)
    return from_archive(path)


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


def from_data(data: Any) -> Dataset:
    """PyG's `Data`, or anything with its attributes: `edge_index`, `x`, `y`, `*_mask`, `edge_*`."""
    names = list(data.keys()) if callable(getattr(data, "keys", None)) else list(vars(data))
    x, y = getattr(data, "x", None), getattr(data, "y", None)
    vertices = getattr(data, "num_nodes", None)
    values, features = of_edges(data, names)
    return Dataset(
        edges=_pairs(np.asarray(data.edge_index)),
        vertices=None if vertices is None else int(vertices),
        features=None if x is None else from_object(x, "data.x"),
        labels=None if y is None else np.asarray(y),
        splits={split_name(n): np.asarray(getattr(data, n)) for n in names if is_split(n)},
        edge_values=values,
        edge_features=features,
    )


def of_edges(data: Any, names: list[str]) -> tuple[dict[str, Array], dict[str, Rows]]:
    """What PyG's `Data`, or a type of `HeteroData`, has of its edges: numbers and rows, by name."""
    edges = int(np.shape(data.edge_index)[-1])
    is_of_edges = getattr(data, "is_edge_attr", lambda name: name.startswith("edge_"))
    values, features = {}, {}
    for name in names:
        if name == "edge_index" or not is_of_edges(name):
            continue
        array = np.asarray(getattr(data, name))
        if array.ndim == 0 or len(array) != edges or array.dtype.kind not in "fiub":
            continue
        if array.ndim == 1 and name != "edge_attr":
            values[name] = array
        elif array.ndim <= 2:
            features[name] = from_object(array, f"data.{name}")
    return values, features


def from_archive(path: Path) -> Dataset:
    """An `.npz` of plain arrays: `edge_index`, `num_nodes`, `x` dense or sparse, `y`, masks.

    `edge_attr` (OGB: `edge_feat`) are rows of edges, further `edge_*` have a number an edge.
    """
    names = members(path)
    rows = {EDGE_ROWS[n]: from_member(path, n) for n in sorted(names & EDGE_ROWS.keys())}
    columns = [n for n in sorted(names) if is_edge_column(n)]
    masks = [n for n in names if is_split(n)]
    arrays = {n: Member(path, n).array() for n in masks}
    has_rows = bool({"x", "x_data", "node_feat", "indptr"} & names)
    return Dataset(
        edges=_archived(path) if "edge_index" in names else None,
        vertices=int(Member(path, "num_nodes").array()) if "num_nodes" in names else None,
        features=from_file(path) if has_rows else None,
        labels=next((Member(path, n).array() for n in ("y", "node_label") if n in names), None),
        # PyG has several splits as columns; archives of them often have them as rows.
        splits={
            split_name(n): np.ascontiguousarray(a.T) if n.endswith("_masks") else a
            for n, a in arrays.items()
        },
        edge_values={n: _flat(Member(path, n).array()) for n in columns},
        edge_features=rows,
    )


def ogb_root(folder: Path) -> Path | None:
    """The folder with a dataset's arrays in OGB's layout, or None."""
    raw = folder / "raw"
    return raw if raw.is_dir() else None


def from_ogb(folder: Path) -> Dataset:
    """OGB's layout on disk: `raw/` with text or NumPy arrays, `split/SCHEME/`."""
    raw = folder / "raw"
    archive = Dataset()
    if (raw / "data.npz").is_file():
        archive = from_archive(raw / "data.npz")
    feat, label, edge, count, edge_feat, edge_count = (
        _first(raw, names)
        for names in (
            ("node-feat", "node_feat"),
            ("node-label", "node_label"),
            ("edge", "edge_index"),
            ("num-node-list", "num_nodes_list"),
            ("edge-feat", "edge_feat"),
            ("num-edge-list", "num_edges_list"),
        )
    )
    edges = archive.edges if edge is None else _edges(edge)
    if edges is not None and edge_count is not None:
        edges = _counted(edges, int(_whole(edge_count, np.int64).flat[0]), edge_count)
    columns = {
        name_of(p): _flat(from_column(p))
        for p in sorted(raw.glob("edge[_-]*"))
        if is_edge_column(name_of(p)) and is_column_file(p)
    }
    return Dataset(
        edges=edges,
        vertices=archive.vertices if count is None else int(_whole(count, np.int64).flat[0]),
        features=archive.features if feat is None else from_file(feat),
        labels=archive.labels if label is None else _labels(_whole(label, np.float64)),
        splits=_ogb_splits(folder / "split"),
        edge_values=archive.edge_values | columns,
        edge_features=archive.edge_features
        if edge_feat is None
        else {"edge_attr": from_file(edge_feat)},
    )


def is_edge_column(name: str) -> bool:
    """Whether an array of this name, such as `edge_weight`, has a number an edge."""
    other = {"edge_index", *EDGE_ROWS}
    return name.startswith("edge_") and name not in other and not name.startswith("edge_label")


def is_column_file(path: Path) -> bool:
    """Whether a file may hold a number an edge."""
    return path.name.endswith((".npy", ".csv", ".csv.gz"))


def name_of(path: Path) -> str:
    """`raw/edge-weight.csv.gz` has the values `edge_weight`."""
    return path.name.split(".")[0].replace("-", "_")


def _counted(
    edges: Iterator[tuple[Array, ...]], count: int, path: Path
) -> Iterator[tuple[Array, ...]]:
    """The same edges, which must be as many as OGB's own count says."""
    found = 0
    for batch in edges:
        found += len(batch[0])
        yield batch
    if found != count:
        raise InputError.of(
            "read the edges beside", path, expected=f"{count} edges", got=f"{found}"
        )


def _flat(array: Array) -> Array:
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def is_split(name: str) -> bool:
    """Whether an array of this name says which vertices a split has."""
    return name.endswith(SPLIT_SUFFIXES) or name in SPLIT_NAMES


def _pairs(edge_index: Array) -> Iterator[tuple[Array, Array]]:
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise InputError.of(
            "build from", "edge_index", expected="shape (2, E)", got=str(edge_index.shape)
        )
    yield edge_index[0], edge_index[1]


def _archived(path: Path) -> Iterator[tuple[Array, Array]]:
    """The edges of an archive, which are read when they are asked for."""
    yield from _pairs(Member(path, "edge_index").array())


def _edges(path: Path) -> Iterator[tuple[Array, Array]]:
    """OGB's edges: a line an edge, or an array of shape (2, E)."""
    if path.suffix == ".npy":
        yield from _pairs(mapped(path))
        return
    for batch in csv_batches(path, np.int64):
        if batch.shape[1] != 2:
            raise InputError.of("read", path, expected="two ids a line", got=f"{batch.shape[1]}")
        yield batch[:, 0], batch[:, 1]


def _ogb_splits(folder: Path) -> dict[str, Array]:
    """The positions in `split/SCHEME/{train,valid,test}.*`, of the only scheme."""
    schemes = sorted(p for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
    if len(schemes) > 1:
        names = ", ".join(p.name for p in schemes)
        raise InputError.of("read the split in", folder, expected="one scheme", got=names)
    splits = {}
    for scheme in schemes:
        for name in ("train", "valid", "test"):
            path = _first(scheme, (name,))
            if path is None:
                raise InputError.of(
                    "read the split in", scheme, expected=f"`{name}.csv.gz`, `.csv` or `.npy`"
                )
            splits[split_name(name)] = _whole(path, np.int64).ravel()
    return splits


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    """The file of one of these names, whatever its form."""
    paths = (
        folder / f"{n}{suffix}" for n in names for suffix in (".npy", ".npz", ".csv", ".csv.gz")
    )
    return next((path for path in paths if path.is_file()), None)


def _whole(path: Path, dtype: type[np.generic]) -> Array:
    """A small file as one array."""
    if path.suffix == ".npy":
        return np.asarray(mapped(path))
    if path.suffix == ".npz":
        names = members(path)
        if len(names) != 1:
            raise InputError.of("read", path, expected="one array", got=", ".join(sorted(names)))
        return Member(path, names.pop()).array()
    batches = list(csv_batches(path, dtype))
    return np.concatenate(batches) if batches else np.empty((0, 1), dtype)


def narrowed(labels: Array) -> Array:
    """Labels of one column as shape (N,), and as integers where that loses nothing."""
    flat = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if flat.dtype.kind != "f" or not np.isfinite(flat).all():
        return flat
    whole = flat.astype(np.int64)
    return whole if np.array_equal(whole, flat) else flat


def _labels(labels: Array) -> Array:
    """OGB's labels, where NaN says that a vertex has none: -1."""
    return narrowed(np.where(np.isnan(labels), -1, labels) if labels.dtype.kind == "f" else labels)
