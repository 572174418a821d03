"""A heterogeneous graph as loaders take batches of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments.checks import one
from ..arguments.sizes import to_bytes
from ..errors import InputError
from ..handles import without
from ..hetero import EdgeType, HeteroGraph, open_hetero
from ..inputs import Chosen, labels_of, not_a_batch_size, seeds_of, times_of
from .collate import TypedCollate
from .options import LoaderOptions, Sampling
from .values import ValuesUsed


class TypedInput:
    """A heterogeneous graph, the seeds of one of its types, and what batches of them have."""

    not_on_gpu = "the GPU's sampler has no graphs of several types yet"
    gathered_on_gpu = False

    def __init__(
        self,
        graph: Any,
        input_nodes: Any,
        input_time: Any,
        how: Sampling,
        options: LoaderOptions,
        ends: Sequence[str] = (),
    ) -> None:
        """`ends` are the types of seeds that are numbered through them, and not told by a type."""
        _check_supported(options)
        if input_time is not None and np.ndim(input_time) == 0:
            raise not_a_batch_size("input_time", "None", input_time)
        self._how, self._options, self._input_time = how, options, input_time
        self._owned = not isinstance(graph, HeteroGraph)
        self.typed = graph if isinstance(graph, HeteroGraph) else open_hetero(graph)
        self._values = ValuesUsed.of(self.typed, how, options)
        self._ends = list(ends)
        self.input_type, self._input_nodes = (
            (self._ends[0], input_nodes) if ends else _input(self.typed, input_nodes)
        )
        self.graph = self.typed[self.input_type]
        if not ends and not isinstance(self._input_nodes, str | None):
            self._input_nodes = self.seeds
        # What cannot be loaded is told at once.
        _ = self.seeds, self.collate, self.times

    @property
    def path(self) -> str:
        """Where the graph is."""
        return self.typed.path

    @cached_property
    def seeds(self) -> NDArray[np.uint64]:
        """The seeds of an epoch, as nodes of their type."""
        if self._ends:
            return np.ascontiguousarray(self._input_nodes, dtype=np.uint64)
        return seeds_of(self.graph, self._input_nodes)

    @cached_property
    def collate(self) -> TypedCollate:
        """What makes PyG's data of a batch's arrays."""
        how, typed = self._how, self.typed
        return TypedCollate(
            typed.node_types,
            typed.edge_types,
            labels=_labels(typed, self._options.labels),
            node_times=_node_times(typed, how.time_attr, self._values.timed),
            input_type=self.input_type,
            disjoint=how.has_trees,
            weight_attr=how.weight_attr,
            time_attr=how.time_attr,
        )

    @cached_property
    def times(self) -> NDArray[np.int64] | None:
        """The seeds' times: those given, or their own where nodes have times."""
        times, own = self._input_time, self.collate.node_times.get(self.input_type)
        if times is None and own is not None:
            times = own.take(self.seeds.astype(np.int64), mode="clip")
        return times_of(self._how.time_attr, times, len(self.seeds))

    def native(self) -> dict[str, Any]:
        """What the native part is told."""
        memory = self._options.memory
        return (
            self._how.native()
            | self._options.native()
            | {
                "num_neighbors": [],
                "features": None,
                "edge_features": None,
                "typed": {
                    "fanouts": fanouts_of(self._how.num_neighbors, self.typed.edge_types),
                    "node_features": _features(self.typed, self._options.features),
                    "edges": [used.native() for used in self._values.of_edges],
                    "inputs": self._ends or [self.input_type],
                },
                "memory": to_bytes(self.typed.memory if memory is None else memory),
            }
        )

    def close(self) -> None:
        """Lets go of what this opened."""
        if self._owned:
            self.typed.close()

    def __getstate__(self) -> dict[str, Any]:
        return without(self.__dict__, "seeds", "collate", "times")


def fanouts_of(given: Any, edge_types: Sequence[EdgeType]) -> list[list[int]]:
    """The fanouts of each edge type: lists of one length."""
    if hasattr(given, "get_values"):
        # PyG's `NumNeighbors`.
        given = given.get_values(list(edge_types))
    if not isinstance(given, Mapping):
        return [one("num_neighbors", given) for _ in edge_types]
    names = ", ".join(map(str, edge_types))
    named = {tuple(key.split("__")) if isinstance(key, str) else key: key for key in given}
    for edge_type, key in named.items():
        if edge_type not in edge_types:
            raise InputError.of(
                "use the key of num_neighbors", key, expected=f"one of the edge types {names}"
            )
    for edge_type in edge_types:
        if edge_type not in named:
            raise InputError.of(
                "sample along",
                edge_type,
                expected="fanouts for every edge type in `num_neighbors`",
                got="none for this one",
                hint="a list of zeros leaves an edge type out",
            )
    found = [one("num_neighbors", given[named[edge_type]]) for edge_type in edge_types]
    if len({len(hops) for hops in found}) > 1:
        lengths = ", ".join(str(len(hops)) for hops in found)
        raise InputError.of(
            "use", "num_neighbors", expected="as many hops for every edge type", got=lengths
        )
    return found


def _input(graph: HeteroGraph, given: Any) -> tuple[str, Any]:
    """The seeds' type, and which of its nodes: None for all."""
    node_type, chosen = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if not isinstance(node_type, str) or node_type not in graph.node_types:
        raise InputError.of(
            "use",
            "input_nodes",
            expected="a node type, or `(node type, ids, mask or split)`: "
            + ", ".join(graph.node_types),
            got=type(given).__name__ if not isinstance(node_type, str) else node_type,
            hint="the batch size goes by its name, as in PyG: `batch_size=…`"
            if isinstance(given, int)
            else None,
        )
    return node_type, chosen


def _check_supported(options: LoaderOptions) -> None:
    """Refuses what means nothing for graphs of several types."""
    if options.direction not in (None, "in"):
        raise InputError.of(
            "sample a heterogeneous graph with direction", options.direction, expected="in"
        )
    nothing = {
        "device_memory": options.device_memory,
        "multiprocessors": options.multiprocessors,
    }
    for name, given in nothing.items():
        if given is not None:
            raise InputError.of("sample a heterogeneous graph with", name, expected="none")


def _features(graph: HeteroGraph, chosen: Chosen) -> list[str | None]:
    """Which features of each node type batches come with."""
    name = chosen if isinstance(chosen, str) else "x"
    has = [name in graph.node_info(node_type)["features"] for node_type in graph.node_types]
    if isinstance(chosen, str) and not any(has):
        raise InputError.of("use the features", name, expected="those of a node type", got="none")
    return [name if here and chosen else None for here in has]


def _node_times(
    graph: HeteroGraph, name: str | None, timed: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """The times of the nodes of the types that have some of this name."""
    return {} if name is None else {t: np.asarray(graph[t].labels[name]) for t in timed}


def _labels(graph: HeteroGraph, name: str | None) -> dict[str, NDArray[Any]]:
    """The labels of the node types that have some of this name, or of `y`."""
    wanted = "y" if name is None else name
    types = [t for t in graph.node_types if wanted in graph.node_info(t)["labels"]]
    if name is not None and not types:
        raise InputError.of("use the labels", name, expected="those of a node type", got="none")
    labels = {node_type: labels_of(graph[node_type], wanted) for node_type in types}
    return {
        node_type: np.asarray(found) for node_type, found in labels.items() if found is not None
    }
