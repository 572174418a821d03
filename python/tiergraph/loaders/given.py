"""A graph as loaders take batches of it: what an ordinary one and one with types have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import Graph
from ..handles import without
from ..hetero import HeteroGraph, is_hetero, open_hetero
from ..inputs import graph_of, places_in, seeds_of, times_of
from .collate import Collate
from .options import Settings


def opened(graph: Any, typed: bool = False) -> tuple[Graph | HeteroGraph, bool]:
    """The graph, which is opened if it is a path, and whether it was; `typed` ones alone or all."""
    if isinstance(graph, HeteroGraph):
        return graph, False
    found = open_hetero(graph) if typed or is_hetero(graph) else graph_of(graph)
    return found, found is not graph


class LoaderInput(ABC):
    """A graph, the seeds of an epoch, and what batches of them have.

    `graph` is closed with this if it is `owned`; `of_seeds` is the graph of the seeds' nodes.
    """

    gathered_on_gpu = False
    """Whether kernels gather the features of what the CPU samples of this."""

    def __init__(
        self,
        graph: Graph | HeteroGraph,
        owned: bool,
        of_seeds: Graph,
        chosen: Any,
        input_time: Any,
        how: Settings,
    ) -> None:
        self.opened, self.graph, self._owned = graph, of_seeds, owned
        self.how = how
        self._chosen, self._input_time = chosen, input_time
        if not isinstance(chosen, str | None):
            self._chosen = self.seeds
        # What cannot be loaded is told at once.
        _ = self.seeds, self.collate, self.times

    @property
    def path(self) -> str:
        """Where the graph is."""
        return self.opened.path

    @property
    @abstractmethod
    def not_on_gpu(self) -> str | None:
        """What of this kernels do not sample; None if they do all."""

    @cached_property
    def seeds(self) -> NDArray[np.uint64]:
        """The seeds of an epoch, as vertex ids."""
        return seeds_of(self.graph, self._chosen)

    @cached_property
    @abstractmethod
    def collate(self) -> Collate:
        """What makes PyG's data of a batch's arrays."""

    @cached_property
    def times(self) -> NDArray[np.int64] | None:
        """The seeds' times: those given, or their own where nodes have times."""
        times, own = self._input_time, self.collate.node_times.get(self.collate.input_type)
        if times is None and own is not None:
            times = own.take(places_in(self.graph, self.seeds), mode="clip")
        return times_of(self.how.time_attr, times, len(self.seeds))

    def native(self) -> dict[str, Any]:
        """What the native part is told."""
        return self.how.native() | self._types() | {"held": self._held_bytes()}

    def _held_bytes(self) -> int:
        """Bytes that are held for as long as the loader is, beside seeds and their times."""
        return int(self.how.held) + (self.graph.ids.nbytes if self.graph.has_own_ids else 0)

    @abstractmethod
    def _types(self) -> dict[str, Any]:
        """What it is told by type: of `edges` fanouts and values, `features`, seeds' `inputs`."""

    def close(self) -> None:
        """Lets go of what this opened, and of files that are mapped."""
        self.__dict__.pop("collate", None)
        if self._owned:
            self.opened.close()

    def __getstate__(self) -> dict[str, Any]:
        return without(self.__dict__, "seeds", "collate", "times")
