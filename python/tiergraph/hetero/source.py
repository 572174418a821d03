"""What `build_hetero` accepts: PyG's `HeteroData`, and nodes and edges by type."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments.arrays import of_tensor
from ..attached.features import Attached
from ..errors import InputError
from ..sources import datasets
from ..sources.dataset import left_out, split_name
from ..sources.pyg import EDGE_INDEX, NAMES, TIME, is_split, of_edges, times_of
from ..sources.reading import mapped
from ..sources.tables import TABLE_SUFFIXES, open_table
from .graph import EdgeType

Array = NDArray[Any]

NODE_KEYS = ("vertices", *(field.name for field in fields(Attached)), "node_times")

Types = tuple[dict[str, dict[str, Any]], dict[EdgeType, Any], list[str]]
"""What `build_hetero` takes as `nodes` and `edges`, and what is said of the source."""


def of_source(data: Any, *, without_values: bool) -> Types:
    """The types of a folder or of PyG's `HeteroData`; `without_values` of edges, times of nodes."""
    dataset = datasets.find_typed(data)
    if dataset is None:
        return _of_data(data, without_values=without_values)
    nodes = {
        name: {
            "vertices": of.vertices,
            "features": of.features or None,
            "labels": of.labels or None,
            "splits": of.splits or None,
        }
        for name, of in dataset.nodes.items()
    }
    edges: dict[EdgeType, Any] = {name: {"edges": of.edges} for name, of in dataset.edges.items()}
    if not without_values:
        for name, of in dataset.edges.items():
            edges[name] |= {
                "edge_values": of.edge_values or None,
                "edge_features": of.edge_features or None,
            }
    return nodes, edges, dataset.notes


def _of_data(data: Any, *, without_values: bool) -> Types:
    if not hasattr(data, "node_types") or not hasattr(data, "edge_types"):
        raise InputError.of(
            "build from",
            type(data).__name__,
            expected="PyG's `HeteroData`, a folder of GraphBolt's, IGBH's or OGB's, or `nodes` "
            "and `edges`",
            hint="`tiergraph.build` takes `Data`",
        )
    nodes: dict[str, dict[str, Any]] = {}
    edges: dict[EdgeType, Any] = {}
    notes = left_out(data.stores[0].keys(), "`HeteroData`") if hasattr(data, "stores") else []
    timed = any(TIME in data[edge_type] for edge_type in data.edge_types)
    for name in data.node_types:
        store = data[name]
        names = list(store.keys())
        times = {} if timed else times_of(store, names)
        masks = {n: np.asarray(of_tensor(store[n], n)) for n in names if is_split(n)}
        notes += left_out([n for n in names if n not in {*NAMES, *times, *masks}], f"`{name}`")
        nodes[name] = {
            "vertices": store.num_nodes,
            "features": store.get("x"),
            "labels": store.get("y"),
            "splits": {split_name(n): mask for n, mask in masks.items()} or None,
            "node_times": None if without_values else times or None,
        }
    for edge_type in data.edge_types:
        if EDGE_INDEX not in data[edge_type]:
            raise InputError.of(
                "build the edges", " ".join(edge_type), expected="`edge_index`", got="none"
            )
        store = data[edge_type]
        names = list(store.keys())
        values, features = of_edges(store, names)
        notes += left_out(
            [n for n in names if n not in {EDGE_INDEX, *values, *features}],
            f"`{' '.join(edge_type)}`",
        )
        edges[edge_type] = {"edges": store.edge_index}
        if not without_values:
            notes += [rows.note for rows in features.values() if rows.note]
            edges[edge_type] |= {"edge_values": values, "edge_features": features}
    return nodes, edges, notes


def count_of(name: str, spec: Mapping[str, Any]) -> int:
    """The nodes of a type."""
    for key in spec.keys() - set(NODE_KEYS):
        raise InputError.of(
            "use the key", key, expected=f"one of {', '.join(NODE_KEYS)}", got=f"it for `{name}`"
        )
    if spec.get("vertices") is not None:
        return int(spec["vertices"])
    for key in ("features", "labels"):
        source = spec.get(key)
        sources = source.values() if isinstance(source, Mapping) else [source]
        for one in sources:
            rows = _rows_of(one)
            if rows is not None:
                return rows
    raise InputError.of(
        "count the nodes of the type",
        name,
        expected="`vertices`, or features or labels whose rows can be counted",
        got=", ".join(key for key in spec if spec[key] is not None) or "nothing",
    )


def _rows_of(source: Any) -> int | None:
    """The rows of an array or file, where they can be told beforehand."""
    if source is None:
        return None
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.suffix == ".npy":
            return int(mapped(path).shape[0])
        return open_table(str(path)).rows if path.suffix in TABLE_SUFFIXES else None
    shape = getattr(source, "shape", None)
    if shape is not None:
        return int(shape[0])
    return len(source) if isinstance(source, list | tuple) else None
