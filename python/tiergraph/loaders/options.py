"""What loaders are told, and what the native part is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias, TypedDict

from ..arguments.checks import Check, chosen, chosen_some
from ..arguments.sizes import to_bytes
from ..errors import InputError
from ..handles import without
from ..hetero import EdgeType
from ..inputs import Chosen, ChosenSome, Placement

Fanouts: TypeAlias = Sequence[int] | Mapping[EdgeType, Sequence[int]]
"""Neighbours a hop, of all edge types or by edge type."""


class LoaderOptions(TypedDict, total=False):
    """What loaders take by keyword alone; `NeighborLoader` says what it means."""

    batch_size: int
    shuffle: bool
    drop_last: bool
    rank: int | None
    world_size: int | None
    seed: int
    memory: int | str | None
    threads: int | None
    window: int | None
    prefetch: int | None
    placement: Placement
    share_pages: bool
    presample: int | None
    direction: Literal["in", "out"]
    io: str
    features: Chosen
    labels: Chosen
    edge_features: Chosen
    edge_values: ChosenSome
    device: str
    device_memory: int | str | None
    multiprocessors: int | None


DEFAULTS: LoaderOptions = {
    "batch_size": 1,
    "shuffle": False,
    "drop_last": False,
    "seed": 0,
    "placement": "unified",
    "share_pages": True,
    "direction": "in",
    "io": "auto",
    "features": True,
    "edge_features": True,
    "edge_values": True,
    "device": "cpu",
}
"""What those are that are not given; the others are None."""

LOADER_CHECKS: dict[str, Check | None] = {
    "num_neighbors": None,
    "edge_values": chosen_some,
    "labels": chosen,
}
"""What arguments of loaders may be that mean something else elsewhere; None: checked by graph."""

NOT_NATIVE = {"num_neighbors", "weight_attr", "time_attr", "disjoint", "rank", "world_size"}
NOT_NATIVE |= {"features", "labels", "edge_features", "edge_values"}
NOT_NATIVE |= {"device", "device_memory", "memory"}
"""What the native part is told in other words or not at all; None is its default."""


class Settings(SimpleNamespace):
    """`LoaderOptions`, and what is sampled: `num_neighbors`, `disjoint`, names of values.

    `held` is how many bytes a loader holds itself, which are of its `memory`.
    """

    @classmethod
    def of(cls, given: Mapping[str, Any], **other: Any) -> Settings:
        """Those among the arguments of a loader, but for `other`."""
        sampled = ("num_neighbors", "disjoint", "weight_attr", "time_attr", "temporal_strategy")
        all_none = dict.fromkeys(LoaderOptions.__annotations__)
        named = {name: given[name] for name in sampled}
        return cls(**all_none | DEFAULTS | given["options"] | named | {"held": 0} | other)

    @property
    def has_trees(self) -> bool:
        """Whether each seed has a tree of its own, as it must have where it has a time."""
        return self.disjoint or self.time_attr is not None

    def values(self) -> dict[str, str | None]:
        """The values of edges that are sampled by, by name."""
        return {"weight_attr": self.weight_attr, "time_attr": self.time_attr}

    def native(self) -> dict[str, Any]:
        """What the native part is told of it, beside what goes by type."""
        told = without(vars(self), *NOT_NATIVE)
        return told | {"disjoint": self.has_trees, "memory": to_bytes(self.memory)}


def check_reads(io: str | None) -> None:
    """Refuses the engine of measurements, whose pages are of zeros."""
    if io == "null":
        raise InputError.of(
            "load batches with the read engine",
            io,
            expected="one that reads",
            got="one that gives zeros in place of what is stored",
            hint="`--io auto` takes the fastest that reads",
        )


def check_device(device: str) -> None:
    """Refuses what is neither the CPU nor a GPU."""
    if device != "cpu" and device.split(":")[0] != "cuda":
        raise InputError.of("load batches on", device, expected="`cpu`, `cuda` or `cuda:N`")
