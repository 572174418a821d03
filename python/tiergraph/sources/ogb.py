"""OGB's folders: `raw/` with text or NumPy arrays, and `split/SCHEME/`; of one type, or of several.

The layouts are those that OGB's own `read_csv_graph_raw` and `read_csv_heterograph_raw` take.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from ..errors import InputError
from .archives import Member, members
from .dataset import (
    MAIN_FEATURES,
    MAIN_LABELS,
    Again,
    Array,
    Batch,
    Dataset,
    Type,
    TypedDataset,
    narrowed,
    split_name,
)
from .pyg import flat, from_archive, is_column_file, is_edge_column, name_of, pairs
from .reading import mapped, reading
from .rows import Rows, csv_batches, from_column, from_file

COUNTS, TYPES = "num-node-dict.csv.gz", "triplet-type-list.csv.gz"


def is_one(folder: Path) -> bool:
    """Whether a folder has such a data set."""
    return (folder / "raw").is_dir()


def has_types(folder: Path) -> bool:
    """Whether its nodes and edges have types, as those of ogbn-mag have."""
    return (folder / "raw" / TYPES).is_file()


def from_folder(folder: Path) -> Dataset:
    """`raw/` with the arrays of one graph."""
    raw = folder / "raw"
    archive = Dataset()
    if (raw / "data.npz").is_file():
        archive = from_archive(raw / "data.npz")
    count = _first(raw, ("num-node-list", "num_nodes_list"))
    edges, of_edges = _edges_in(raw)
    feat, label = (_first(raw, _names(what)) for what in ("node-feat", "node-label"))
    return Dataset(
        edges=archive.edges if edges is None else edges,
        vertices=archive.vertices if count is None else _number(count),
        features=archive.features if feat is None else {MAIN_FEATURES: from_file(feat)},
        labels=archive.labels if label is None else {MAIN_LABELS: _label(label)},
        splits=_splits(folder / "split"),
        edge_values=archive.edge_values | of_edges.edge_values,
        edge_features=archive.edge_features | of_edges.edge_features,
    )


def typed(folder: Path) -> TypedDataset:
    """`raw/` with `node-feat/TYPE`, `node-label/TYPE` and `relations/SOURCE___RELATION___TYPE`."""
    raw, notes = folder / "raw", []
    header, counts = _lines(raw / COUNTS)
    nodes = {}
    for name, count in zip(header, counts, strict=True):
        of_node = raw / "node-feat" / name
        feat, label = (
            _first(raw / what / name, _names(what)) for what in ("node-feat", "node-label")
        )
        others = sorted(p for p in of_node.glob("*") if p != feat) if of_node.is_dir() else []
        notes += [f"`{path.relative_to(folder)}` is left out" for path in others]
        nodes[name] = Dataset(
            vertices=int(count),
            features={} if feat is None else {MAIN_FEATURES: from_file(feat)},
            labels={} if label is None else {MAIN_LABELS: _label(label)},
            splits=_splits(folder / "split", name),
        )
    edges = {}
    for source, relation, destination in _lines(raw / TYPES):
        of: Type = (source, relation, destination)
        part = raw / "relations" / "___".join(of)
        found, of_edges = _edges_in(part)
        if found is None:
            raise InputError.of("read the edges in", part, expected="`edge.csv.gz`", got="none")
        edges[of] = Dataset(
            edges=found,
            edge_values=of_edges.edge_values,
            edge_features=of_edges.edge_features,
        )
    return TypedDataset(nodes, edges, notes)


def _names(name: str) -> tuple[str, str]:
    return (name, name.replace("-", "_"))


def _lines(path: Path) -> list[list[str]]:
    with reading(path, "text packed by gzip"), gzip.open(path, "rt", encoding="utf-8") as file:
        return [line for line in csv.reader(file) if line]


def _edges_in(raw: Path) -> tuple[Again | None, Dataset]:
    """The edges of one type in a folder, if it has them, and what goes with them."""
    edge, edge_feat, edge_count = (
        _first(raw, names)
        for names in (("edge", "edge_index"), _names("edge-feat"), _names("num-edge-list"))
    )
    edge_count = edge_count or _first(raw, ("num_edges_list",))
    columns = {
        name_of(p): flat(from_column(p))
        for p in sorted(raw.glob("edge[_-]*"))
        if is_edge_column(name_of(p)) and is_column_file(p)
    }
    rows: dict[str, Rows] = {} if edge_feat is None else {"edge_attr": from_file(edge_feat)}
    edges = None if edge is None else Again(partial(_checked_edges, edge, edge_count))
    return edges, Dataset(edge_values=columns, edge_features=rows)


def _checked_edges(path: Path, count: Path | None) -> Iterator[Batch]:
    return _edges(path) if count is None else _counted(_edges(path), _number(count), count)


def _number(path: Path) -> int:
    return int(_whole(path, np.int64).flat[0])


def _label(path: Path) -> Array:
    return _labels(_whole(path, np.float64))


def _counted(edges: Iterator[Batch], count: int, path: Path) -> Iterator[Batch]:
    """The same edges, which must be as many as OGB's own count says."""
    found = 0
    for batch in edges:
        found += len(batch[0])
        yield batch
    if found != count:
        raise InputError.of(
            "read the edges beside", path, expected=f"{count} edges", got=f"{found}"
        )


def _edges(path: Path) -> Iterator[Batch]:
    """OGB's edges: a line an edge, or an array of shape (2, E)."""
    if path.suffix == ".npy":
        yield from pairs(mapped(path))
        return
    for batch in csv_batches(path, np.int64):
        if batch.shape[1] != 2:
            raise InputError.of("read", path, expected="two ids a line", got=f"{batch.shape[1]}")
        yield batch[:, 0], batch[:, 1]


def _splits(folder: Path, of: str = "") -> dict[str, Array]:
    """The positions in `split/SCHEME/{train,valid,test}.*`, of the only scheme.

    `of` is a type of nodes, whose positions are in a folder of its own, if it has some.
    """
    schemes = sorted(p for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
    if len(schemes) > 1:
        names = ", ".join(p.name for p in schemes)
        raise InputError.of("read the split in", folder, expected="one scheme", got=names)
    splits = {}
    for part in (scheme / of for scheme in schemes if (scheme / of).is_dir()):
        for name in ("train", "valid", "test"):
            path = _first(part, (name,))
            if path is None:
                raise InputError.of(
                    "read the split in", part, expected=f"`{name}.csv.gz`, `.csv` or `.npy`"
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


def _labels(labels: Array) -> Array:
    """OGB's labels, where NaN says that a vertex has none: -1."""
    return narrowed(np.where(np.isnan(labels), -1, labels) if labels.dtype.kind == "f" else labels)
