"""Graphs with PyG's names of arrays: `Data`, and archives."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments.arrays import of_tensor
from ..errors import InputError
from .archives import Member, members
from .dataset import (
    MAIN_FEATURES,
    MAIN_LABELS,
    SPLIT_NAMES,
    SPLIT_SUFFIXES,
    Array,
    Batch,
    Dataset,
    left_out,
    split_name,
)
from .rows import Rows, from_file, from_member, from_object

EDGE_ROWS = {"edge_attr": "edge_attr", "edge_feat": "edge_attr"}
"""Arrays of rows, one an edge, and what they are stored as."""

TIME = "time"
"""What PyG calls the times of nodes."""

EDGE_INDEX = "edge_index"

NAMES = ("x", "y", "num_nodes")
"""What is stored of nodes whatever it is."""


def from_data(data: Any) -> Dataset:
    """PyG's `Data`, or anything with its attributes.

    These are `edge_index`, `x`, `y`, an integer `time` a node, `*_mask` and `edge_*`; others are in
    the notes.
    """
    names = list(data.keys()) if callable(getattr(data, "keys", None)) else list(vars(data))
    names = [name for name in names if getattr(data, name) is not None]
    values, features = of_edges(data, names)
    times = {} if TIME in values else times_of(data, names)
    splits = {n: of_tensor(getattr(data, n), f"data.{n}") for n in names if is_split(n)}
    stored = {EDGE_INDEX, *NAMES, *values, *features, *times, *splits}
    rows = {MAIN_FEATURES: from_object(data.x, "data.x")} if "x" in names else {}
    notes = left_out([n for n in names if n not in stored], "`Data`")
    notes += [one.note for one in (*rows.values(), *features.values()) if one.note]
    vertices = getattr(data, "num_nodes", None)
    return Dataset(
        edges=pairs(np.asarray(of_tensor(data.edge_index, "data.edge_index"))),
        vertices=None if vertices is None else int(vertices),
        features=rows,
        labels={MAIN_LABELS: np.asarray(of_tensor(data.y, "data.y"))} if "y" in names else {},
        splits={split_name(n): np.asarray(split) for n, split in splits.items()},
        edge_values=values,
        edge_features=features,
        node_times=times,
        notes=notes,
    )


def times_of(data: Any, names: Container[str]) -> dict[str, Array]:
    """The times of nodes that `Data`, or a type of `HeteroData`, has, if it has integers there."""
    if TIME not in names:
        return {}
    times = np.asarray(of_tensor(getattr(data, TIME), f"data.{TIME}"))
    of_nodes = times.shape == (data.num_nodes,) and times.dtype.kind in "iu"
    return {TIME: times} if of_nodes else {}


def of_edges(data: Any, names: list[str]) -> tuple[dict[str, Array], dict[str, Rows]]:
    """What PyG's `Data`, or a type of `HeteroData`, has of its edges: numbers and rows, by name."""
    edges = int(np.shape(data.edge_index)[-1])
    is_of_edges = getattr(data, "is_edge_attr", lambda name: name.startswith("edge_"))
    values, features = {}, {}
    for name in names:
        if name == "edge_index" or not is_of_edges(name):
            continue
        array = np.asarray(of_tensor(getattr(data, name), f"data.{name}"))
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
    label = next((n for n in ("y", "node_label") if n in names), None)
    has_rows = bool({"x", "x_data", "node_feat", "indptr"} & names)
    return Dataset(
        edges=_archived(path) if "edge_index" in names else None,
        vertices=int(Member(path, "num_nodes").array()) if "num_nodes" in names else None,
        features={MAIN_FEATURES: from_file(path)} if has_rows else {},
        labels={} if label is None else {MAIN_LABELS: Member(path, label).array()},
        # PyG has several splits as columns; archives of them often have them as rows.
        splits={
            split_name(n): np.ascontiguousarray(a.T) if n.endswith("_masks") else a
            for n, a in arrays.items()
        },
        edge_values={n: flat(Member(path, n).array()) for n in columns},
        edge_features=rows,
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


def flat(array: Array) -> Array:
    """One column as shape (N,)."""
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def is_split(name: str) -> bool:
    """Whether an array of this name says which vertices a split has."""
    return name.endswith(SPLIT_SUFFIXES) or name in SPLIT_NAMES


def pairs(edge_index: Array) -> Iterator[Batch]:
    """The edges of an array of shape (2, E)."""
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise InputError.of(
            "build from", "edge_index", expected="shape (2, E)", got=str(edge_index.shape)
        )
    yield edge_index[0], edge_index[1]


def _archived(path: Path) -> Iterator[Batch]:
    """The edges of an archive, which are read when they are asked for."""
    yield from pairs(Member(path, "edge_index").array())
