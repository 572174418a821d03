"""A heterogeneous graph as loaders take batches of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments.checks import one
from ..arguments.sizes import to_bytes
from ..errors import InputError
from ..hetero import EdgeType, HeteroGraph
from ..inputs import (
    Chosen,
    edge_features_in,
    edge_values_in,
    labels_of,
    masks_of,
    not_a_batch_size,
)
from .collate import ByType, Collate
from .given import LoaderInput
from .options import Settings


class TypedInput(LoaderInput):
    """A heterogeneous graph, the seeds of one of its types, and what batches of them have."""

    not_on_gpu = "the GPU's sampler has no graphs of several types yet"
    opened: HeteroGraph

    def __init__(
        self,
        graph: HeteroGraph,
        owned: bool,
        chosen: Any,
        input_time: Any,
        how: Settings,
        ends: Sequence[str] = (),
    ) -> None:
        """`ends` are the types of seeds that are numbered through them, and not told by a type."""
        _check_supported(how)
        if input_time is not None and np.ndim(input_time) == 0:
            raise not_a_batch_size("input_time", "None", input_time)
        self._edges = _edges(graph, how)
        self._inputs, self._numbered = list(ends), bool(ends)
        if not ends:
            name, chosen = _input(graph, chosen)
            self._inputs = [name]
        of_seeds = graph[self._inputs[0]]
        super().__init__(graph, owned, of_seeds, chosen, input_time, how)

    @cached_property
    def seeds(self) -> NDArray[np.uint64]:
        """The seeds of an epoch, as nodes of their type."""
        if self._numbered:
            return np.ascontiguousarray(self._chosen, dtype=np.uint64)
        return super().seeds

    @cached_property
    def collate(self) -> Collate:
        """What makes PyG's data of a batch's arrays."""
        typed, time = self.opened, self.how.time_attr
        timed = [t for t in typed.node_types if time in typed.node_info(t)["node_times"]]
        return Collate(
            typed.node_types,
            typed.edge_types,
            self._inputs[0],
            _labels(typed, self.how.labels),
            {name: np.asarray(typed[name].labels[time]) for name in timed if time is not None},
            {name: masks_of(typed[name]) for name in typed.node_types},
            disjoint=self.how.has_trees,
            **self.how.values(),
        )

    def native(self) -> dict[str, Any]:
        """What the native part is told."""
        native = super().native()
        if native["memory"] is None:
            native["memory"] = to_bytes(self.opened.memory)
        return native

    def _types(self) -> dict[str, Any]:
        fanouts = fanouts_of(self.how.num_neighbors, self.opened.edge_types)
        return {
            "edges": [
                {"fanouts": hops} | used for hops, used in zip(fanouts, self._edges, strict=True)
            ],
            "features": _features(self.opened, self.how.features),
            "inputs": [self.opened.node_types.index(name) for name in self._inputs],
        }


def _edges(graph: HeteroGraph, how: Settings) -> list[dict[str, Any]]:
    """What of the values of each edge type's edges batches are made of, by name.

    An edge type without values of a name is sampled as if there were no such name. Raises
    `InputError` for names that no type has.
    """
    infos = [graph.edge_info(edge_type) for edge_type in graph.edge_types]

    def named(what: str, name: str | None, kind: str) -> list[str | None]:
        has = [{n for n, of in info["edge_values"].items() if of == kind} for info in infos]
        return _used(what, name, has)

    weights = named("weights", how.weight_attr, "f32")
    chosen = how.edge_features
    if isinstance(chosen, str):
        _used("features of edges", chosen, [set(info["edge_features"]) for info in infos])
    features = [edge_features_in(info, chosen) for info in infos]
    times = named("times", how.time_attr, "i64")
    of_sources = [graph.node_info(source)["node_times"] for source, _, _ in graph.edge_types]
    values = edge_values_in(list(zip(infos, of_sources, strict=True)), how.edge_values)
    return [
        {
            "weight_attr": weight,
            "time_attr": time,
            "features": of,
            "values": [name for name in names if name not in (weight, time)],
        }
        for weight, time, of, names in zip(weights, times, features, values, strict=True)
    ]


def _used(
    what: str, name: str | None, has: Sequence[Collection[str]], of: str = "edges"
) -> list[str | None]:
    """The name for each type that has it; refuses one that none of them has."""
    if name is not None and not any(name in names for names in has):
        known = sorted({known for names in has for known in names})
        expected = f"one of {', '.join(known)}" if known else f"a graph whose {of} have some"
        raise InputError.of(f"use the {what}", name, expected=expected)
    return [name if name in names else None for names in has]


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


def _check_supported(how: Settings) -> None:
    """Refuses what means nothing for graphs of several types."""
    if how.direction not in (None, "in"):
        raise InputError.of(
            "sample a heterogeneous graph with direction", how.direction, expected="in"
        )
    for name in ("device_memory", "multiprocessors"):
        if getattr(how, name) is not None:
            raise InputError.of("sample a heterogeneous graph with", name, expected="none")


def _features(graph: HeteroGraph, chosen: Chosen) -> list[str | None]:
    """Which features of each node type batches come with."""
    has = [graph.node_info(node_type)["features"] for node_type in graph.node_types]
    if isinstance(chosen, str):
        return _used("features", chosen, has, "nodes")
    return ["x" if chosen and "x" in names else None for names in has]


def _labels(graph: HeteroGraph, chosen: Chosen) -> ByType:
    """The labels of the node types that have some of this name, or of `y`."""
    if chosen is False:
        return {}
    name = chosen if isinstance(chosen, str) else None
    has = [graph.node_info(node_type)["labels"] for node_type in graph.node_types]
    _used("labels", name, has, "nodes")
    with_some = (
        t for t, names in zip(graph.node_types, has, strict=True) if (name or "y") in names
    )
    found = {node_type: labels_of(graph[node_type], name) for node_type in with_some}
    return {node_type: of for node_type, of in found.items() if of is not None}
