"""Writing graphs: from files, tables, arrays and batches, or from a generator."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, TypedDict, cast

from . import _native
from .arguments.arrays import to_endpoints, to_weights
from .arguments.calls import checked, warn
from .arguments.checks import arguments, choice, count, number, whole
from .arguments.sizes import to_bytes
from .arguments.words import flag_of
from .attached import edges
from .attached.edges import Batch as EdgeBatch
from .attached.edges import EdgeStore
from .attached.edges import Values as EdgeValues
from .attached.features import Attached, FeatureType
from .attached.features import Source as FeatureSource
from .errors import InputError, InputWarning
from .sources import datasets, objects
from .sources.edges import Batch, Source, batch_edges, pieces, waiting_bytes
from .sources.given import Given
from .sources.names import numbered, numbers
from .sources.tables import notes_of, read_batches, reader_bytes

PathLike = str | os.PathLike[str]

WithEdges: TypeAlias = tuple[EdgeStore, Callable[[], Iterator[EdgeBatch]]]
"""What is stored with the edges, and what reads these once more."""


class BuildOptions(TypedDict, total=False):
    """What `build` and `generate` may be told; left out or None, an option has its default."""

    memory: int | str | None
    """Bound of what the build holds, `"2GiB"` or bytes; half of what the machine has free."""
    threads: int | None
    """Threads that sort and encode; the machine's cores."""
    undirected: bool | None
    """Each edge goes both ways; without it, what the source says, or else one way."""
    dedup: bool | None
    """Keep one of several equal edges, that of the least weight."""
    drop_self_loops: bool | None
    """Drop edges from a vertex to itself."""
    ids: Literal["dense", "map", "names"] | None
    """`dense`: ids are 0 to |V| - 1. `map`: any 64-bit ids; those that occur are the vertices, and
    are stored. `names`: ids are text, which `Graph.names` has; vertices are numbered from 0 in the
    order in which they first come. Without it: `names` where ids of a table or an array are text;
    `map` where more than 64 and more than 3 % of the ids up to the largest have no edge, or where
    the source lists its vertices; `dense` otherwise. A note says how many ids have no edge."""
    order: Literal["none", "degree", "auto"] | None
    """How vertices are arranged on disk; results always come back in the order of the ids. `auto`
    is whichever makes the neighbours of a sample lie closer together."""
    codec: Literal["packed", "raw"] | None
    """How neighbours are stored: as bit-packed gaps, or as plain ids of 4 or 8 bytes."""
    layouts: Literal["analytics", "training", "both", "sampling"] | None
    """What the graph is for: whole-graph passes, neighbour look-ups, or both; `sampling` has only
    the neighbours that messages come from."""
    stripe: list[str] | None
    """Directories, one a drive, that blocks are dealt over in turn."""
    scratch: PathLike | None
    """Directory of the temporary file, 8 to 24 bytes an edge where it is not in `memory`;
    beside the graph. What is not free is refused before the first byte is written."""
    block_bytes: int | str | None
    """Bytes a block, a multiple of 4096; 1 MiB."""
    overwrite: bool | None
    """Replace a graph that stands at the path."""


