"""Writing heterogeneous graphs: a graph for each node type and each edge type, in one directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from . import _native
from .arrays import to_endpoints
from .datasets import is_split, split_name
from .errors import InputError
from .features import Attached
from .hetero import EdgeType
from .sizes import to_bytes
from .sources import BATCH_EDGES, WAITING_EDGE_BYTES, as_batches, as_files, batch_edges
from .tables import TABLE_SUFFIXES, open_table, read_batches, reader_bytes
from .write import encode_edges, push

PathLike = str | os.PathLike[str]
Array = NDArray[Any]
Batches = Iterator[tuple[Array, Array]]

MOST_NODES = 2**32 - 1
"""At both ends of an edge type together."""

NODE_KEYS = ("vertices", *(field.name for field in fields(Attached)))


class HeteroBuildOptions(TypedDict, total=False):
    """What `build_hetero` may be told; left out or None, an option has its default."""

    memory: int | str | None
    """Bound of the external sort, `"2GiB"` or bytes."""
    threads: int | None
    dedup: bool | None
    """Keep one of several equal edges of a type."""
    block_bytes: int | str | None
    overwrite: bool | None
    """Replace a graph that stands at the path."""


def build_hetero(
    path: PathLike,
    data: Any = None,
    *,
    nodes: Mapping[str, Mapping[str, Any]] | None = None,
    edges: Mapping[EdgeType, Any] | None = None,
    progress: _native.Progress | None = None,
    **options: Unpack[HeteroBuildOptions],
) -> dict[str, Any]:
    """Writes the heterogeneous graph `path` and returns the counts of its types.

    From PyG's `HeteroData` (`x`, `y`, masks and `edge_index` of each type; other attributes are not
    stored), or from `nodes` and `edges`:

    - `nodes` has a dictionary for each type: `vertices`, its number of nodes (without it, the rows
      of its features or labels), and `features`, `labels`, `splits`, `feature_dtype`,
      `feature_columns` and `allow_nan`, as `tiergraph.build` takes them.
    - `edges` has for each `(source, relation, destination)` arrays `(src, dst)`, an array of shape
      (2, E), batches of such pairs, or tables (`cites.parquet`): nodes of the source's type and of
      the destination's, each numbered from 0.

    Edges are streamed and sorted within `memory`, type by type. The graph appears at `path` whole,
    or not at all. Raises `InputError` for what cannot be used, naming the type.
    """
    if data is not None:
        if nodes is not None or edges is not None:
            raise InputError.of("build from", "data", expected="`data`, or `nodes` and `edges`")
        nodes, edges = _of_data(data)
    given = {name: dict(spec) for name, spec in (nodes or {}).items()}
    counts = {name: _count(name, spec) for name, spec in given.items()}
    _check_types(counts, edges or {})
    overwrite = bool(options.pop("overwrite", None))
    building = _native.HeteroBuilding(os.fspath(path), overwrite)
    try:
        parts = _Parts(Path(building.folder()), options, progress)
        node_types = [
            parts.nodes(number, name, counts[name], spec)
            for number, (name, spec) in enumerate(given.items())
        ]
        edge_types = [
            parts.edges(number, edge_type, source, counts)
            for number, (edge_type, source) in enumerate((edges or {}).items())
        ]
        types = {"node_types": node_types, "edge_types": edge_types}
        building.commit(json.dumps(types))
    except BaseException:
        building.abort()
        raise
    return {
        "nodes": counts,
        "edges": {
            edge_type: built["edges"]
            for edge_type, built in zip(edges or {}, edge_types, strict=True)
        },
    }


class _Parts:
    """Builds the graphs that a heterogeneous one consists of."""

    def __init__(
        self,
        folder: Path,
        options: HeteroBuildOptions,
        progress: _native.Progress | None,
    ) -> None:
        self._folder = folder
        self._options = options
        self._progress = progress
        self._most = batch_edges(to_bytes(options.get("memory")))

    def nodes(
        self, number: int, name: str, vertices: int, spec: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The graph of a node type: no edges, and what goes with the nodes."""
        attached = Attached(**{key: value for key, value in spec.items() if key != "vertices"})
        graph = f"node-{number}.tg"
        self._build(graph, iter(()), vertices, 0, attached)
        return {"name": name, "vertices": vertices, "graph": graph}

    def edges(
        self, number: int, edge_type: EdgeType, source: Any, counts: Mapping[str, int]
    ) -> dict[str, Any]:
        """The graph of an edge type: the destination's nodes come before the source's."""
        from_type, relation, to_type = edge_type
        base = 0 if from_type == to_type else counts[to_type]
        batches, held = _pairs(edge_type, source, self._most)
        shifted = _shifted(edge_type, batches, (counts[from_type], counts[to_type]), base)
        vertices = counts[to_type] if from_type == to_type else base + counts[from_type]
        graph = f"edge-{number}.tg"
        stats = self._build(graph, shifted, vertices, held, Attached())
        return {
            "source": from_type,
            "relation": relation,
            "destination": to_type,
            "edges": stats["edges"],
            "graph": graph,
        }

    def _build(
        self, graph: str, batches: Batches, vertices: int, held: int, attached: Attached
    ) -> dict[str, Any]:
        options = {
            **self._options,
            "undirected": False,
            "order": "none",
            "layouts": "sampling",
            "vertices": vertices,
            "held_bytes": WAITING_EDGE_BYTES * self._most + held,
        }
        encoded = encode_edges(options)
        return push(batches, self._most, self._folder / graph, encoded, attached, self._progress)


