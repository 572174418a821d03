"""What `build_hetero` accepts: PyG's `HeteroData`, and nodes and edges by type."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments.arrays import to_endpoints
from ..arguments.calls import warn
from ..attached.features import Attached
from ..errors import InputError, InputWarning
from ..sources.datasets import is_split, split_name
from ..sources.edges import BATCH_EDGES, as_batches, as_files
from ..sources.reading import mapped
from ..sources.tables import TABLE_SUFFIXES, open_table, read_batches, reader_bytes, tables_of
from .graph import EdgeType

Array = NDArray[Any]
Batches = Iterator[tuple[Array, Array]]

NODE_KEYS = ("vertices", *(field.name for field in fields(Attached)))


def of_data(data: Any) -> tuple[dict[str, dict[str, Any]], dict[EdgeType, Any]]:
    """The types of PyG's `HeteroData`."""
    if not hasattr(data, "node_types") or not hasattr(data, "edge_types"):
        raise InputError.of(
            "build from",
            type(data).__name__,
            expected="PyG's `HeteroData`, or `nodes` and `edges`",
            hint="`tiergraph.build` takes `Data`",
        )
    nodes, edges = {}, {}
    for name in data.node_types:
        store = data[name]
        masks = {split_name(n): np.asarray(store[n]) for n in list(store.keys()) if is_split(n)}
        nodes[name] = {
            "vertices": store.num_nodes,
            "features": store.get("x"),
            "labels": store.get("y"),
            "splits": masks or None,
        }
    for edge_type in data.edge_types:
        if "edge_index" not in data[edge_type]:
            raise InputError.of(
                "build the edges", " ".join(edge_type), expected="`edge_index`", got="none"
            )
        edges[edge_type] = data[edge_type].edge_index
    return nodes, edges


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


def pairs_of(edge_type: EdgeType, source: Any, most: int) -> tuple[Iterator[Any], int]:
    """Batches of the edges of a type, and what reading them holds."""
    tables = tables_of(source)
    if tables is not None:
        for table in tables:
            _, _, *weight = table.choose(None, None)[0]
            if weight:
                note = (
                    f"column `{weight[0]}` of `{table.name}` is not stored: types have no weights"
                )
                warn(note, InputWarning)
        return iter(read_batches(tables, None, most, "none")), reader_bytes(tables)
    files = as_files(source)
    if files is not None:
        raise InputError.of(
            "build the edges",
            " ".join(edge_type),
            expected=f"arrays (src, dst) or tables ({', '.join(TABLE_SUFFIXES)})",
            got=", ".join(files),
        )
    if getattr(source, "ndim", None) == 2:
        index = np.asarray(source)
        if index.shape[0] != 2:
            raise InputError.of(
                "build the edges", " ".join(edge_type), expected="shape (2, E)", got=index.shape
            )
        source = (index[0], index[1])
    return as_batches(source), 0


def shifted(
    edge_type: EdgeType, batches: Iterator[Any], counts: tuple[int, int], base: int
) -> Batches:
    """Pairs of vertices of the type's graph: sources lie behind `base`, the destinations."""
    for src, dst, *weights in batches:
        if weights:
            raise InputError.of(
                "build the edges", " ".join(edge_type), expected="pairs", got="weights too"
            )
        for start in range(0, len(src), BATCH_EDGES):
            part = slice(start, start + BATCH_EDGES)
            from_nodes = _nodes(edge_type, src[part], "src", counts[0])
            yield from_nodes + np.uint32(base), _nodes(edge_type, dst[part], "dst", counts[1])


def _nodes(edge_type: EdgeType, given: Any, column: str, count: int) -> NDArray[np.uint32]:
    """Nodes of a type with so many."""
    nodes = to_endpoints(np.asarray(given), column)
    least, most = (int(nodes.min()), int(nodes.max())) if nodes.size else (0, -1)
    if least < 0 or most >= count:
        of = edge_type[0 if column == "src" else 2]
        raise InputError.of(
            "build the edges",
            " ".join(edge_type),
            expected=f"`{column}` from 0 to {count - 1}, the nodes of `{of}`",
            got=least if least < 0 else most,
        )
    return nodes.astype(np.uint32)
