"""What a data set says of a graph, whatever it was read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .rows import Rows

Array = NDArray[Any]
Batch = tuple[Array, ...]
Type = tuple[str, str, str]
"""The type of edges: source, relation, destination."""

SPLIT_NAMES = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}

SPLIT_SUFFIXES = ("_masks", "_mask", "_idx")

MAIN_FEATURES, MAIN_LABELS = "x", "y"
"""What models take unless they are told otherwise."""


@dataclass(frozen=True)
class Dataset:
    """What one source says of a graph; absent parts are None or empty."""

    edges: Iterable[Batch] | None = None
    vertices: int | None = None
    features: dict[str, Rows] = field(default_factory=dict)
    labels: dict[str, Array] = field(default_factory=dict)
    splits: dict[str, Array] = field(default_factory=dict)
    edge_values: dict[str, Array] = field(default_factory=dict)
    """A number an edge, in the order of `edges`."""
    edge_features: dict[str, Rows] = field(default_factory=dict)
    """Rows, one an edge."""
    node_times: dict[str, Array] = field(default_factory=dict)
    """An integer a vertex."""
    notes: list[str] = field(default_factory=list)
    """What it has that is not read."""


@dataclass(frozen=True)
class TypedDataset:
    """What one source says of a graph of several types of nodes and edges."""

    nodes: dict[str, Dataset] = field(default_factory=dict)
    """What goes with the nodes of each type: no edges."""
    edges: dict[Type, Dataset] = field(default_factory=dict)
    """The edges of each type, and what goes with them."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Again:
    """Edges in a file, which can be read several times."""

    read: Callable[[], Iterator[Batch]]

    def __iter__(self) -> Iterator[Batch]:
        return self.read()


def split_name(name: str) -> str:
    """`train_mask`, `train_idx` and `train` are one split; `valid` is `val`."""
    for suffix in SPLIT_SUFFIXES:
        name = name.removesuffix(suffix)
    return SPLIT_NAMES.get(name, name)


def left_out(names: Iterable[str], of: str) -> list[str]:
    """What is said of attributes of PyG's data that are not stored: a sentence, or nothing."""
    listed = ", ".join(f"`{name}`" for name in names)
    kept = "`x`, `y`, an integer `time`, masks, `edge_index` and numbers of edges are stored"
    return [f"{listed} of {of}: left out, as {kept}"] if listed else []


def narrowed(labels: Array) -> Array:
    """Labels of one column as shape (N,), and as integers where that loses nothing."""
    flat = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if flat.dtype.kind != "f" or not np.isfinite(flat).all():
        return flat
    whole = flat.astype(np.int64)
    return whole if np.array_equal(whole, flat) else flat
