"""Mini-batches of heterogeneous graphs, as `torch_geometric.data.HeteroData`."""

from __future__ import annotations

from ..arguments.calls import taking
from ..arguments.dataloader import take
from .node import NeighborLoader


@taking(take)
class HeteroNeighborLoader(NeighborLoader):
    """Batches of seeds of one type with sampled neighbours of all, as PyG's `HeteroData`.

    `graph` is an opened heterogeneous graph or its path. `num_neighbors` has one fanout a hop for
    every edge type, or a dictionary of such by edge type; -1 is all. `input_nodes` are a node type,
    or a type with ids, a mask or the name of one of its splits: `("paper", "train")`.

    A hop takes, for each edge type, neighbours of those nodes of the destination's type that the
    hop before found. A batch has, by node type, `x`, `y`, `n_id`, `num_nodes` and
    `num_sampled_nodes` (hops + 1 numbers); by edge type, `edge_index` (local to each end's type),
    `num_sampled_edges` (by hop) and `e_id`: the edge's place among those of its type as they were
    given, where values of them are stored, or else in ascending order of (destination, source). The
    seeds' type has `batch_size` and `input_id`.

    Features named `x` and labels named `y` are taken from all types that have them; `features` and
    `labels` name others. So it is with values of edges: `weight_attr` and `time_attr` are used in
    the edge types that have values of this name, of the others neighbours are drawn evenly;
    `edge_features` become `edge_attr`, and `edge_values` come in the edge types that have them.
    Where `time_attr` names times of nodes, neighbours of the types that have some are not later
    than their seed, and `input_time` is by default the seeds' own. Batches by time and disjoint
    ones have `batch` in every node type, and `seed_time` in that of the seeds; weights and times
    come under their own names. On the CPU only: `device="cuda"`
    moves the batches.
    Epochs, order, memory and errors are `NeighborLoader`'s, which gives the same batches of such a
    graph; this takes no other.
    """

    typed = True
