"""The contract of the native part (`crates/py`).

Every call that works for longer than a moment releases the GIL and looks for Ctrl-C about ten
times a second; it then stops its workers and raises `KeyboardInterrupt`. Failures are the classes
of `tiergraph.errors`. JSON goes over as text, so that the names of its keys are written once, in
Rust; in option objects an absent key means the native default. Vertex arrays are in the user's
order: ascending user ids.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

Progress: TypeAlias = Callable[[str, int, int, str], object]
"""`(stage, done, total, unit)`, a few times a second; a total of 0 is not known."""

Given: TypeAlias = tuple[str, str | Iterator[NDArray[np.float32]] | Iterator[bytes]]
"""What is stored with the vertices: `{role, name, source, dtype, rows, allow_nan}` as JSON, and
the path of a `.npy` file, or batches of feature rows, or the bytes of a `.npy` file in pieces.
Iterators are asked from another thread."""

__version__: str

def parse_size(text: str) -> int:
    """Reads `2GiB`, `512M` or `1048576` as bytes."""

def format_size(size: int) -> str:
    """Writes bytes as `1.5 GiB`."""

def open(path: str, memory: int | None, io: str, threads: int | None) -> Graph: ...

class Graph:
    """An opened graph under a memory budget."""

    def info(self) -> str: ...
    def ids(self) -> NDArray[np.uint64] | None:
        """The user's ids, ascending; None when they are 0 to |V| - 1."""

    def degrees(self, direction: str) -> NDArray[np.uint32]: ...
    def read_features(self, name: str, ids: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Rows of the features `name`, of shape (n, D)."""

    def measure_ceiling(self, seconds: float) -> float:
        """Bytes a second that this graph's own files give through its engine, bare."""

    def pagerank(
        self,
        damping: float,
        iterations: int | None,
        tolerance: float | None,
        sources: NDArray[np.uint64] | None,
        trace: str | None,
        progress: Progress | None,
    ) -> tuple[NDArray[np.floating[Any]], str]: ...
    def wcc(self, trace: str | None, progress: Progress | None) -> tuple[NDArray[np.uint64], str]:
        """Each vertex's component, named by the smallest user id in it."""

    def bfs(
        self, source: int, trace: str | None, progress: Progress | None
    ) -> tuple[NDArray[np.int32], str]: ...
    def sssp(
        self, source: int, trace: str | None, progress: Progress | None
    ) -> tuple[NDArray[np.float64], str]: ...
    def propagate(
        self,
        x: NDArray[np.floating[Any]],
        reduce: str,
        transpose: bool,
        weights: bool,
        trace: str | None,
        progress: Progress | None,
    ) -> tuple[NDArray[np.floating[Any]], str]: ...

class Builder:
    """Receives edges by batches, sorts them outside memory and writes a graph."""

    def __init__(
        self, path: str, options_json: str, given: list[Given], progress: Progress | None
    ) -> None: ...
    def push(
        self,
        src: NDArray[np.integer[Any]],
        dst: NDArray[np.integer[Any]],
        weights: NDArray[np.float64] | None,
    ) -> None:
        """Ids of 32 or 64 bits, signed or not."""
    def finish(self) -> str: ...
    def abort(self) -> None:
        """Drops everything written so far; a graph that stood at the path stays."""

class Batch(TypedDict):
    """A mini-batch of n nodes and e edges, in PyG's names."""

    number: int
    batch_size: int
    num_sampled_nodes: list[int]
    num_sampled_edges: list[int]
    edge_index: NDArray[np.int64]
    """Local, of shape (2, e): sampled neighbours, and the nodes that they were sampled for."""
    n_id: NDArray[np.int64]
    """The user's ids, bit for bit."""
    position: NDArray[np.int64]
    """Places in the user's order."""
    degree: NDArray[np.int64]
    """Neighbours in the whole graph, in the sampled direction."""
    e_id: NDArray[np.int64]
    """The arcs' numbers in the graph's file of neighbours."""
    batch: NDArray[np.int64]
    """Disjoint batches: each node's seed. Else empty."""
    input_id: NDArray[np.int64]
    """The seeds' places in the list of all."""
    x: NDArray[np.float32] | None
    """Of shape (n, D), in the memory that it was gathered in."""

class Loader:
    """Makes mini-batches of a graph, which it opens for itself."""

    def __init__(self, path: str, options_json: str, seeds: NDArray[np.uint64]) -> None: ...
    def kept(self) -> str:
        """What is kept in memory."""

    def epoch(self, number: int, first: int) -> Epoch: ...

class Epoch:
    """The batches of one epoch, prepared by threads of their own."""

    def next(self) -> Batch | None: ...
    def stats(self) -> str: ...
    def close(self) -> None:
        """Stops what prepares further batches."""

def build_file(
    path_in: str,
    path_out: str,
    options_json: str,
    given: list[Given],
    progress: Progress | None,
) -> str: ...
def add(path: str, options_json: str, given: list[Given], progress: Progress | None) -> str:
    """`features`, `labels` and `splits` that the graph then has."""

def generate(
    kind: str, params_json: str, path_out: str, options_json: str, progress: Progress | None
) -> str: ...
def verify(path: str, progress: Progress | None) -> str:
    """Files, blocks and bytes read, and `damage`: a list of `{file, block, offset, what}`."""

def bench_io(
    path: str, engine: str, block_bytes: int, depth: int, threads: int | None, seconds: float
) -> str:
    """Random reads of a file, or of a graph's blocks: one measurement."""