def _of_data(data: Any) -> tuple[dict[str, dict[str, Any]], dict[EdgeType, Any]]:
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


def _check_types(counts: Mapping[str, int], edges: Mapping[EdgeType, Any]) -> None:
    """Refuses edge types that are none, or of nodes that are not there, or too many."""
    for edge_type in edges:
        named = isinstance(edge_type, tuple) and len(edge_type) == 3
        if not named or not all(isinstance(name, str) for name in edge_type):
            raise InputError.of(
                "use the edge type", edge_type, expected="(source, relation, destination)"
            )
        ends = {edge_type[0], edge_type[2]}
        for name in ends - counts.keys():
            raise InputError.of(
                "build the edges",
                " ".join(edge_type),
                expected=f"node types among {', '.join(counts) or 'none'}",
                got=name,
                hint=f"give `nodes` an entry `{name}` with its `vertices`",
            )
        if sum(counts[name] for name in ends) > MOST_NODES:
            raise InputError.of(
                "build the edges",
                " ".join(edge_type),
                expected=f"at most {MOST_NODES} nodes at both ends",
                got=sum(counts[name] for name in ends),
            )


def _count(name: str, spec: Mapping[str, Any]) -> int:
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
            return int(np.load(path, mmap_mode="r").shape[0])
        return open_table(str(path)).rows if path.suffix in TABLE_SUFFIXES else None
    shape = getattr(source, "shape", None)
    if shape is not None:
        return int(shape[0])
    return len(source) if isinstance(source, list | tuple) else None


def _pairs(edge_type: EdgeType, source: Any, most: int) -> tuple[Iterator[Any], int]:
    """Batches of the edges of a type, and what reading them holds."""
    files = as_files(source)
    if files is not None:
        if not all(Path(file).suffix.lower() in TABLE_SUFFIXES for file in files):
            raise InputError.of(
                "build the edges",
                " ".join(edge_type),
                expected=f"arrays (src, dst) or tables ({', '.join(TABLE_SUFFIXES)})",
                got=", ".join(files),
            )
        return iter(read_batches(files, None, most)), reader_bytes(files)
    if getattr(source, "ndim", None) == 2:
        index = np.asarray(source)
        if index.shape[0] != 2:
            raise InputError.of(
                "build the edges", " ".join(edge_type), expected="shape (2, E)", got=index.shape
            )
        source = (index[0], index[1])
    return as_batches(source), 0


def _shifted(
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
