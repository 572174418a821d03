"""From the arrays of a batch to PyG's data: what a loader does beside what makes its batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from .. import _native, pyg
from ..hetero import EdgeType
from ..inputs import for_losses

Finish: TypeAlias = Callable[[Any, Any], Any]
"""From a native batch and its data to what is handed over."""

ByType: TypeAlias = Mapping[str | None, NDArray[Any]]
"""Values in the user's order by node type: by None in an ordinary graph."""


@dataclass(frozen=True)
class Collate:
    """Batches as PyG's `Data`; of a graph with several types as `HeteroData`."""

    node_types: Sequence[str | None]
    """None alone in an ordinary graph, as are `edge_types`: its batches have one store for all."""
    edge_types: Sequence[EdgeType | None]
    input_type: str | None
    """The type of the seeds."""
    labels: ByType
    node_times: ByType
    """Where times are those of nodes."""
    masks: Mapping[str | None, Mapping[str, NDArray[Any]]]
    """Masks of splits by their names in batches, by node type."""
    disjoint: bool
    weight_attr: str | None
    time_attr: str | None

    def __call__(self, native: _native.Batch, *, known: bool = True) -> Any:
        """The data over the arrays of a batch; without what is `known` of its nodes if so told."""
        tensor, kinds = pyg.torch().from_numpy, pyg.geometric("data")
        data = kinds.Data() if self.input_type is None else kinds.HeteroData()

        def store(of: str | EdgeType | None) -> Any:
            return data if of is None else data[of]

        for name, nodes in zip(self.node_types, native["nodes"], strict=True):
            to, places = store(name), nodes["position"]
            to.num_nodes, to.num_sampled_nodes = len(places), nodes["num_sampled_nodes"]
            if known:
                to.n_id = tensor(nodes["n_id"])
                if nodes["x"] is not None:
                    to.x = tensor(nodes["x"])
                if nodes["degree"] is not None:
                    to.degree = tensor(nodes["degree"])
                if name in self.labels:
                    to.y = tensor(for_losses(self.labels[name][places]))
                for mask, values in self.masks[name].items():
                    to[mask] = tensor(values[places])
            if name in self.node_times:
                to[self.time_attr] = tensor(self.node_times[name][places])
            if self.disjoint:
                to.batch = tensor(nodes["batch"])
        for edge_type, edges in zip(self.edge_types, native["edges"], strict=True):
            to = store(edge_type)
            to.edge_index, to.e_id = tensor(edges["edge_index"]), tensor(edges["e_id"])
            to.num_sampled_edges = edges["num_sampled_edges"]
            if edges["edge_attr"] is not None:
                to.edge_attr = tensor(edges["edge_attr"])
            for name, values in edges["values"].items():
                to[name] = tensor(values)
            if edges["weight"] is not None:
                to[self.weight_attr] = tensor(edges["weight"])
            if edges["time"] is not None and not self.node_times:
                to[self.time_attr] = tensor(edges["time"])
        seeds = store(self.input_type)
        seeds.input_id, seeds.batch_size = tensor(native["input_id"]), native["batch_size"]
        if self.time_attr is not None:
            seeds.seed_time = tensor(native["seed_time"])
        return data
