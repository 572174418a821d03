"""What loaders are told, and what the native part is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from ..arguments.sizes import to_bytes
from ..errors import InputError
from ..handles import without
from ..hetero import EdgeType
from ..inputs import Chosen, Placement
from .ranks import Rank

Fanouts: TypeAlias = Sequence[int] | Mapping[EdgeType, Sequence[int]]
"""Neighbours a hop, of all edge types or by edge type."""


@dataclass(frozen=True)
class Sampling:
    """What is sampled, and how seeds become batches: what PyG's loaders are told too."""

    num_neighbors: Any
    batch_size: int
    shuffle: bool
    drop_last: bool
    disjoint: bool
    weight_attr: str | None
    time_attr: str | None
    temporal_strategy: str
    rank: Rank

    @classmethod
    def of(cls, given: Mapping[str, Any], **other: Any) -> Sampling:
        """Those among the arguments of a loader, but for `other`."""
        given = {**given, "rank": Rank(given["rank"], given["world_size"])} | other
        return cls(**{field.name: given[field.name] for field in fields(cls)})

    @property
    def has_trees(self) -> bool:
        """Whether each seed has a tree of its own, as it must have where it has a time."""
        return self.disjoint or self.time_attr is not None

    def native(self) -> dict[str, Any]:
        """What the native part is told of it, beside what goes by edge type."""
        return {
            "batch_size": self.batch_size,
            "shuffle": self.shuffle,
            "drop_last": self.drop_last,
            "disjoint": self.has_trees,
            "temporal_strategy": self.temporal_strategy,
        }

    def values(self) -> dict[str, str | None]:
        """The values of edges that are sampled by, by name."""
        return {"weight_attr": self.weight_attr, "time_attr": self.time_attr}


@dataclass(frozen=True)
class LoaderOptions:
    """What loaders are told beyond what PyG's take; `NeighborLoader` says what it means."""

    seed: int | None
    memory: int | str | None
    threads: int | None
    window: int | None
    prefetch: int | None
    placement: Placement | None
    share_pages: bool | None
    presample: int | None
    direction: Literal["in", "out"] | None
    io: str | None
    features: Chosen
    labels: str | None
    edge_features: Chosen
    device: str | None
    device_memory: int | str | None
    multiprocessors: int | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> LoaderOptions:
        """Those among the arguments of a loader."""
        return cls(**{field.name: given[field.name] for field in fields(cls)})

    def native(self) -> dict[str, Any]:
        """What the native part is told of it; None is its default."""
        others = ("features", "labels", "edge_features", "device", "device_memory")
        return without(vars(self), *others) | {"memory": to_bytes(self.memory)}


def check_device(device: str) -> None:
    """Refuses what is neither the CPU nor a GPU."""
    if device != "cpu" and device.split(":")[0] != "cuda":
        raise InputError.of("load batches on", device, expected="`cpu`, `cuda` or `cuda:N`")
