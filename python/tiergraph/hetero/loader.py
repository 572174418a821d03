"""Mini-batches of heterogeneous graphs, as `torch_geometric.data.HeteroData`.

`NeighborLoader` hands over to this where its graph has types.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _native, pyg
from ..errors import InputError
from ..gpu_loader import check_device
from ..inputs import LoaderOptions, check_sampling, labels_of, seeds_of
from ..loader import NeighborLoader
from ..sizes import to_bytes
from .graph import EdgeType, HeteroGraph, open_hetero

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

PathLike = str | os.PathLike[str]

Fanouts: TypeAlias = Sequence[int] | Mapping[EdgeType, Sequence[int]]

Seeds: TypeAlias = str | tuple[str, ArrayLike | str | None]


class HeteroNeighborLoader(NeighborLoader, hetero=True):
    """Batches of seeds of one type with sampled neighbours of all, as PyG's `HeteroData`.

    `graph` is an opened heterogeneous graph or its path. `num_neighbors` has one fanout a hop for
    every edge type, or a dictionary of such by edge type; -1 is all. `input_nodes` are a node type,
    or a type with ids, a mask or the name of one of its splits: `("paper", "train")`.

    A hop takes, for each edge type, neighbours of those nodes of the destination's type that the
    hop before found. A batch has, by node type, `x`, `y`, `n_id`, `num_nodes` and
    `num_sampled_nodes` (hops + 1 numbers); by edge type, `edge_index` (local to each end's type),
    `num_sampled_edges` (by hop) and `e_id`: the edge's place among those of its type in ascending
    order of (destination, source). The seeds' type has `batch_size` and `input_id`.

    Features named `x` and labels named `y` are taken from all types that have them; `features` and
    `labels` name others. Uniform sampling on the CPU only (`device="cuda"` moves the batches): no
    weights, times or disjoint batches.
    Epochs, order, memory and errors are `NeighborLoader`'s.
    """

    def __init__(
        self,
        graph: HeteroGraph | PathLike,
        num_neighbors: Fanouts,
        batch_size: int = 1,
        input_nodes: Seeds | None = None,
        *,
        shuffle: bool = False,
        drop_last: bool = False,
        replace: bool = False,
        subgraph_type: str = "directional",
        transform: Callable[[HeteroData], HeteroData] | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        check_sampling(replace, subgraph_type)
        options = _supported(options)
        pyg.geometric("data")
        self.typed = graph if isinstance(graph, HeteroGraph) else open_hetero(graph)
        self.input_type, chosen = _input(self.typed, input_nodes)
        self.graph = self.typed[self.input_type]
        self.seeds = seeds_of(self.graph, chosen)
        self.batch_size = int(batch_size)
        self.transform = transform
        self.epoch = 0
        self.last_epoch = {}
        self._gpu = None
        self._drop_last = drop_last
        self._labels_of = _labels(self.typed, options.get("labels"))
        memory = options.get("memory")
        native = options | {
            "num_neighbors": [],
            "fanouts": fanouts_of(num_neighbors, self.typed.edge_types),
            "node_features": _features(self.typed, options),
            "features": None,
            "input": self.input_type,
            "batch_size": self.batch_size,
            "shuffle": bool(shuffle),
            "drop_last": bool(drop_last),
            "disjoint": False,
            "memory": to_bytes(self.typed.memory if memory is None else memory),
        }
        device = options.get("device") or "cpu"
        check_device(device)
        if device != "cpu":
            self._move_to(device, "the GPU's sampler has no graphs of several types yet")
        self._typed_native = _native.HeteroLoader(self.typed.path, json.dumps(native), self.seeds)

    def batches(self, first: int = 0) -> Iterator[HeteroData]:
        """Begins the next epoch at its batch `first`, where an interrupted one was."""
        epoch = self.epoch
        self.epoch += 1
        return self._handed_over(self._typed_native.epoch(epoch, first), self.to_data)

    def kept(self) -> dict[str, Any]:
        """What is kept in memory: pages of neighbours and rows of features, of how many."""
        return self._with_fallback(json.loads(self._typed_native.kept()))

    def to_data(self, native: Any) -> HeteroData:
        """PyG's `HeteroData` over the arrays of a batch."""
        tensor = pyg.torch().from_numpy
        data: HeteroData = pyg.geometric("data").HeteroData()
        for name, nodes in zip(self.typed.node_types, native["nodes"], strict=True):
            store = data[name]
            store.n_id = tensor(nodes["n_id"])
            store.num_nodes = len(nodes["n_id"])
            if nodes["x"] is not None:
                store.x = tensor(nodes["x"])
            if name in self._labels_of:
                store.y = tensor(self._labels_of[name][nodes["n_id"]])
            store.num_sampled_nodes = nodes["num_sampled_nodes"]
        for edge_type, edges in zip(self.typed.edge_types, native["edges"], strict=True):
            store = data[edge_type]
            store.edge_index, store.e_id = tensor(edges["edge_index"]), tensor(edges["e_id"])
            store.num_sampled_edges = edges["num_sampled_edges"]
        data[self.input_type].input_id = tensor(native["input_id"])
        data[self.input_type].batch_size = native["batch_size"]
        return data if self.transform is None else self.transform(data)


def fanouts_of(given: Any, edge_types: Sequence[EdgeType]) -> list[list[int]]:
    """The fanouts of each edge type: lists of one length."""
    if hasattr(given, "get_values"):
        # PyG's `NumNeighbors`.
        given = given.get_values(list(edge_types))
    if not isinstance(given, Mapping):
        return [[int(count) for count in given] for _ in edge_types]
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
    fanouts = [[int(count) for count in given[named[edge_type]]] for edge_type in edge_types]
    if len({len(hops) for hops in fanouts}) > 1:
        lengths = ", ".join(str(len(hops)) for hops in fanouts)
        raise InputError.of(
            "use", "num_neighbors", expected="as many hops for every edge type", got=lengths
        )
    return fanouts


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
        )
    return node_type, chosen


def _supported(options: Any) -> Any:
    """The options, without those that mean nothing here; refuses those that would."""
    plain: dict[str, Any] = {
        "disjoint": False,
        "temporal_strategy": "uniform",
        "direction": "in",
    }
    for name, default in plain.items():
        if options.get(name) not in (None, default):
            raise InputError.of(
                f"sample a heterogeneous graph with {name}", options[name], expected=default
            )
    nodes_alone = ("weight_attr", "time_attr", "input_time", "edge_features")
    for name in (*nodes_alone, "device_memory", "multiprocessors"):
        if options.get(name) is not None:
            raise InputError.of("sample a heterogeneous graph with", name, expected="none")
    known = LoaderOptions.__annotations__
    passed_over = (*plain, "weight_attr", "time_attr", "input_time")
    for name in options:
        if name not in known and name not in passed_over:
            raise TypeError(f"unknown option `{name}`: the options are {', '.join(known)}")
    return {name: value for name, value in options.items() if name not in passed_over}


def _features(graph: HeteroGraph, options: Any) -> list[str | None]:
    """Which features of each node type batches come with."""
    name = options.get("features", "x")
    has = [name in graph.node_info(node_type)["features"] for node_type in graph.node_types]
    if "features" in options and name is not None and not any(has):
        raise InputError.of("use the features", name, expected="those of a node type", got="none")
    return [name if here else None for here in has]


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
