"""From the arrays of a batch to PyG's data: what a loader does beside what makes its batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from .. import _native, pyg

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData

Collate: TypeAlias = Callable[[Any], Any]
"""From a native batch to what is handed over."""


@dataclass(frozen=True)
class NodeCollate:
    """Batches of an ordinary graph, as `Data`. Values are by vertex, in the user's order."""

    labels: NDArray[Any] | None
    node_times: NDArray[Any] | None
    weight_attr: str | None
    time_attr: str | None

    def __call__(self, native: _native.Batch) -> Data:
        """PyG's `Data` over the arrays of a batch."""
        tensor = pyg.torch().from_numpy
        data, (nodes,) = self.sampled(native), native["nodes"]
        if nodes["x"] is not None:
            data.x = tensor(nodes["x"])
        if self.labels is not None:
            data.y = tensor(self.labels[nodes["position"]])
        data.n_id, data.degree = tensor(nodes["n_id"]), tensor(nodes["degree"])
        return data

    def sampled(self, native: _native.Batch) -> Data:
        """PyG's `Data` of a batch, but for what its nodes are."""
        tensor = pyg.torch().from_numpy
        (nodes,), (edges,) = native["nodes"], native["edges"]
        data: Data = pyg.geometric("data").Data(edge_index=tensor(edges["edge_index"]))
        data.num_nodes = len(nodes["n_id"])
        if edges["edge_attr"] is not None:
            data.edge_attr = tensor(edges["edge_attr"])
        if self.weight_attr is not None:
            data[self.weight_attr] = tensor(edges["weight"])
        if self.time_attr is not None:
            of_nodes = self.node_times
            times = edges["time"] if of_nodes is None else of_nodes[nodes["position"]]
            data[self.time_attr] = tensor(times)
            data.seed_time = tensor(native["seed_time"])
        data.e_id, data.input_id = tensor(edges["e_id"]), tensor(native["input_id"])
        if len(nodes["batch"]):
            data.batch = tensor(nodes["batch"])
        data.batch_size = native["batch_size"]
        data.num_sampled_nodes = nodes["num_sampled_nodes"]
        data.num_sampled_edges = edges["num_sampled_edges"]
        return data


@dataclass(frozen=True)
class TypedCollate:
    """Batches of a heterogeneous graph, as `HeteroData`."""

    node_types: Sequence[str]
    edge_types: Sequence[tuple[str, str, str]]
    labels: Mapping[str, NDArray[Any]]
    """By node type."""
    node_times: Mapping[str, NDArray[Any]]
    """By node type, where times are those of nodes."""
    input_type: str
    """The type of the seeds."""
    disjoint: bool
    weight_attr: str | None
    time_attr: str | None

    def __call__(self, native: _native.Batch) -> HeteroData:
        """PyG's `HeteroData` over the arrays of a batch."""
        tensor = pyg.torch().from_numpy
        data: HeteroData = pyg.geometric("data").HeteroData()
        for name, nodes in zip(self.node_types, native["nodes"], strict=True):
            store = data[name]
            store.n_id = tensor(nodes["n_id"])
            store.num_nodes = len(nodes["n_id"])
            if nodes["x"] is not None:
                store.x = tensor(nodes["x"])
            if name in self.labels:
                store.y = tensor(self.labels[name][nodes["n_id"]])
            if name in self.node_times:
                store[self.time_attr] = tensor(self.node_times[name][nodes["n_id"]])
            if self.disjoint:
                store.batch = tensor(nodes["batch"])
            store.num_sampled_nodes = nodes["num_sampled_nodes"]
        for edge_type, edges in zip(self.edge_types, native["edges"], strict=True):
            store = data[edge_type]
            store.edge_index, store.e_id = tensor(edges["edge_index"]), tensor(edges["e_id"])
            if edges["edge_attr"] is not None:
                store.edge_attr = tensor(edges["edge_attr"])
            if edges["weight"] is not None:
                store[self.weight_attr] = tensor(edges["weight"])
            if edges["time"] is not None and not self.node_times:
                store[self.time_attr] = tensor(edges["time"])
            store.num_sampled_edges = edges["num_sampled_edges"]
        seeds = data[self.input_type]
        seeds.input_id = tensor(native["input_id"])
        seeds.batch_size = native["batch_size"]
        if self.time_attr is not None:
            seeds.seed_time = tensor(native["seed_time"])
        return data