@checked
@arguments(
    source=None,
    features=None,
    labels=None,
    edge_features=None,
    vertices=whole(0, 2**32 - 1),
)
def build(
    source: Source,
    path: PathLike,
    *,
    columns: Sequence[str] | None = None,
    vertices: int | None = None,
    format: str | None = None,
    weights: str | int | None = None,
    features: FeatureSource | None = None,
    labels: FeatureSource | None = None,
    splits: FeatureSource | None = None,
    feature_dtype: FeatureType | None = None,
    feature_columns: Sequence[str] | None = None,
    allow_nan: bool = False,
    edge_values: EdgeValues | None = None,
    edge_features: FeatureSource | None = None,
    node_times: EdgeValues | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    undirected: bool | None = None,
    dedup: bool | None = None,
    drop_self_loops: bool | None = None,
    ids: Literal["dense", "map", "names"] | None = None,
    order: Literal["none", "degree", "auto"] | None = None,
    codec: Literal["packed", "raw"] | None = None,
    layouts: Literal["analytics", "training", "both", "sampling"] | None = None,
    stripe: list[str] | None = None,
    scratch: PathLike | None = None,
    block_bytes: int | str | None = None,
    overwrite: bool | None = None,
    progress: _native.Progress | None = None,
) -> dict[str, Any]:
    """Writes the graph directory `path` from `source` and returns what was built and measured.

    `source` is one of

    - a file: text of edges (SNAP, CSV), adjacency lines, LDBC Graphalytics, Matrix Market, METIS,
      DIMACS, binary pairs, `.npy` of shape (|E|, 2), a BVGraph, or a table (Parquet, Feather,
      Arrow IPC); text may be packed by gzip, zstd, xz or bzip2, and may come through a pipe, such
      as standard input (`-`);
    - several files of edges of one kind, or a pattern such as `part-*.csv`;
    - a table in memory (pandas, Polars, pyarrow: whatever has `__arrow_c_stream__`);
    - a graph of NetworkX, igraph or NetworKit, with nodes that are integers or text and, as
      `weights`, an attribute of edges (`weight`, if they have it); a sparse matrix of SciPy, or its
      `.npz`, with values as weights;
    - arrays `(src, dst)` or `(src, dst, weights)`, or one of shape (|E|, 2);
    - an iterable of such tuples, or of edges `(u, v)` or `(u, v, weight)`, as NetworkX's
      `G.edges()` is;
    - a graph with features, labels, splits and values of edges, which are stored too: PyG's `Data`,
      an `.npz` with `edge_index`, a folder in OGB's or IGB's layout, or GraphBolt's with
      `metadata.yaml`; an integer `time` a node of a `Data` becomes `node_times`, and `notes` has
      the attributes that are not stored. `tiergraph.build_hetero` takes those of several types of
      nodes and edges. Every stored edge is one, whichever way it goes; where OGB adds inverse
      edges, `undirected=True` makes both ways of each, with its values.

    `columns` names the source, destination and, if there is one, weight column of a table or of a
    text file (by numbers from 1 where it has no header). Without it, the ends are columns that are
    called so (`src` and `dst`, `source` and `target`, `from` and `to`, `u` and `v`, `FromNodeId`
    and `ToNodeId`, `:START_ID` and `:END_ID`, …, in any case), or else the first two of integers.
    `weights` is `none`, the number from 1 or the name of a column, or `auto`: the column that is
    called `weight`, `weights`, `w`, `value`, `cost`, `distance`, `length` or similar, the third of
    `.wel`, and the third of three columns without names, unless its integers look like times. A
    column of numbers that is not used is in a note.

    `vertices` says |V| where ids are 0 to |V| - 1: a larger id is an error. `format` says what name
    and content of a file do not tell (`text`, `u32`, `u64`, `npy`, `graphalytics`, `adjacency`,
    `ascii-graph`, `bvgraph`, `matrix-market`, `metis`, `dimacs`).

    `features`, `labels` and `splits` go with the vertices, in the order of the ids: row i belongs
    to the i-th smallest id (with `ids="map"`: of those that occur). `tiergraph.features.Attached`
    says what they may be and what `feature_dtype`, `feature_columns` and `allow_nan` do. With
    them, `layouts` is `both` unless given.

    `edge_values` and `edge_features` go with the edges, in the order of the source, which is read
    twice then; with `node_times`, neighbours are sampled by their own times: `add_edge_values` has
    them all. `{}` leaves a dataset's out. A graph that removes duplicates has none.

    `tiergraph.BuildOptions` says what `memory` to `overwrite` mean.

    Tables and batches are streamed within `memory`. The graph appears at `path` whole, or not at
    all. Returns `vertices`, `edges`, `arcs`, `bytes`, `seconds`, `stages` and more, under the keys
    that `--json` prints; with values of edges, also what `add_edge_values` returns. `notes` has a
    sentence for everything that was noticed about the input or decided for the caller, and each is
    an `InputWarning` too.

    Raises `InputError` for input that cannot be used, `FormatError` for files that are damaged,
    `BudgetError` where `memory` is too little, `IoError` where the system refuses.
    """
    options: BuildOptions = {
        "memory": memory,
        "threads": threads,
        "undirected": undirected,
        "dedup": dedup,
        "drop_self_loops": drop_self_loops,
        "ids": ids,
        "order": order,
        "codec": codec,
        "layouts": layouts,
        "stripe": stripe,
        "scratch": None if scratch is None else os.fspath(scratch),
        "block_bytes": block_bytes,
        "overwrite": overwrite,
    }
    columns = None if columns is None else list(columns)
    weights = None if weights is None else str(weights)
    dataset, given, asked = datasets.with_edges(source, weights), source, weights
    found = None if dataset is not None else objects.find(source, weights)
    listed: Any = None
    unread: list[str] = []
    if found is not None:
        source, weights, listed = cast("Source", found.edges), None, found.listed
        vertices = found.vertices if vertices is None and ids != "map" else vertices
        options["undirected"] = not found.directed if undirected is None else undirected
    if dataset is not None:
        if dataset.edges is None:
            raise InputError.of("build from", source, expected="`edge_index`", got="none")
        source, unread = cast("Source", iter(dataset.edges)), dataset.notes
        weights = None if datasets.is_matrix(given) else weights
        if ids != "map":
            vertices = dataset.vertices if vertices is None else vertices
        features = (dataset.features or None) if features is None else features
        labels = (dataset.labels or None) if labels is None else labels
        splits = (dataset.splits or None) if splits is None else splits
        if node_times is None and dataset.node_times:
            node_times = None if dedup else dataset.node_times
            if dedup:
                why = "they go with the edges, of which duplicates are removed"
                unread = [*unread, f"the times of nodes are left out: {why}"]
        edge_values = (dataset.edge_values or None) if edge_values is None else edge_values
        edge_features = (dataset.edge_features or None) if edge_features is None else edge_features
    edges_of = Given.of(source, columns, format, weights, ids)
    names, most = edges_of.names, batch_edges(to_bytes(memory))
    if names is None and isinstance(listed, list):
        names = _native.Names()
    if names is not None:
        options["ids"] = "names"
        if listed is not None:
            # Those without an edge are vertices too.
            vertices = len(numbers(names, listed, "the nodes"))
            listed = None
    with_edges: WithEdges | None = None
    if edge_values or node_times or not (edge_features is None or _is_empty(edge_features)):
        edges.read_twice(given)
        reading: dict[str, Any] = {
            "format": format,
            "weights": asked,
            "undirected": options["undirected"],
        }
        again = edges.reader(given, columns, reading, names)
        if names is not None:
            names.stay()
        with_edges = (
            EdgeStore.of(edge_values or {}, edge_features, feature_dtype, node_times),
            again,
        )
        if layouts is None:
            options["layouts"] = "both"
    attached = Attached(features, labels, splits, feature_dtype, feature_columns, allow_nan)
    rows = None if not node_times or with_edges is None else with_edges[0].vertices()
    of_vertices = {"vertices": vertices, "rows": rows}
    if edges_of.files is None:
        beside, notes, batches = 0, [], edges_of.batches or iter(())
        if edges_of.tables is not None:
            notes = notes_of(edges_of.tables, columns, weights)
            batches = read_batches(edges_of.tables, columns, most, weights, names)
            beside = reader_bytes(edges_of.tables)
        elif names is not None:
            batches = map(partial(numbered, names), pieces(batches, most))
        held = waiting_bytes(most, beside)
        listing = None if listed is None else listed.tolist()
        of_edges = {"notes": [*notes, *unread], "listed": listing}
        encoded = encode_edges({**options, **of_vertices, **held, **of_edges})
        return _warned(push(batches, most, path, encoded, attached, with_edges, progress, names))
    of_file = {"format": format, "weights": weights, "columns": columns}
    encoded = _encode({**options, **of_vertices, **of_file})
    target = (edges_of.files, os.fspath(path), encoded, attached.given(), names)
    if with_edges is not None:
        store, again = with_edges
        native = _native.build_file_with_values(*target, store.options(), store.times(), progress)
        return _warned(store.push(native, again(), progress))
    return _warned(json.loads(_native.build_file(*target, progress)))


