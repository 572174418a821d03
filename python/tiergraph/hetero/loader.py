"""Mini-batches of heterogeneous graphs, as `torch_geometric.data.HeteroData`.

`NeighborLoader` hands over to this where its graph has types.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _native, pyg
from ..batches import Source
from ..calls import taking
from ..checks import arguments, one
from ..dataloader import take
from ..epochs import Loader
from ..errors import InputError
from ..gpu_loader import check_device
from ..handles import Handle, without
from ..inputs import (
    Chosen,
    LoaderOptions,
    Placement,
    Sampling,
    check_sampling,
    labels_of,
    not_a_batch_size,
    seeds_of,
)
from ..loader import NeighborLoader
from ..ranks import Rank
from ..shrinking import warn_of_shrinking
from ..sizes import to_bytes
from .graph import EdgeType, HeteroGraph, open_hetero

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

PathLike = str | os.PathLike[str]

Fanouts: TypeAlias = Sequence[int] | Mapping[EdgeType, Sequence[int]]

Seeds: TypeAlias = str | tuple[str, ArrayLike | str | None]


@taking(take)
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

    @arguments(num_neighbors=None)
    def __init__(
        self,
        graph: HeteroGraph | PathLike,
        num_neighbors: Fanouts,
        input_nodes: Seeds | None = None,
        input_time: None = None,
        replace: bool = False,
        subgraph_type: str = "directional",
        disjoint: bool = False,
        temporal_strategy: Literal["uniform"] = "uniform",
        time_attr: None = None,
        weight_attr: None = None,
        transform: Callable[[HeteroData], HeteroData] | None = None,
        *,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        seed: int = 0,
        memory: int | str | None = None,
        threads: int | None = None,
        window: int | None = None,
        prefetch: int | None = None,
        placement: Placement = "unified",
        share_pages: bool = True,
        presample: int | None = None,
        direction: Literal["in"] = "in",
        io: str = "auto",
        features: Chosen = True,
        labels: str | None = None,
        edge_features: None = None,
        device: str = "cpu",
        device_memory: None = None,
        multiprocessors: None = None,
    ) -> None:
        check_sampling(replace, subgraph_type)
        sampling = Sampling(
            num_neighbors,
            batch_size=batch_size,
            shuffle=shuffle,
            drop_last=drop_last,
            disjoint=disjoint,
            weight_attr=weight_attr,
            time_attr=time_attr,
            temporal_strategy=temporal_strategy,
            rank=Rank(rank, world_size),
        )
        options = LoaderOptions(
            seed=seed,
            memory=memory,
            threads=threads,
            window=window,
            prefetch=prefetch,
            placement=placement,
            share_pages=share_pages,
            presample=presample,
            direction=direction,
            io=io,
            features=features,
            labels=labels,
            edge_features=edge_features,
            device=device,
            device_memory=device_memory,
            multiprocessors=multiprocessors,
        )
        _check_supported(input_time, sampling, options)
        self.transform = transform
        self._set_up_typed(graph, input_nodes, sampling, options)

    def _set_up_typed(
        self, graph: Any, input_nodes: Any, how: Sampling, options: LoaderOptions
    ) -> None:
        """Looks at all that the loader was told, and opens the graph with it."""
        pyg.geometric("data")
        check_device(options.device or "cpu")
        self._how, self._options = how, options
        self._owns_graph = not isinstance(graph, HeteroGraph)
        self.typed = graph if isinstance(graph, HeteroGraph) else open_hetero(graph)
        self.input_type, self._input_nodes = _input(self.typed, input_nodes)
        of_type = self.typed[self.input_type]
        self.seeds = seeds_of(of_type, self._input_nodes)
        Loader.__init__(self, of_type, how.batch_size, how.drop_last, how.rank)
        if not isinstance(self._input_nodes, str | None):
            self._input_nodes = self.seeds
        self._typed_handle: Handle[_native.HeteroLoader] = Handle("loader", self.typed.path)
        # What cannot be loaded is told at once.
        _ = self._labels_of, self._typed_part

    @cached_property
    def _labels_of(self) -> dict[str, NDArray[Any]]:
        """Labels by node type."""
        return _labels(self.typed, self._options.labels)

    @property
    def _typed_part(self) -> _native.HeteroLoader:
        """What makes batches, opened in this process."""
        return self._typed_handle.get(self._open_typed)

    def _open_typed(self) -> _native.HeteroLoader:
        memory = self._options.memory
        native = self._how.native() | self._options.native()
        native |= {
            "num_neighbors": [],
            "fanouts": fanouts_of(self._how.num_neighbors, self.typed.edge_types),
            "node_features": _features(self.typed, self._options.features),
            "features": None,
            "input": self.input_type,
            "memory": to_bytes(self.typed.memory if memory is None else memory),
        }
        device = self._options.device or "cpu"
        if device != "cpu":
            self._move_to(device, "the GPU's sampler has no graphs of several types yet")
            self._typed_handle.device = device
        made = _native.HeteroLoader(self.typed.path, json.dumps(native), self.seeds)
        warn_of_shrinking(json.loads(made.kept()))
        return made

    def _begin(self, epoch: int, first: int, rank: tuple[int, int]) -> Source:
        return self._prepared(self._typed_part.epoch(epoch, first, *rank), self.to_data)

    def kept(self) -> dict[str, Any]:
        """What is kept in memory: pages of neighbours and rows of features, of how many."""
        return self._with_fallback(json.loads(self._typed_part.kept()))

    def _release(self) -> None:
        self._typed_handle.close()
        if self._owns_graph:
            self.typed.close()

    def __getstate__(self) -> dict[str, Any]:
        return without(super().__getstate__(), "_labels_of")

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


def _check_supported(input_time: Any, how: Sampling, options: LoaderOptions) -> None:
    """Refuses what means nothing for graphs of several types."""
    usual = {
        "disjoint": (how.disjoint, False),
        "temporal_strategy": (how.temporal_strategy, "uniform"),
        "direction": (options.direction, "in"),
    }
    for name, (given, default) in usual.items():
        if given not in (None, default):
            raise InputError.of(
                f"sample a heterogeneous graph with {name}", given, expected=str(default)
            )
    if input_time is not None and np.ndim(input_time) == 0:
        raise not_a_batch_size("input_time", "None", input_time)
    nothing = {
        "weight_attr": how.weight_attr,
        "time_attr": how.time_attr,
        "input_time": input_time,
        "edge_features": None if options.edge_features is True else options.edge_features,
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
