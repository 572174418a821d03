"""A graph on disk as PyG's `FeatureStore` and `GraphStore`, for code that takes the two as a tuple.

Vertices are numbered from 0 in the order of `graph.ids`, as PyG does it. Importing this module
imports PyTorch and PyG.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import pyg
from .arguments.calls import checked, checked_class
from .errors import InputError
from .graph import Graph, open
from .inputs import PathLike, positions_of
from .loaders.node import NeighborLoader

_data: Any = pyg.geometric("data")
EdgeLayout: Any = pyg.geometric("data.graph_store").EdgeLayout

COPIED_TOGETHER = 1 << 14
"""Vertices whose neighbours are copied at a time."""


@checked_class
class FeatureStore(_data.FeatureStore):  # type: ignore[misc]  # PyG's types are not checked
    """A graph's features, labels and masks of splits by name, read as they are asked for.

    `store["x", index]` is `store.get_tensor(group_name=None, attr_name="x", index=index)`: float32
    of shape (n, D) from the pages that hold these rows, each read once and checked. `index` is a
    tensor of positions or a mask, a slice, a number, or None for all. Nothing can be
    put or removed: `tiergraph.add_features` writes.
    """

    graph: Graph

    def __init__(self, graph: Graph | PathLike) -> None:
        super().__init__()
        # PyG's store is a dictionary, whose attributes are its own.
        self.__dict__["graph"] = graph if isinstance(graph, Graph) else open(graph)

    def get_all_tensor_attrs(self) -> list[Any]:
        """What there is, as PyG's `TensorAttr`."""
        graph = self.graph
        names = [*graph.features, *graph.labels, *map(_mask, graph.splits)]
        return [_data.TensorAttr(group_name=None, attr_name=name) for name in names]

    def _get_tensor(self, attr: Any) -> Any:
        graph, name = self.graph, attr.attr_name
        index = _positions(attr.index, graph.vertices)
        tensor = pyg.torch().from_numpy
        if name in graph.features:
            ids = graph.ids[_all(graph) if index is None else index]
            return tensor(graph.features[name].read(ids))
        values = self._values(name)
        if values is None:
            names = ", ".join(a.attr_name for a in self.get_all_tensor_attrs()) or "no tensors"
            raise InputError.of("read the tensor", name, expected=f"one of {names}")
        return tensor(np.array(values if index is None else values[index]))

    def _values(self, name: str) -> NDArray[Any] | None:
        """Labels, or the mask of a split."""
        graph = self.graph
        if name in graph.labels:
            return graph.labels[name]
        split = {_mask(split): split for split in graph.splits}.get(name)
        if split is None:
            return None
        mask = np.zeros(graph.vertices, dtype=bool)
        mask[positions_of(graph.splits[split])] = True
        return mask

    def _get_tensor_size(self, attr: Any) -> tuple[int, ...] | None:
        graph, name = self.graph, attr.attr_name
        if name in graph.features:
            return tuple(graph.features[name].shape)
        values = self._values(name)
        return None if values is None else tuple(values.shape)

    def _put_tensor(self, tensor: Any, attr: Any) -> bool:
        raise _written_once(self.graph, "features")

    def _remove_tensor(self, attr: Any) -> bool:
        raise _written_once(self.graph, "features")


@checked_class
class GraphStore(_data.GraphStore):  # type: ignore[misc]  # PyG's types are not checked
    """A graph's edges as PyG's `GraphStore`: one type of edges, `edge_type`, in `coo` and `csc`.

    PyG asks for all edges at once, so `get_edge_index` brings them to memory: 8 bytes an edge and
    vertex, twice an undirected edge. Loaders of tiergraph's own do not.
    """

    graph: Graph
    edge_type: tuple[str, str, str] | None

    def __init__(
        self, graph: Graph | PathLike, edge_type: tuple[str, str, str] | None = None
    ) -> None:
        super().__init__()
        self.__dict__["graph"] = graph if isinstance(graph, Graph) else open(graph)
        self.__dict__["edge_type"] = edge_type

    def get_all_edge_attrs(self) -> list[Any]:
        """The edges as they are stored: by destination."""
        size = (self.graph.vertices, self.graph.vertices)
        return [
            _data.EdgeAttr(edge_type=self.edge_type, layout=layout, is_sorted=True, size=size)
            for layout in (EdgeLayout.CSC, EdgeLayout.COO)
        ]

    def _get_edge_index(self, edge_attr: Any) -> tuple[Any, Any] | None:
        """(row, column) for `coo`, (row, column pointers) for `csc`; int64."""
        if edge_attr.edge_type != self.edge_type or edge_attr.layout == EdgeLayout.CSR:
            return None
        sources, degrees = self._edges()
        torch = pyg.torch()
        if edge_attr.layout == EdgeLayout.CSC:
            return sources, torch.cat([degrees.new_zeros(1), degrees.cumsum(0)])
        return sources, torch.arange(len(degrees)).repeat_interleave(degrees)

    def _edges(self) -> tuple[Any, Any]:
        """Sources of all edges, by destination, and how many edges enter each vertex."""
        graph, torch = self.graph, pyg.torch()
        degrees = torch.from_numpy(graph.degrees("in").astype(np.int64))
        sources = torch.empty(int(degrees.sum()), dtype=torch.int64)
        filled = 0
        loader = NeighborLoader(
            graph,
            [-1],
            batch_size=COPIED_TOGETHER,
            rank=0,
            world_size=1,
            features=None,
            edge_values=None,
            window=1,
            prefetch=0,
            presample=0,
        )
        for batch in loader:
            places = np.searchsorted(graph.ids, batch.n_id.numpy().view(np.uint64))
            found = torch.from_numpy(places)[batch.edge_index[0]]
            sources[filled : filled + len(found)] = found
            filled += len(found)
        return sources, degrees

    def _put_edge_index(self, edge_index: Any, edge_attr: Any) -> bool:
        raise _written_once(self.graph, "edges")

    def _remove_edge_index(self, edge_attr: Any) -> bool:
        raise _written_once(self.graph, "edges")


def _positions(index: Any, vertices: int) -> NDArray[np.int64] | None:
    """Positions from whatever PyG indexes by; None for all."""
    if index is None or (isinstance(index, slice) and index == slice(None)):
        return None
    if isinstance(index, slice):
        return np.arange(*index.indices(vertices))
    positions = np.atleast_1d(np.asarray(index))
    if positions.dtype == np.bool_:
        if positions.shape != (vertices,):
            expected = f"a mask of shape ({vertices},), a value a vertex"
            raise InputError.of("read rows", expected=expected, got=f"one of {positions.shape}")
        positions = np.flatnonzero(positions)
    positions = positions.astype(np.int64)
    if positions.size and not -vertices <= positions.min() <= positions.max() < vertices:
        raise InputError.of(
            "read rows", expected=f"positions below {vertices}", got=int(positions.max())
        )
    return positions


def _all(graph: Graph) -> slice:
    return slice(0, graph.vertices)


def _mask(split: str) -> str:
    """What PyG calls a split."""
    return f"{split}_mask"


def _written_once(graph: Graph, what: str) -> InputError:
    hint = {"features": "tiergraph.add_features adds to a graph", "edges": "tiergraph.build"}[what]
    return InputError.of("change the " + what + " of", graph.path, got="a store", hint=hint)


StorePair = tuple[FeatureStore, GraphStore]


@checked
def stores(graph: Graph | PathLike) -> StorePair:
    """Both, over one opened graph: what PyG's loaders take in place of `Data`."""
    opened = graph if isinstance(graph, Graph) else open(graph)
    return FeatureStore(opened), GraphStore(opened)