def _warned(stats: dict[str, Any]) -> dict[str, Any]:
    """The statistics of a build, after its notes were told to the caller of `build`."""
    for note in stats["notes"]:
        warn(note, InputWarning)
    return stats


@checked
@arguments(
    kind=choice("rmat", "uniform", "sbm"),
    classes=count,
    communities=count,
    edge_factor=count,
    edges=count,
    features=count,
    inside=number(0, 1),
    mean_degree=number(0),
    scale=whole(1, 40),
    vertices=count,
    weights=choice("unit", "byte"),
)
def generate(
    kind: Literal["rmat", "uniform", "sbm"],
    path: PathLike,
    *,
    seed: int | None = None,
    weights: Literal["unit", "byte"] | None = None,
    scale: int | None = None,
    edge_factor: int | None = None,
    vertices: int | None = None,
    edges: int | None = None,
    communities: int | None = None,
    mean_degree: float | None = None,
    inside: float | None = None,
    features: int | None = None,
    classes: int | None = None,
    feature_dtype: FeatureType | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    undirected: bool | None = None,
    dedup: bool | None = None,
    drop_self_loops: bool | None = None,
    ids: Literal["dense", "map", "names"] | None = None,
    order: Literal["none", "degree", "auto"] | None = None,
    codec: Literal["packed", "raw"] | None = None,
    layouts: Literal["analytics", "training", "both", "sampling"] | None = None,
    stripe: list[str] | None = None,
    scratch: PathLike | None = None,
    block_bytes: int | str | None = None,
    overwrite: bool | None = None,
    progress: _native.Progress | None = None,
) -> dict[str, Any]:
    """Writes a synthetic graph: the same parameters and seed give the same edges everywhere.

    `kind` is one of

    - `rmat`: Graph500's Kronecker graph of 2^`scale` vertices, `edge_factor` (16) edges each;
    - `uniform`: `edges` between any of `vertices`;
    - `sbm`: `communities` of equal size (vertex v is in v mod `communities`), with `mean_degree`
      half as many edges as ends a vertex, of which the share `inside` stays in a community.

    All follow from `seed` (1). `weights` are even in [0, 1) (`unit`) or among the integers 1 to 255
    (`byte`). `features` columns of random features `x` are streamed to disk as `feature_dtype`
    (`f32`, `f16`, `int8`) and may be larger than memory; with `classes`, each row is its class's
    mean plus noise. `classes` also gives labels `y` and splits `train`, `val`, `test` (10, 10,
    80 %): for `sbm` the community modulo classes (by default the community itself), else at random.
    Other parameters are `build`'s. Returns and raises what `build` does.
    """
    generator = {
        "seed": seed,
        "weights": weights,
        "scale": scale,
        "edge_factor": edge_factor,
        "vertices": vertices,
        "edges": edges,
        "communities": communities,
        "mean_degree": mean_degree,
        "inside": inside,
        "features": features,
        "classes": classes,
    }
    parameters = {name: value for name, value in generator.items() if value is not None}
    _check_generator(kind, parameters)
    options: dict[str, Any] = {
        "memory": memory,
        "threads": threads,
        "undirected": undirected,
        "dedup": dedup,
        "drop_self_loops": drop_self_loops,
        "ids": ids,
        "order": order,
        "codec": codec,
        "layouts": layouts,
        "stripe": stripe,
        "scratch": None if scratch is None else os.fspath(scratch),
        "block_bytes": block_bytes,
        "overwrite": overwrite,
        "feature_dtype": feature_dtype,
    }
    encoded = _encode(options)
    stats: dict[str, Any] = json.loads(
        _native.generate(kind, json.dumps(parameters), os.fspath(path), encoded, progress)
    )
    return stats


