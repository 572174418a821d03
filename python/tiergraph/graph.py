"""An opened graph and the algorithms that run on it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native, results
from .algorithms import Algorithms, options_json
from .arguments import checks
from .arguments.arrays import to_numbers, to_values
from .arguments.calls import checked, checked_class
from .arguments.checks import MisfitError, arguments, choice, count, number, truth, whole
from .attached.features import Arrays, Features
from .attached.names import Names
from .attached.nodes import ELSEWHERE, elsewhere, find, nodes_of
from .errors import InputError
from .export import export, inside, to_networkx, to_scipy
from .handles import without
from .opening import CHECKPOINT_EVERY, Opening, Transfers
from .passes.loops import Loop
from .passes.tensors import is_on_gpu, propagate_tensor

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.floating[Any]]
PathLike = str | os.PathLike[str]
Vertices: TypeAlias = Sequence[int] | Sequence[str] | Set[int] | Set[str] | NDArray[np.integer[Any]]
"""Vertices by their ids, or by their names where a graph has names; those of a set ascend."""
Result = TypeVar("Result")

CACHED = ("_info", "ids", "features", "labels", "splits")
"""What a graph keeps of what it has read."""

WEIGHED = {"adamic_adar": "logarithm", "resource_allocation": "arcs"}
"""What common neighbours count, by similarities of which each does not count one."""

CEILING_SECONDS = 1.0
"""How long each of the two bare-read measurements around a run lasts."""


def opened(value: Any) -> Graph:
    """A graph that was opened, as functions outside `Graph` take it."""
    if not isinstance(value, Graph):
        raise MisfitError("an opened graph, which `tiergraph.open` gives")
    return value


@checked
def open(
    path: PathLike,
    *,
    memory: int | str | None = None,
    io: str = "auto",
    threads: int | None = None,
    device: str = "cpu",
    device_memory: int | str | None = None,
    device_residency: bool = True,
    transfers: Transfers = "async",
    checksums: bool = True,
    modelled_bandwidth: int | str | None = None,
    checkpoint: PathLike | None = None,
    checkpoint_every: int | str = CHECKPOINT_EVERY,
    resume: bool = False,
) -> Graph:
    """Opens the graph directory `path`, which `build` or `generate` wrote.

    `memory` (`"2GiB"` or bytes) bounds what the process holds beyond the Python interpreter;
    without it, three quarters of what the machine has free. More than the machine has (up to 2^64 -
    1 bytes) bounds nothing. What a run frees of it stays for the next run until the graph is
    closed, marked so that the system takes it where it runs short. `io` names the read engine:
    `auto`, `uring` or `posix`; for raw NVMe drives, by commas, to which `write_drives` wrote it,
    `nvme:0000:01:00.0`, or `passthrough:/dev/ng0n1` where they stay with the kernel; or
    `modelled:p5510*4` for drives that threads imitate: figures are a model's then. With `gpu` (or
    `gpu:modelled:p5510*4`, or `gpu:0000:01:00.0`, untested on hardware) kernels on `device` ask for
    the pages of neighbours that a search's small levels need; the host reads everything else.
    `threads` (at most 1,024) defaults to the machine's cores.

    `device` is where algorithms run: `cpu`, `cuda`, `cuda:N`, or `auto` (a GPU if there is one).
    On a GPU, vertex state and as many blocks as `device_memory` holds (nine tenths of what is free)
    stay in its memory, and as many others as `memory` has room for in pinned host memory, unless
    `device_residency` is off; a graph that fits stays there for later runs, until nothing refers to
    the `Graph` any more. The other blocks stream in while it computes, or one after the other with
    `transfers="sync"`, or without passing through this process's memory with `transfers="direct"`
    (cuFile, GPUDirect Storage: `io_engine_why` in `last_run` says whether the machine has a direct
    way). These three are refused with `device="cpu"`. `checksums=False` takes the blocks that
    passes read as they come: a damaged one then gives wrong results, or ends the run.
    `modelled_bandwidth` (bytes a second) holds reading back to that of a drive that is not there:
    figures of such a run are a model's, and its `io_engine` says `modelled`.

    `checkpoint` names a folder, in which algorithms leave the state that they are in: after
    `checkpoint_every` iterations (`10`), or with the iteration that ends so long after the last
    (`"90s"`, `"5min"`, `"2h"`). With `resume`, a run goes on from the one that a run of the same
    algorithm and options over this graph left when it was killed, to the same answer, in whatever
    memory, and on another device too, but for triangles, cores, sets and colours, which a GPU
    begins anew; without, it is refused then. It is deleted once a run has its result. `last_run`
    says the file and the seconds that writing took (`checkpoint`, `checkpoint_seconds`), after how
    many iterations it went on (`resumed_after`, which `iterations` does not count), or why there
    are none (`checkpoint_why`: of what is one pass).

    Reads the manifest and the indexes. Raises `FormatError` for bytes that are not a graph,
    `IoError` where the system refuses, `DeviceError` where there is no such GPU, `BudgetError`
    where `memory` does not hold the indexes and the workers' buffers.

    A `Graph` is closed by `close()`, by leaving a `with` block, or when nothing refers to it any
    more. It can be pickled, and used in forked processes: each opens the same path with the same
    options, with `memory` of its own, when it first uses it.
    """
    opening = Opening(
        os.fspath(path),
        memory=memory,
        io=io,
        threads=threads,
        device=device,
        device_memory=device_memory,
        device_residency=device_residency,
        transfers=transfers,
        checksums=checksums,
        modelled_bandwidth=modelled_bandwidth,
        checkpoint=None if checkpoint is None else os.fspath(checkpoint),
        checkpoint_every=checkpoint_every,
        resume=resume,
    )
    return Graph(opening)


@checked
def open_for_run(
    path: PathLike,
    *,
    memory: int | str | None = None,
    io: str = "auto",
    threads: int | None = None,
    device: str = "cpu",
    device_memory: int | str | None = None,
    transfers: Transfers = "async",
    checkpoint: PathLike | None = None,
    checkpoint_every: int | str = CHECKPOINT_EVERY,
    resume: bool = False,
) -> Graph:
    """As `open`, for one run: where `memory` is too small, that run is refused, and not this.

    Its `BudgetError` then names all that the indexes, the buffers and the run need together. A
    checkpoint stays until `drop_checkpoint`, as the result has to be written first.
    """
    opening = Opening(
        os.fspath(path),
        memory=memory,
        io=io,
        threads=threads,
        device=device,
        device_memory=device_memory,
        transfers=transfers,
        checkpoint=None if checkpoint is None else os.fspath(checkpoint),
        checkpoint_every=checkpoint_every,
        resume=resume,
        for_run=True,
    )
    return Graph(opening)


@checked_class
class Graph(Algorithms):
    """A graph on disk, opened under a memory budget; made by `tiergraph.open`.

    Results are NumPy arrays with one value a vertex, in ascending order of the user's ids, which
    `ids` gives. After each run, `last_run` says where the time went: seconds, bytes read,
    bandwidth, resident bytes, under the same keys as `--json` prints them.

    Algorithms raise `InputError` for ids and parameters that they cannot use, `BudgetError` before
    they begin where `memory` does not hold their state of vertices, `IoError` and `FormatError` for
    blocks that cannot be read or are damaged, `DeviceError` for what a GPU refuses. `trace` is
    where the run's timeline is written (Chrome's format); `progress` is told how far it is.
    After `close`, all of it raises `InputError`.
    """

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self.path = opening.path
        self.last_run: dict[str, Any] = {}
        self._loop: Loop | None = None
        self.ceiling = False
        """Measure, around each run, what the graph's files give when only read: `read_ceiling`."""
        # What cannot be opened is told at once.
        _ = opening.native

    @property
    def _opened(self) -> _native.Graph:
        return self._opening.native

    @property
    def device_why(self) -> str:
        """Why algorithms run where they do; `last_run` has it too."""
        return self._opening.device_why

    @property
    def io(self) -> str:
        """The read engine that it was opened with, by the name that `open` was given."""
        return self._opening.io

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._opening.closed

    # What NetworkX asks of a graph before it hands it to its backend (`tiergraph.nx_backend`).
    __networkx_backend__ = "tiergraph"

    def is_directed(self) -> bool:
        """Whether an edge has a direction, by NetworkX's name for `directed`."""
        return self.directed

    def is_multigraph(self) -> bool:
        """False: two vertices may have several edges, but these have no names of their own."""
        return False

    def number_of_nodes(self) -> int:
        """How many vertices there are, by NetworkX's name for `vertices`."""
        return self.vertices

    def number_of_edges(self) -> int:
        """How many edges there are, by NetworkX's name for `edges`."""
        return self.edges

    def __len__(self) -> int:
        return self.vertices

    def __iter__(self) -> Iterator[Any]:
        """All vertices in the order of `ids`: by their names where the graph has names."""
        return nodes_of(self)

    def __contains__(self, vertex: object) -> bool:
        """Whether there is a vertex of this name, or of this id where the graph has no names."""
        return bool(find(self, [vertex])[0] >= 0)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in ELSEWHERE:
                raise elsewhere(name)
            return object.__getattribute__(self, name)

    def close(self) -> None:
        """Lets go of the graph's threads, files and memory, the GPU's too.

        What another thread still runs on the graph ends before. A second time does nothing.
        """
        self._opening.close()
        self._forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _forget(self) -> None:
        """Drops what was read of the graph."""
        for name in CACHED:
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        return without(self.__dict__, *CACHED) | {"path": os.path.abspath(self.path)}

    def __repr__(self) -> str:
        if self.closed:
            return f"<Graph {self.path}: closed>"
        kind = "directed" if self.directed else "undirected"
        return f"<Graph {self.path}: {self.vertices:,} vertices, {self.edges:,} edges, {kind}>"

    def info(self) -> dict[str, Any]:
        """What the manifest says: counts, codec, order, and bytes an edge by part."""
        info: dict[str, Any] = json.loads(self._opened.info())
        return info

    @cached_property
    def _info(self) -> dict[str, Any]:
        return self.info()

    @property
    def vertices(self) -> int:
        """The number of vertices."""
        return int(self._info["vertices"])

    @property
    def edges(self) -> int:
        """The number of edges; an undirected edge counts once."""
        return int(self._info["edges"])

    @property
    def directed(self) -> bool:
        """Whether an edge has a direction."""
        return bool(self._info["directed"])

    @property
    def weighted(self) -> bool:
        """Whether edges carry weights."""
        return bool(self._info["weighted"])

    @cached_property
    def ids(self) -> NDArray[np.uint64]:
        """The user's vertex ids in ascending order, uint64 of shape (|V|,)."""
        ids = self._opened.ids()
        return np.arange(self.vertices, dtype=np.uint64) if ids is None else ids

    def ids_of(self, start: int, stop: int) -> NDArray[np.uint64]:
        """`ids[start:stop]`, without the others in memory."""
        return self._opened.ids_of(start, stop)

    @property
    def has_own_ids(self) -> bool:
        """Whether ids are the user's own, and not 0 to |V| - 1."""
        return self._opened.has_own_ids()

    @property
    def names(self) -> Names | None:
        """The names of vertices by their ids, where ids were text when it was built; else None.

        `graph.names[7]`, `graph.names.find("alice")`. Vertices may then be given by name:
        `graph.bfs("alice")`.
        """
        return Names(self._opening, self.vertices) if self._info["names"] else None

    @arguments(vertex=checks.vertex)
    def vertex(self, vertex: int | str) -> int:
        """The id of a vertex that is given by its id or, where the graph has names, by its name."""
        return int(self._vertices([vertex])[0]) if isinstance(vertex, str) else vertex

    def _vertices(self, given: Any) -> NDArray[np.uint64]:
        """The ids of vertices that are given by ids or by names."""
        texts = isinstance(given, list) and bool(given) and isinstance(given[0], str)
        return self._opened.find_names(given) if texts else np.asarray(given, np.uint64)

    @cached_property
    def features(self) -> dict[str, Features]:
        """The vertices' features by name: `graph.features["x"].read(ids)`."""
        named = self._info["features"].items()
        return {name: Features(self._opening, name, info) for name, info in named}

    @cached_property
    def labels(self) -> Arrays:
        """The vertices' labels by name, mapped by NumPy, in the order of `ids`."""
        return Arrays(self.path, "labels", self._info["labels"])

    @cached_property
    def splits(self) -> Arrays:
        """Masks of vertices, or lists of positions in `ids`, by name; mapped by NumPy."""
        return Arrays(self.path, "splits", self._info["splits"])

    def degrees(self, direction: Literal["out", "in"] = "out") -> NDArray[np.uint32]:
        """How many edges leave (`out`) or enter (`in`) each vertex, uint32 of shape (|V|,)."""
        return self._opened.degrees(direction)

    def degree_histogram(self, direction: Literal["out", "in"] = "out") -> list[int]:
        """How many vertices have degree 0, 1, 2 to 3, 4 to 7, and so on, as a list of counts.

        Place 0 counts degree 0, place i the degrees of i binary digits: 2^(i - 1) to 2^i - 1.
        Reads 4 bytes a vertex and holds 1 MiB of them.
        """
        return self._opened.degree_histogram(direction)

    @arguments(vertex=checks.vertex)
    def neighbors(
        self, vertex: int | str, *, direction: Literal["out", "in"] = "out"
    ) -> NDArray[np.uint64]:
        """The ids of the neighbours of `vertex`, uint64, ascending; once for each edge.

        Those that its edges lead to (`out`), or those whose edges lead to it (`in`). Reads a page
        or some; `in` of a graph that was built for analytics reads a strip of tiles.
        """
        return self._opened.neighbors(self.vertex(vertex), direction)

    def edge_batches(self) -> Iterator[tuple[NDArray[Any], ...]]:
        """All edges in batches `(src, dst)`, or `(src, dst, weights)`, as `tiergraph.build` takes.

        Ids are uint64, weights float64, of shape (n,); a batch has some hundred thousand edges. An
        edge without a direction comes once. The order is that of the graph's files, and the same
        every time.
        """
        yield from self._opened.edges()

    def export(self, path: PathLike) -> None:
        """Writes the edges to `path`: `.parquet`, `.csv`, `.txt`, `.mtx`, `.npz` or `.graph`.

        Parquet and CSV have columns `src`, `dst` and, of a weighted graph, `weight`, by ids; text
        is the same without a header. Matrix Market, SciPy (`.npz`) and METIS (`.graph`) count
        vertices by their places in `ids`; `.npz` and `.graph` have an edge without a direction both
        ways, and METIS has no self-loops. These two have the whole graph in memory, at some 40
        bytes an edge; the others hold a batch, and names all at once. What stood at `path` stays
        until the file is whole. Raises `InputError` for what a format cannot hold.
        """
        export(self, path)

    def to_scipy(self) -> Any:
        """The edges as a SciPy CSR array of shape (|V|, |V|), float64: weights, or ones.

        Row and column i are `ids[i]`; an edge without a direction is there both ways, repeated
        edges are summed. Takes some 40 bytes of memory an edge while it is made.
        """
        return to_scipy(self)

    @arguments(limit=whole())
    def to_networkx(self, *, limit: int = 2_000_000) -> Any:
        """The graph as `networkx.DiGraph` or `Graph`, with ids as nodes and `weight`s.

        `MultiDiGraph` or `MultiGraph`, where an edge is there more than once.
        Raises `InputError` for more than `limit` edges: NetworkX takes about 500 bytes of memory
        for one. Its functions run on this graph as it is, too (`networkx.pagerank(graph)`).
        """
        return to_networkx(self, limit)

    @arguments(vertices=checks.vertices, path=checks.path, overwrite=truth)
    def subgraph(
        self,
        vertices: Vertices,
        path: PathLike,
        *,
        overwrite: bool = False,
    ) -> dict[str, Any]:
        """Writes the edges between these `vertices` as a new graph, which keeps their ids.

        Gives what `tiergraph.build` does. One pass over the edges. Of the vertices, those with an
        edge between them are in the new graph. Features, labels and splits are not.
        """
        from .write import build

        wanted = np.unique(self._vertices(vertices))
        return build(
            inside(self, wanted),
            path,
            undirected=not self.directed,
            ids="map" if self.names is None else "names",
            overwrite=overwrite,
        )

    @arguments(
        starts=checks.vertices,
        length=whole(1, 2**20),
        repeat=count,
        p=number(0, open_below=True),
        q=number(0, open_below=True),
        walks=count,
    )
    def random_walks(
        self,
        starts: Vertices | None = None,
        *,
        length: int = 80,
        repeat: int = 1,
        p: float = 1.0,
        q: float = 1.0,
        seed: int = 0,
        walks: int | None = None,
        progress: _native.Progress | None = None,
    ) -> Iterator[NDArray[np.uint64]]:
        """Random walks along the edges, in batches of ids: uint64 of shape (n, `length` + 1).

        One walk from each of `starts` (all ids), in their order, and all of that `repeat` times. A
        step takes one of the edges that leave a vertex, evenly; where none leaves, the walk stays.
        With `p` and `q`, node2vec's: the step back weighs 1/`p`, one to a neighbour of the vertex
        before weighs 1, others 1/`q`, each of which is to be finite; all neighbours are in memory
        then, at 4 bytes each. A batch has so many `walks`, by default those of 2^24 vertices. A
        seed's walks are the same whatever the threads, the memory and the batches. (Grover and
        Leskovec, 2016.)
        """
        ids = self.ids if starts is None else self._vertices(starts)
        size = walks or max(1, (1 << 24) // (length + 1))
        for turn in range(repeat):
            for begin in range(0, len(ids), size):
                part, first = ids[begin : begin + size], turn * len(ids) + begin
                how = (part, length, p, q, seed, first, progress)
                yield self._run(partial(self._opened.walks, *how))

    @arguments(
        pairs=checks.pairs,
        by=choice("jaccard", "overlap", "common", "adamic_adar", "resource_allocation"),
    )
    def similarity(
        self,
        pairs: ArrayLike,
        *,
        by: Literal[
            "jaccard", "overlap", "common", "adamic_adar", "resource_allocation"
        ] = "jaccard",
        progress: _native.Progress | None = None,
    ) -> NDArray[np.float64]:
        """How similar two vertices are by their neighbours, for each of `pairs`: float64, (p,).

        `pairs` are ids, or names, of shape (p, 2), or `[]`. By the different neighbours that edges
        of both lead to: `common` counts them; `jaccard` divides by those that either has (Jaccard,
        1901), `overlap` by those of the vertex that has fewer, 0 where there are none;
        `adamic_adar` adds 1 / ln d for each, and `resource_allocation` 1 / d, where d edges lead to
        it (Adamic and Adar, 2003; Zhou, Lü and Zhang, 2009). In any memory: where not all lists of
        neighbours fit, part by part. 84 bytes a pair are held beside what is returned. On a GPU
        where the lists fit it: counts are the same, sums but for their last bits.
        """
        how = (self._vertices(pairs), WEIGHED.get(by, "alike"), progress)
        sums, neighbors = self._run(partial(self._opened.in_common, *how))
        if by not in ("jaccard", "overlap"):
            return sums
        first, second = neighbors.T
        either = np.add(first, second, dtype=np.uint64) - sums
        of = either if by == "jaccard" else np.minimum(first, second)
        similar: NDArray[np.float64] = np.zeros_like(sums)
        np.divide(sums, of, out=similar, where=of > 0)
        return similar

    @arguments(columns=None)
    def table(self, **columns: ArrayLike) -> Any:
        """A pyarrow table of `vertex`, the ids, and results by the names they are given.

        Of a graph with names, `name` comes next.

        `graph.table(rank=graph.pagerank())`: each column has shape (|V|,), in the order of `ids`;
        the table shares their memory, and pandas, Polars and DuckDB take it. Raises `InputError`
        for columns of other lengths, and without pyarrow.
        """
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        for name, values in arrays.items():
            if values.shape != (self.vertices,):
                raise InputError.of(
                    "make a table of", name, expected=f"shape ({self.vertices},)", got=values.shape
                )
        if "vertex" in arrays:
            raise InputError.of("make a table of", "vertex", expected="another name than the ids'")
        return results.table(self.ids, arrays, self.names)

    def pagerank(
        self,
        *,
        damping: float = 0.85,
        iterations: int | None = None,
        tolerance: float | None = None,
        sources: Vertices | None = None,
        trace: PathLike | None = None,
        progress: _native.Progress | None = None,
    ) -> Floats:
        """PageRank as LDBC Graphalytics defines it, float32 of shape (|V|,); the ranks sum to 1.

        Starts at 1/|V|, teleports with (1 - damping)/|V| and spreads the mass of sinks evenly; with
        `sources`, personalised: it teleports to these ids alone, in proportion to how often each is
        there, as igraph's does to `reset_vertices`. Stops after `iterations` (100), or
        once the ranks of all vertices together change by less than `tolerance` (10^-6 where neither
        is given); `last_run["converged"]` tells. One pass over the edges an iteration.
        """
        wanted = None if sources is None else self._vertices(sources)
        return self._run(
            lambda: self._opened.pagerank(
                damping, iterations, tolerance, wanted, _path(trace), progress
            )
        )

    @arguments(largest=whole())
    def wcc(
        self,
        *,
        largest: int | None = None,
        trace: PathLike | None = None,
        progress: _native.Progress | None = None,
    ) -> NDArray[np.uint64]:
        """Weakly connected components: the smallest id in each vertex's, uint64 of shape (|V|,).

        One pass over the edges. With `largest`, `last_run` also has how many `components` there
        are, the vertices of the `largest_component`, `component_sizes` (place i counts components
        of 2^i to 2^(i + 1) - 1 vertices), and `largest`: names and sizes of so many components.
        """
        return self._run(lambda: self._opened.wcc(largest, _path(trace), progress))

    def bfs(
        self,
        source: int | str,
        *,
        trace: PathLike | None = None,
        progress: _native.Progress | None = None,
    ) -> NDArray[np.int32]:
        """Hops from vertex `source` along the edges, int32 of shape (|V|,); -1: no path leads."""
        start = self.vertex(source)
        return self._run(lambda: self._opened.bfs(start, _path(trace), progress))

    def sssp(
        self,
        source: int | str,
        *,
        trace: PathLike | None = None,
        progress: _native.Progress | None = None,
    ) -> NDArray[np.float64]:
        """The least total weight from vertex `source`, float64 of shape (|V|,); `inf`: no path.

        Without weights, every edge weighs 1, and a breadth-first search finds the distances. With
        weights, or where the memory does not hold that search, a pass goes over the tiles whose
        sources fell in the one before; where passes are many, `last_run["lists_why"]` says what
        memory would make them fewer.
        """
        start = self.vertex(source)
        return self._run(lambda: self._opened.sssp(start, _path(trace), progress))

    @arguments(weights=truth)
    def propagate(
        self,
        x: ArrayLike | torch.Tensor,
        *,
        reduce: Literal["sum", "min", "max"] = "sum",
        transpose: bool = False,
        weights: bool = False,
        trace: PathLike | None = None,
        progress: _native.Progress | None = None,
    ) -> Any:
        """One pass over the edges: y[v] = the `reduce` of x[u] over the edges u to v.

        `x` has shape (|V|,) or (|V|, F), float32 or float64 (anything else becomes float64), in
        the order of `ids`; `y` has its shape and dtype. `transpose` goes against the edges;
        `weights` multiplies each x[u] by the edge's weight. A vertex with no edge gets the
        reduction's identity: 0, `inf` or `-inf`. NaN among a vertex's values gives it NaN, as
        NumPy's `add`, `minimum` and `maximum` do. This is the primitive to write own algorithms on.

        Where `x` is a PyTorch tensor on the GPU that the graph was opened on, so is `y`, and no
        value leaves the GPU; gradients do not flow through it.
        """
        if is_on_gpu(x):
            how = (reduce, transpose, weights, _path(trace), progress)
            return self._run(lambda: propagate_tensor(self._opening, x, self.vertices, how))
        values = to_numbers(x, "x")
        dtype = np.float32 if values.dtype == np.float32 else np.float64
        values = np.ascontiguousarray(values, dtype=dtype)
        if values.ndim not in (1, 2) or values.shape[0] != self.vertices:
            raise InputError.of(
                "propagate",
                "x",
                expected=f"shape ({self.vertices},) or ({self.vertices}, F)",
                got=values.shape,
            )
        return self._run(
            lambda: self._opened.propagate(
                values, reduce, transpose, weights, _path(trace), progress
            )
        )

    @arguments(columns=count)
    def propagate_bytes(self, columns: int) -> int:
        """The most bytes that `propagate` takes for float32 values of shape (|V|, `columns`)."""
        return self._opened.propagate_bytes(columns)

    def pagerank_bytes(self) -> int:
        """The bytes of memory that `pagerank` takes at least, beside an opened graph's own."""
        return self._opened.pagerank_bytes()

    def drop_checkpoint(self) -> None:
        """Deletes what the last run would have gone on from, had it been killed."""
        if "checkpoint" in self.last_run:
            Path(self.last_run["checkpoint"]).unlink(missing_ok=True)

    @arguments(step=checks.called, name=checks.word, options=checks.by_name)
    def fixed_point(
        self,
        step: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        first: ArrayLike,
        *,
        iterations: int,
        tolerance: float,
        name: str,
        options: dict[str, Any],
    ) -> NDArray[np.float64] | None:
        """Where `step` leads from `first`, once it changes all values together by less.

        Values are finite float64 of shape (|V|,). None where `iterations` are not enough;
        `last_run` says how much each changed them (`measure` of its `details`), and what all runs
        in the steps read and took. The loop leaves checkpoints as algorithms do, under `name` and
        `options`, which tell it from others: JSON's values, and those of NumPy. One that ends
        without a result leaves its last one, from which it goes on with more `iterations`.
        """
        start = to_values(first, "first", self.vertices)
        outer, loop = self._loop, Loop(self._opening, name)
        with self._measuring_ceiling():
            self._loop = loop
            try:
                values = loop.run(step, start, iterations, tolerance, options)
            finally:
                self._loop = outer
            self._note(loop.report())
        if not loop.is_reached:
            return None
        if not self._opening.for_run:
            self.drop_checkpoint()
        return values

    def _by_name(
        self,
        name: str,
        trace: PathLike | None,
        progress: _native.Progress | None,
        options: dict[str, Any],
    ) -> NDArray[Any]:
        if options.get("sources") is not None:
            options = options | {"sources": self._vertices(options["sources"])}
        given = options_json(options)
        return self._run(lambda: self._opened.algorithm(name, given, _path(trace), progress))

    def _run(self, call: Callable[[], tuple[Result, str]]) -> Result:
        with self._measuring_ceiling():
            result, stats = call()
            said: dict[str, Any] = json.loads(stats)
            # An algorithm says it itself where it ran elsewhere.
            why = said.pop("device_why", self.device_why)
            self._note({"graph": self.path} | said | {"device_why": why})
        if not self._opening.for_run:
            self.drop_checkpoint()
        return result

    def _note(self, report: dict[str, Any]) -> None:
        """Has `last_run` say what a run said, and the loop that it is a step of, if any, add it."""
        self.last_run = report | {"peak_rss_bytes": _native.peak_rss_bytes()}
        if self._loop is not None:
            self._loop.add(self.last_run)

    @contextmanager
    def _measuring_ceiling(self) -> Iterator[None]:
        """Where `ceiling` is set, bare reads around a run, not around the runs that it is made of.

        A run that fails has none after it.
        """
        if not self.ceiling:
            yield
            return
        before = self._opened.measure_ceiling(CEILING_SECONDS)
        self.ceiling = False
        try:
            yield
        finally:
            self.ceiling = True
        after = self._opened.measure_ceiling(CEILING_SECONDS)
        self.last_run["read_ceiling"] = (before + after) / 2


def _path(path: PathLike | None) -> str | None:
    return None if path is None else os.fspath(path)
