"""What a data set says of a graph, whatever it was read from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from .rows import Rows

Array = NDArray[Any]

SPLIT_NAMES = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}

SPLIT_SUFFIXES = ("_masks", "_mask", "_idx")


@dataclass(frozen=True)
class Dataset:
    """What one source says of a graph; absent parts are None or empty."""

    edges: Iterator[tuple[Array, ...]] | None = None
    vertices: int | None = None
    features: Rows | None = None
    labels: Array | None = None
    splits: dict[str, Array] = field(default_factory=dict)
    edge_values: dict[str, Array] = field(default_factory=dict)
    """A number an edge, in the order of `edges`."""
    edge_features: dict[str, Rows] = field(default_factory=dict)
    """Rows, one an edge."""


def split_name(name: str) -> str:
    """`train_mask`, `train_idx` and `train` are one split; `valid` is `val`."""
    for suffix in SPLIT_SUFFIXES:
        name = name.removesuffix(suffix)
    return SPLIT_NAMES.get(name, name)