NEEDED = {
    "rmat": ("scale",),
    "uniform": ("vertices", "edges"),
    "sbm": ("vertices", "communities", "mean_degree", "inside"),
}
"""What a kind of generated graph must be told."""
TAKEN = ("seed", "weights", "features", "classes")
"""What all kinds may be told; `rmat` also takes `edge_factor`."""


def _check_generator(kind: str, parameters: Mapping[str, Any]) -> None:
    """Refuses what a kind of graph lacks or has no use for."""
    needed = NEEDED[kind]
    for name in needed:
        if name not in parameters:
            expected = f"`{flag_of(name)}`"
            raise InputError.of(f"generate a graph of kind `{kind}`", expected=expected, got="none")
    taken = {*needed, *TAKEN, *(("edge_factor",) if kind == "rmat" else ())}
    for name in parameters:
        if name not in taken:
            expected = ", ".join(f"`{flag_of(n)}`" for n in (*needed, *TAKEN))
            given = f"`{flag_of(name)}`"
            raise InputError.of(
                f"generate a graph of kind `{kind}`", expected=f"only {expected}", got=given
            )


def _is_empty(source: FeatureSource) -> bool:
    """Whether features by name are none."""
    return isinstance(source, Mapping) and not source


def _encode(options: Mapping[str, Any]) -> str:
    """The given options as JSON; an option that is None counts as not given."""
    encoded = {k: v for k, v in options.items() if v is not None}
    for name in ("memory", "block_bytes"):
        if name in encoded:
            encoded[name] = to_bytes(encoded[name])
    return json.dumps(encoded)


def encode_edges(options: Mapping[str, Any]) -> str:
    """The options of a build from batches as JSON, for `push`."""
    return _encode(options)


def push(
    batches: Iterable[Batch],
    most: int,
    path: PathLike,
    encoded: str,
    attached: Attached,
    with_edges: WithEdges | None,
    progress: _native.Progress | None,
    names: _native.Names | None = None,
) -> dict[str, Any]:
    """Builds the graph `path` from batches, `most` edges at a time."""
    builder = _native.Builder(os.fspath(path), encoded, attached.given(), names, progress)
    try:
        for src, dst, *weights in pieces(batches, most):
            builder.push(
                to_endpoints(src, "src"),
                to_endpoints(dst, "dst"),
                to_weights(weights[0], "weights") if weights else None,
            )
        if with_edges is None:
            stats: dict[str, Any] = json.loads(builder.finish())
            return stats
        store, again = with_edges
        native = builder.finish_with_values(store.options(), store.times())
        return store.push(native, again(), progress)
    except BaseException:
        builder.abort()
        raise
