"""IGB and IGBH (Illinois Graph Benchmark): a folder `processed/` of nodes by type and of edges.

`TYPE/node_feat.npy`, `TYPE/node_label_19.npy` and `node_label_2K.npy`, and
`SOURCE__RELATION__DESTINATION/edge_index.npy` of shape (E, 2). The largest sizes have plain numbers
in files of that name: float32, 1024 a row. Splits are those of its own loader: 60 and 20 % of the
nodes that have labels, and the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from ..errors import InputError
from .dataset import MAIN_FEATURES, MAIN_LABELS, Again, Array, Batch, Dataset, Type, TypedDataset
from .reading import mapped, reading
from .rows import Rows, from_object

EDGES, FEATURES = "edge_index.npy", "node_feat.npy"
LABELS = {MAIN_LABELS: "node_label_19.npy", "y_2k": "node_label_2K.npy"}
COLUMNS = 1024
LABELLED = {269346174: {MAIN_LABELS: 227130858, "y_2k": 157675969}}
"""How many of so many papers, the first ones, have labels; all of other numbers."""
PIECE = 1 << 20
"""Labels that are converted at a time."""


def is_one(folder: Path) -> bool:
    """Whether a folder has such a data set."""
    return bool(_types(folder))


def has_types(folder: Path) -> bool:
    """Whether there are edges of several types: IGBH."""
    return len(_types(folder)) > 1


def from_folder(folder: Path) -> Dataset:
    """IGB: papers, and which cite which."""
    ((source, relation, destination),) = _types(folder)
    if source != destination:
        raise InputError.of(
            "read",
            folder,
            expected="edges among nodes of one type",
            got=f"`{source}__{relation}__{destination}`",
            hint=f"`tiergraph.build_hetero(path, {str(folder)!r})` takes several types",
        )
    nodes = _nodes(folder / "processed" / source)
    edges = _edges(folder, (source, relation, destination))
    return Dataset(edges, nodes.vertices, nodes.features, nodes.labels, nodes.splits)


def typed(folder: Path) -> TypedDataset:
    """IGBH: its types of nodes and edges."""
    types = _types(folder)
    names = dict.fromkeys(
        name for source, _, destination in types for name in (source, destination)
    )
    nodes = {name: _nodes(folder / "processed" / name) for name in names}
    return TypedDataset(nodes, {of: Dataset(_edges(folder, of)) for of in types})


def _types(folder: Path) -> list[Type]:
    types = []
    for path in sorted((folder / "processed").glob(f"*__*__*/{EDGES}")):
        parts = path.parent.name.split("__")
        if len(parts) == 3:
            types.append((parts[0], parts[1], parts[2]))
    return types


def _edges(folder: Path, of: Type) -> Again:
    return Again(partial(_pairs, folder / "processed" / "__".join(of) / EDGES))


def _pairs(path: Path) -> Iterator[Batch]:
    index = mapped(path)
    if index.ndim != 2 or index.shape[1] != 2:
        raise InputError.of("read", path, expected="shape (E, 2)", got=str(index.shape))
    yield index[:, 0], index[:, 1]


def _nodes(folder: Path) -> Dataset:
    """What goes with the nodes of a type."""
    path = folder / FEATURES
    rows = _array(path, COLUMNS)
    if rows.ndim != 2:
        raise InputError.of("read", path, expected="shape (N, D)", got=str(rows.shape))
    vertices = len(rows)
    features = Rows(str(path), str(path)) if _has_header(path) else from_object(rows, str(path))
    labels = {
        name: _labels(folder / file, vertices, LABELLED.get(vertices, {}).get(name, vertices))
        for name, file in LABELS.items()
        if (folder / file).is_file()
    }
    splits = _splits(vertices) if labels else {}
    return Dataset(None, vertices, {MAIN_FEATURES: features}, labels, splits)


def _labels(path: Path, vertices: int, labelled: int) -> Array:
    """Whole numbers, -1 of nodes without a label."""
    stored = _array(path, 1).reshape(-1)
    if len(stored) != vertices:
        raise InputError.of("read", path, expected=f"{vertices} labels", got=f"{len(stored)}")
    labels = np.full(vertices, -1, np.int64)
    for first in range(0, labelled, PIECE):
        part = np.asarray(stored[first : min(first + PIECE, labelled)])
        labels[first : first + len(part)] = part
        if not np.array_equal(labels[first : first + len(part)], part):
            raise InputError.of("read", path, expected="whole numbers", got="others")
    return labels


def _splits(vertices: int) -> dict[str, Array]:
    labelled = LABELLED.get(vertices, {}).get(MAIN_LABELS, vertices)
    train, val = int(labelled * 0.6), int(labelled * 0.2)
    ends = {"train": (0, train), "val": (train, train + val), "test": (train + val, labelled)}
    splits = {}
    for name, (begin, end) in ends.items():
        splits[name] = np.zeros(vertices, dtype=bool)
        splits[name][begin:end] = True
    return splits


def _has_header(path: Path) -> bool:
    with reading(path, "an array of numbers"), path.open("rb") as file:
        return file.read(6) == b"\x93NUMPY"


def _array(path: Path, columns: int) -> Array:
    """An array with a header, or plain float32."""
    if _has_header(path):
        return mapped(path)
    size = path.stat().st_size
    if size == 0 or size % (4 * columns):
        expected = f"a `.npy` file, or plain float32, {columns} a row"
        raise InputError.of("read", path, expected=expected, got=f"{size} bytes")
    return np.memmap(path, np.float32, "r").reshape(-1, columns)
