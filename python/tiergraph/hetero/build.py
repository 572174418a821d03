"""Writing heterogeneous graphs: a graph for each node type and each edge type, in one directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..arguments.calls import checked, warn
from ..arguments.checks import arguments, by_name, mapping
from ..arguments.sizes import to_bytes
from ..attached.edges import EdgeStore, times_of
from ..attached.features import Attached
from ..errors import InputError, InputWarning
from ..sources.edges import batch_edges, waiting_bytes
from ..write import BuildOptions, WithEdges, encode_edges, push
from .edges import TypeEdges, TypeEnds
from .graph import EdgeType
from .source import Array, count_of, of_source

PathLike = str | os.PathLike[str]
Times = dict[str, NDArray[np.int64]]

MOST_NODES = 2**32 - 1
"""At both ends of an edge type together."""


@checked
@arguments(nodes=by_name, edges=mapping)
def build_hetero(
    path: PathLike,
    data: Any = None,
    *,
    nodes: Mapping[str, Mapping[str, Any]] | None = None,
    edges: Mapping[EdgeType, Any] | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    dedup: bool | None = None,
    stripe: list[str] | None = None,
    scratch: PathLike | None = None,
    block_bytes: int | str | None = None,
    overwrite: bool | None = None,
    progress: _native.Progress | None = None,
) -> dict[str, Any]:
    """Writes the heterogeneous graph `path`; returns `nodes` and `edges`, their counts by type.

    From a folder with a data set on disk: GraphBolt's with `metadata.yaml`, IGBH's with
    `processed/`, OGB's with `raw/` (as of ogbn-mag); what of it is left out is in `notes` of what
    is returned, and `InputWarning`s too. From PyG's `HeteroData` (`x`, `y`, masks and integer
    `time` of each type of nodes, `edge_index`, `edge_attr` and numbers of each type of edges; with
    `dedup`, none of edges and no times; `notes` has other attributes), or from `nodes` and `edges`:

    - `nodes` has a dictionary for each type: `vertices`, its number of nodes (without it, the rows
      of its features or labels), and `features`, `labels`, `splits`, `node_times`,
      `feature_dtype`, `feature_columns` and `allow_nan`, as `tiergraph.build` takes them.
    - `edges` has for each `(source, relation, destination)` arrays `(src, dst)`, an array of shape
      (2, E), batches of such pairs, or tables (`cites.parquet`): nodes of the source's type and of
      the destination's, each numbered from 0. A third column is stored as `weight`. For further
      values it has a dictionary: `edges`, which are these, and `edge_values`, `edge_features`
      and `feature_dtype`, as `tiergraph.build` takes them, in the order of the edges.

    Edges with values, and those from nodes with times, are read twice. `memory`, `threads`, `dedup`
    (of equal edges of a type, which then have no values), `stripe`, `scratch`, `block_bytes` and
    `overwrite` are `tiergraph.BuildOptions`'. Edges are streamed and sorted within `memory`, type
    by type. The graph appears at `path` whole, or not at all. Raises `InputError` for what cannot
    be used, naming the type.
    """
    options: BuildOptions = {
        "memory": memory,
        "threads": threads,
        "dedup": dedup,
        "stripe": stripe,
        "scratch": None if scratch is None else os.fspath(scratch),
        "block_bytes": block_bytes,
    }
    notes: list[str] = []
    if data is not None:
        if nodes is not None or edges is not None:
            raise InputError.of("build from", "data", expected="`data`, or `nodes` and `edges`")
        nodes, edges, notes = of_source(data, without_values=bool(dedup))
    given = {name: dict(spec) for name, spec in (nodes or {}).items()}
    counts = {name: count_of(name, spec) for name, spec in given.items()}
    _check_types(counts, edges or {})
    times = {name: _times_of(name, counts[name], spec) for name, spec in given.items()}
    _check_names(times, edges or {})
    building = _native.HeteroBuilding(os.fspath(path), bool(overwrite))
    try:
        parts = _Parts(Path(building.folder()), options, progress)
        node_types = [
            parts.nodes(number, name, counts[name], spec, times[name])
            for number, (name, spec) in enumerate(given.items())
        ]
        edge_types = [
            parts.edges(number, edge_type, source, _ends_of(edge_type, counts, times))
            for number, (edge_type, source) in enumerate((edges or {}).items())
        ]
        types = {"node_types": node_types, "edge_types": edge_types}
        building.commit(json.dumps(types))
    except BaseException:
        building.abort()
        raise
    for note in notes:
        warn(note, InputWarning)
    return {
        "nodes": counts,
        "edges": {
            edge_type: built["edges"]
            for edge_type, built in zip(edges or {}, edge_types, strict=True)
        },
        "notes": notes,
    }


class _Parts:
    """Builds the graphs that a heterogeneous one consists of."""

    def __init__(
        self,
        folder: Path,
        options: BuildOptions,
        progress: _native.Progress | None,
    ) -> None:
        self._folder = folder
        self._options = options
        self._progress = progress
        self._most = batch_edges(to_bytes(options.get("memory")))

    def nodes(
        self, number: int, name: str, vertices: int, spec: Mapping[str, Any], times: Times
    ) -> dict[str, Any]:
        """The graph of a node type: no edges, and what goes with the nodes."""
        others = ("vertices", "node_times")
        attached = Attached(**{key: value for key, value in spec.items() if key not in others})
        graph = f"node-{number}.tg"
        stored = (EdgeStore.of(None, None, node_times=times), lambda: iter(())) if times else None
        self._build(graph, iter(()), vertices, 0, attached, stored)
        return {"name": name, "vertices": vertices, "graph": graph}

    def edges(self, number: int, edge_type: EdgeType, given: Any, ends: TypeEnds) -> dict[str, Any]:
        """The graph of an edge type: the destination's nodes come before the source's."""
        from_type, relation, to_type = edge_type
        edges = TypeEdges(edge_type, given, ends, self._most)
        graph, held = f"edge-{number}.tg", edges.held_bytes
        stored = (edges.store, edges.with_values) if edges.has_values else None
        with edges.naming():
            stats = self._build(graph, edges.pairs(), ends.vertices, held, Attached(), stored)
        return {
            "source": from_type,
            "relation": relation,
            "destination": to_type,
            "edges": stats["edges"],
            "graph": graph,
        }

    def _build(
        self,
        graph: str,
        batches: Iterator[tuple[Array, Array]],
        vertices: int,
        held: int,
        attached: Attached,
        with_edges: WithEdges | None,
    ) -> dict[str, Any]:
        options = {
            **self._options,
            "undirected": False,
            "order": "none",
            "layouts": "sampling",
            "vertices": vertices,
            **waiting_bytes(self._most, held),
        }
        encoded = encode_edges(options)
        folder = self._folder / graph
        return push(batches, self._most, folder, encoded, attached, with_edges, self._progress)


def _times_of(name: str, vertices: int, spec: Mapping[str, Any]) -> Times:
    """The times of the nodes of a type, by name: one a node."""
    times = {key: times_of(key, given) for key, given in (spec.get("node_times") or {}).items()}
    for key, array in times.items():
        if len(array) != vertices:
            raise InputError.of(
                "store the nodes' times",
                key,
                expected=f"a time for each of {vertices} nodes of `{name}`",
                got=len(array),
            )
    return times


def _check_names(times: Mapping[str, Times], edges: Mapping[EdgeType, Any]) -> None:
    """Refuses values of edges that are called like times of nodes: a name says which is meant."""
    of_nodes = {key for named in times.values() for key in named}
    for edge_type, given in edges.items():
        values = given.get("edge_values") if isinstance(given, Mapping) else None
        for name in of_nodes & (values or {}).keys():
            raise InputError.of(
                "build the edges",
                " ".join(edge_type),
                expected="other names in `edge_values` than those of `node_times`",
                got=f"`{name}` in both",
            )


def _ends_of(
    edge_type: EdgeType, counts: Mapping[str, int], times: Mapping[str, Times]
) -> TypeEnds:
    """The nodes between which the edges of a type lead."""
    source, _, destination = edge_type
    base = 0 if source == destination else counts[destination]
    return TypeEnds(counts[source], counts[destination], base, times[source])


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
