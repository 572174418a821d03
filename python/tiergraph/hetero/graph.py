"""Opened heterogeneous graphs: types of nodes and of edges in one directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..arguments.calls import checked, checked_class
from ..errors import InputError
from ..graph import Graph, open
from ..handles import was_closed

PathLike = str | os.PathLike[str]

EdgeType: TypeAlias = tuple[str, str, str]
"""Source, relation, destination: messages go from the first to the last."""


@checked
def open_hetero(path: PathLike, *, memory: int | str | None = None) -> HeteroGraph:
    """Opens the heterogeneous graph `path`, which `build_hetero` wrote.

    `memory` (`"2GiB"` or bytes) is what its loaders hold, unless they are told otherwise. Reads the
    manifests. Raises `InputError` for a path without such a graph, `FormatError` for damage.
    """
    return HeteroGraph(os.fspath(path), memory)


def is_hetero(graph: object) -> bool:
    """Whether this is a heterogeneous graph, or the path of one."""
    if isinstance(graph, str | os.PathLike):
        return _native.is_hetero(os.fspath(graph))
    return isinstance(graph, HeteroGraph)


@checked_class
class HeteroGraph:
    """A graph with types of nodes and edges, on disk; made by `tiergraph.open_hetero`.

    Nodes of a type are numbered from 0. `graph["paper"]` has a type's `features`, `labels` and
    `splits`, as an opened `Graph` without edges.
    """

    def __init__(self, path: str, memory: int | str | None = None) -> None:
        self.path = path
        self.memory = memory
        self._info: dict[str, Any] = json.loads(_native.hetero_info(path))
        self._opened: dict[str, Graph] = {}
        self._closed = False

    def close(self) -> None:
        """Closes the graphs of its node types."""
        for graph in self._opened.values():
            graph.close()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"path": os.path.abspath(self.path), "_opened": {}}

    def __repr__(self) -> str:
        nodes = ", ".join(f"{name}: {count:,}" for name, count in self.num_nodes_dict.items())
        return f"<HeteroGraph {self.path}: {nodes}; {len(self.edge_types)} edge types>"

    def __getitem__(self, node_type: str) -> Graph:
        """What belongs to the nodes of a type."""
        if node_type not in self._opened:
            if self._closed:
                raise was_closed("graph", self.path)
            folder = self.node_info(node_type)["graph"]
            path = Path(self.path) / folder
            self._opened[node_type] = open(path, memory=self.memory, threads=1)
        return self._opened[node_type]

    def info(self) -> dict[str, Any]:
        """What the manifests say of every type: counts, features, labels, splits, bytes."""
        return self._info

    def node_info(self, node_type: str) -> dict[str, Any]:
        """What the manifests say of a node type."""
        for info in self._info["node_types"]:
            if info["name"] == node_type:
                return dict(info)
        names = ", ".join(self.node_types)
        raise InputError.of("find the node type", node_type, expected=f"one of {names}")

    def edge_info(self, edge_type: EdgeType) -> dict[str, Any]:
        """What the manifests say of an edge type: counts, values and features of its edges."""
        for info in self._info["edge_types"]:
            if tuple(info["name"]) == tuple(edge_type):
                return dict(info)
        names = ", ".join(map(str, self.edge_types))
        raise InputError.of("find the edge type", edge_type, expected=f"one of {names}")

    def edge_batches(self, edge_type: EdgeType) -> Iterator[tuple[NDArray[Any], ...]]:
        """All edges of a type in batches `(src, dst)`, numbered within the types of its ends.

        uint64 of shape (n,), as `Graph.edge_batches` has them.
        """
        source, _, destination = edge_type
        # Destinations come first in the graph of the edges.
        base = 0 if source == destination else self.num_nodes_dict[destination]
        path = Path(self.path) / self.edge_info(edge_type)["graph"]
        with open(path, memory=self.memory, threads=1) as graph:
            for src, dst, *_ in graph.edge_batches():
                yield src - np.uint64(base), dst

    @cached_property
    def node_types(self) -> list[str]:
        """The types of nodes."""
        return [info["name"] for info in self._info["node_types"]]

    @cached_property
    def edge_types(self) -> list[EdgeType]:
        """The types of edges."""
        return [(info["name"][0], *info["name"][1:]) for info in self._info["edge_types"]]

    def metadata(self) -> tuple[list[str], list[EdgeType]]:
        """Both, as `torch_geometric.nn.to_hetero` takes them."""
        return self.node_types, self.edge_types

    @property
    def num_nodes_dict(self) -> dict[str, int]:
        """The number of nodes of each type."""
        return {info["name"]: info["vertices"] for info in self._info["node_types"]}

    @property
    def num_edges_dict(self) -> dict[EdgeType, int]:
        """The number of edges of each type."""
        counts = (info["edges"] for info in self._info["edge_types"])
        return dict(zip(self.edge_types, counts, strict=True))
