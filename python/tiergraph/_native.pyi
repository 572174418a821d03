"""The contract of the native part (`crates/py`).

Every call that works for longer than a moment releases the GIL and looks for Ctrl-C about ten
times a second; it then stops its workers and raises `KeyboardInterrupt`. Failures are the classes
of `tiergraph.errors`. JSON goes over as text, so that the names of its keys are written once, in
Rust; in option objects an absent key means the native default. Vertex arrays are in the user's
order: ascending user ids.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

Progress: TypeAlias = Callable[[str, int, int, str], object]
"""`(stage, done, total, unit)`, a few times a second; a total of 0 is not known."""

Times: TypeAlias = list[tuple[str, NDArray[np.int64]]]
"""Times of vertices by name, in the order of the ids."""
Given: TypeAlias = tuple[
    str,
    str
    | Iterator[NDArray[np.float32]]
    | Iterator[bytes]
    | tuple[Iterator[NDArray[np.float32]], NDArray[np.uint32]],
]
"""What is stored with the vertices: `{role, name, source, dtype, rows, allow_nan}` as JSON, and
the path of a `.npy` file, or batches of feature rows, or the bytes of a `.npy` file in pieces.
Iterators are asked from another thread."""

__version__: str

def parse_size(text: str) -> int:
    """Reads `2GiB`, `512M` or `1048576` as bytes."""

def format_size(size: int) -> str:
    """Writes bytes as `1.5 GiB`."""

def free_memory() -> int:
    """Bytes that this process can take without swapping or being killed, as its cgroup allows."""

def peak_rss_bytes() -> int:
    """The most memory that this process has had resident so far."""

class DeviceOptions(TypedDict):
    """Where algorithms run, and how blocks get there."""

    device: str
    memory: int | None
    transfers: str
    residency: bool
    checksums: bool

def add_library_folders(folders: list[str]) -> None:
    """Looks for NVIDIA's libraries in these folders too."""

def bench_gpu(ordinal: int, bytes: int, seconds: float) -> str: ...
def cuda_devices() -> list[tuple[str, str, int, int]]:
    """The GPUs: name, architecture, bytes of memory free and in all."""

def open(
    path: str,
    memory: int | None,
    io: str,
    threads: int | None,
    modelled: float | None,
    device: DeviceOptions,
    keep_freed: bool,
) -> Graph: ...

class LoopCheckpoints:
    """The checkpoints of a loop whose state is one float64 a vertex."""

    def take(self) -> tuple[int, NDArray[np.float64]] | None:
        """The iterations of an earlier run and its values; None where it begins anew."""

    def keep(self, values: NDArray[np.float64]) -> None:
        """Notes that an iteration ended with these values; writes them if it is time to."""

    def report(self) -> str:
        """What a report says of them, as JSON."""

class Graph:
    """An opened graph under a memory budget."""

    def leave_checkpoints(
        self, directory: str, every: tuple[int | None, float], resume: bool
    ) -> None:
        """Has runs leave checkpoints: after iterations, or None and seconds."""

    def loop_checkpoints(self, name: str, options: str) -> LoopCheckpoints | None:
        """The checkpoints of a loop; None where the graph was opened without."""

    def check_memory(self) -> None:
        """Refuses memory that does not hold the indexes and the workers' buffers."""

    def info(self) -> str: ...
    def ids_of(self, start: int, stop: int) -> NDArray[np.uint64]:
        """The user's ids at positions `start` to `stop`."""

    def has_own_ids(self) -> bool: ...
    def names(self, start: int, stop: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Names of vertices `start` to `stop`: text, and where each begins and the last ends."""

    def find_names(self, names: list[str]) -> NDArray[np.uint64]: ...
    def ids(self) -> NDArray[np.uint64] | None:
        """The user's ids, ascending; None when they are 0 to |V| - 1."""

    def degrees(self, direction: str) -> NDArray[np.uint32]: ...
    def degree_histogram(self, direction: str) -> list[int]:
        """Vertices by the number of binary digits of their degrees."""

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
    def wcc(
        self, largest: int | None, trace: str | None, progress: Progress | None
    ) -> tuple[NDArray[np.uint64], str]:
        """Each vertex's component, named by the smallest user id in it.

        With `largest`, the report has the sizes of components, and lists so many.
        """

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
    def propagate_on_device(
        self,
        x: int,
        y: int,
        width: int,
        is_double: bool,
        reduce: str,
        transpose: bool,
        weights: bool,
        trace: str | None,
        progress: Progress | None,
    ) -> str:
        """As `propagate`, from address `x` to address `y` in the GPU's memory."""

    def edges(self) -> EdgeBatches: ...
    def neighbors(self, id: int, direction: str) -> NDArray[np.uint64]:
        """Ids, ascending, once for each edge."""

    def walks(
        self,
        starts: NDArray[np.uint64],
        length: int,
        p: float,
        q: float,
        seed: int,
        first: int,
        progress: Progress | None,
    ) -> tuple[NDArray[np.uint64], str]:
        """Ids of shape (n, `length` + 1); `first` is the number of the first walk."""

    def in_common(
        self, pairs: NDArray[np.uint64], weighed: str, progress: Progress | None
    ) -> tuple[tuple[NDArray[np.float64], NDArray[np.uint32]], str]:
        """Of pairs of ids, side by side: sums over common neighbours, and (p, 2) neighbours."""

    def algorithm(
        self, name: str, options: str, trace: str | None, progress: Progress | None
    ) -> tuple[NDArray[Any], str]:
        """Runs an algorithm of the registry, with its options as JSON."""

    def propagate_bytes(self, width: int) -> int: ...
    def pagerank_bytes(self) -> int: ...

class EdgeBatches:
    """An iterator over the edges of a graph, by the user's ids."""

    def __iter__(self) -> EdgeBatches: ...
    def __next__(self) -> tuple[NDArray[Any], ...] | None:
        """`(src, dst)` or `(src, dst, weights)`; ends with the last."""

class Builder:
    """Receives edges by batches, sorts them outside memory and writes a graph."""

    def __init__(
        self,
        path: str,
        options_json: str,
        given: list[Given],
        names: Names | None,
        progress: Progress | None,
    ) -> None: ...
    def push(
        self,
        src: NDArray[np.integer[Any]],
        dst: NDArray[np.integer[Any]],
        weights: NDArray[np.float64] | None,
    ) -> None:
        """Ids of 32 or 64 bits, signed or not."""
    def finish(self) -> str: ...
    def finish_with_values(self, options_json: str, node_times: Times) -> EdgeValues:
        """Writes the graph and takes its edges again, before it is put in its place."""
    def abort(self) -> None:
        """Drops everything written so far; a graph that stood at the path stays."""

class Batch(TypedDict):
    """A mini-batch in PyG's names, by the types of the graph: one of each in an ordinary graph."""

    number: int
    batch_size: int
    input_id: NDArray[np.int64]
    """The seeds' places in the list of all."""
    seed_time: NDArray[np.int64]
    """The seeds' times; empty without."""
    nodes: list[NodesOfType]
    edges: list[EdgesOfType]

class NodesOfType(TypedDict):
    """n nodes of one type."""

    n_id: NDArray[np.int64]
    """The user's ids, bit for bit."""
    position: NDArray[np.int64]
    """Places in the user's order."""
    degree: NDArray[np.int64] | None
    """Neighbours in the whole graph, in the sampled direction, where it has one type of each."""
    batch: NDArray[np.int64]
    """Disjoint batches: each node's seed. Else empty."""
    x: NDArray[np.float32] | None
    """Of shape (n, D), in the memory that it was gathered in."""
    num_sampled_nodes: list[int]

class EdgesOfType(TypedDict):
    """e edges of one type."""

    edge_index: NDArray[np.int64]
    """Local, of shape (2, e): sampled neighbours, and the nodes that they were sampled for."""
    e_id: NDArray[np.int64]
    """The user's edges, where values of edges are stored; else the arcs' numbers in the graph's
    file of neighbours."""
    weight: NDArray[np.float32] | None
    """What edges were sampled by, an edge."""
    time: NDArray[np.int64] | None
    values: dict[str, NDArray[np.float32] | NDArray[np.int64]]
    """Other values of the edges, by name."""
    edge_attr: NDArray[np.float32] | None
    """Features of the edges, of shape (e, D)."""
    num_sampled_edges: list[int]

class Loader:
    """Makes mini-batches of a graph, heterogeneous or not, which it opens for itself."""

    def __init__(
        self,
        path: str,
        options_json: str,
        seeds: NDArray[np.uint64],
        times: NDArray[np.int64] | None = None,
    ) -> None: ...
    def kept(self) -> str:
        """What is kept in memory."""

    def epoch(
        self,
        number: int,
        first: int,
        rank: int,
        ranks: int,
        seeds: NDArray[np.uint64] | None = None,
        bounds: list[int] | None = None,
    ) -> Epoch:
        """With `seeds` (the user's ids), the rank's batch i has those `bounds[i]:bounds[i + 1]`."""

class Cut:
    """The batches of an epoch that rank `rank` of `ranks` has."""

    def __init__(
        self, seeds: int, batch_size: int, drop_last: bool, rank: int, ranks: int
    ) -> None: ...
    def __len__(self) -> int: ...
    def number(self, batch: int) -> int:
        """Its number in the whole epoch."""

    def range(self, batch: int) -> tuple[int, int]:
        """Where its seeds begin and end in the epoch's order; beyond the seeds, they come again."""

class Epoch:
    """The batches of one epoch, prepared by threads of their own."""

    def next(self) -> Batch | None: ...
    def stats(self) -> str: ...
    def close(self) -> None:
        """Stops what prepares further batches."""

def is_hetero(path: str) -> bool:
    """Whether there is a heterogeneous graph, sound or not."""

def hetero_info(path: str) -> str:
    """`node_types` and `edge_types`, and what each has."""

class HeteroBuilding:
    """A heterogeneous graph whose parts are being built in a folder of its own."""

    def __init__(self, path: str, overwrite: bool) -> None: ...
    def folder(self) -> str: ...
    def commit(self, types_json: str) -> None:
        """Renames it into place.

        `node_types` has `{name, vertices, graph}`, `edge_types` has `{source, relation,
        destination, edges, graph}`; a `graph` is a name in the folder.
        """

    def abort(self) -> None: ...

class Names:
    """What numbers names: a new one has the next number."""

    def __init__(self) -> None: ...
    @staticmethod
    def of_graph(path: str, memory: int | None) -> Names:
        """Those of a graph, whose numbers are its ids. There will be no others."""
    def number(
        self, columns: Sequence[tuple[NDArray[np.int64], NDArray[np.uint8]]]
    ) -> list[NDArray[np.uint32]]:
        """The numbers of texts, row by row of their columns: where each begins, and the bytes."""
    def stay(self) -> None:
        """Keeps the names after a build, whose edges come again."""

    def __len__(self) -> int: ...

class Components:
    """Connected components of pairs, of ids or of numbers of `names`."""

    def __init__(
        self, options_json: str, names: Names | None, progress: Progress | None
    ) -> None: ...
    def add(self, src: NDArray[np.integer[Any]], dst: NDArray[np.integer[Any]]) -> None: ...
    def add_files(self, paths: list[str], options_json: str) -> None: ...
    def finish(
        self,
    ) -> tuple[
        tuple[NDArray[np.uint64] | None, NDArray[np.uint8] | None],
        NDArray[np.uint64] | None,
        NDArray[np.uint32],
        tuple[int, int, int],
    ]:
        """Ids, or text and where each name ends; the place of each one's least; counts."""

def build_file(
    paths_in: list[str],
    path_out: str,
    options_json: str,
    given: list[Given],
    names: Names | None,
    progress: Progress | None,
) -> str: ...
def build_file_with_values(
    paths_in: list[str],
    path_out: str,
    options_json: str,
    given: list[Given],
    names: Names | None,
    values_json: str,
    node_times: Times,
    progress: Progress | None,
) -> EdgeValues:
    """Writes the graph and takes its edges again, before it is put in its place."""

def choose_columns(path: str, names: list[str], table_json: str) -> str:
    """The places of `src`, `dst` and `weight`, and `notes`; `table_json` is `[kinds, asked]`."""

class EdgeReader:
    """The edges of a file: `(src, dst)` or `(src, dst, weights)`, batch by batch."""

    def __init__(self, paths: list[str], options_json: str, names: Names | None) -> None: ...
    def __iter__(self) -> EdgeReader: ...
    def __next__(self) -> tuple[NDArray[Any], ...]: ...

def add(path: str, options_json: str, given: list[Given], progress: Progress | None) -> str:
    """`features`, `labels` and `splits` that the graph then has."""

class EdgeValues:
    """Receives the edges of a graph by batches, with values that are added to it."""

    def __init__(
        self, path: str, options_json: str, node_times: Times, names: Names | None
    ) -> None:
        """With `names`, in their memory."""
    def push(
        self,
        src: NDArray[np.integer[Any]],
        dst: NDArray[np.integer[Any]],
        columns: list[NDArray[Any]],
    ) -> None:
        """float32 or int64, as announced."""
    def finish(self, given: list[Given], progress: Progress | None) -> str:
        """`edge_values` and `edge_features` that the graph then has; statistics after a build."""
    def abort(self) -> None: ...

def order_features(
    path: str,
    name: str,
    options_json: str,
    seeds: NDArray[np.uint64],
    progress: Progress | None,
) -> str:
    """Moves the rows of the features `name`; what was counted and written."""

def checksum_features(path: str, name: str, memory: int | None, progress: Progress | None) -> str:
    """Stores a checksum of each row of the features `name`; what was read."""

def generate(
    kind: str, params_json: str, path_out: str, options_json: str, progress: Progress | None
) -> str: ...
def lines(
    columns: Sequence[NDArray[np.uint64] | NDArray[np.int64] | NDArray[np.float64]], separator: str
) -> bytes:
    """Rows of numbers as text that is read back as they are: a line a row."""

def check_array(path: str, name: str) -> None:
    """Refuses the file `labels/NAME.npy` or `splits/NAME.npy` if it is not the graph's."""

def verify(path: str, progress: Progress | None) -> str:
    """Files, blocks and bytes read, and `damage`: a list of `{file, block, offset, what}`."""

def why_not(what: str) -> str | None:
    """Why `io_uring` or `nvrtc` cannot be used; None if it can."""

def drives() -> str:
    """The NVMe drives of this machine: a list of objects."""

def write_drives(
    path: str,
    addresses: list[str],
    force: bool,
    progress: Callable[[str, int, int, str], None] | None,
) -> int:
    """Writes a graph's blocks to raw drives; the bytes written."""

def release_drive(address: str) -> None:
    """Gives a drive to the kernel's driver."""

def bench_io(
    path: str, engine: str, block_bytes: int, depth: int, threads: int | None, seconds: float
) -> str:
    """Random reads of a file, or of a graph's blocks: one measurement."""

class GpuReadBench:
    """A table in host memory, and how fast a GPU reads rows of it from software drives."""

    def __init__(self, table_bytes: int, ordinal: int) -> None: ...
    def link(self) -> float:
        """Bytes a second that are copied from pinned host memory to the GPU."""

    def measure(self, load_json: str) -> str:
        """One measurement: what `bench/gpu/drives/drive_reads.py` asks for, as JSON."""

def panic(place: str) -> None:
    """Panics on the thread of a `call`, of a `team`, on a `scoped` one, or `here`: for tests."""

def plan(question: str) -> str:
    """Plans hardware for a training job; question and answer are JSON."""

def plan_passes(question: str) -> str:
    """Iterations of a run with other drives and memory; question and answer are JSON."""

def measured_job(measured: str) -> str:
    """The job of which this was measured; both are JSON."""

class GpuLoader:
    """Makes mini-batches on a GPU, in memory that the caller allocates there."""

    def __init__(
        self,
        path: str,
        options_json: str,
        seeds: NDArray[np.uint64],
        times: NDArray[np.int64] | None,
        ordinal: int,
        device_memory: int | None,
        sampled_on_cpu: bool,
    ) -> None: ...
    def placed(self) -> str:
        """Where neighbours and rows are, and how many multiprocessors prepare batches."""

    def kept_to_sample(self) -> str:
        """What of the graph the CPU keeps to sample; `null` where the GPU samples."""

    def allocating(self) -> int:
        """The CUDA stream that the arrays of batches are allocated on."""

    def handing(self) -> int:
        """The CUDA stream that has waited for each batch when it is handed over."""

    def epoch(
        self,
        number: int,
        first: int,
        rank: int,
        ranks: int,
        allocate: Callable[[int, int], Any],
        seeds: NDArray[np.uint64] | None = None,
        bounds: list[int] | None = None,
    ) -> GpuEpoch:
        """As `Loader.epoch`; `allocate` makes arrays with room for so many nodes and edges.

        It gives an object with the `addresses` of `n_id`, `degree` (None if it is not wanted),
        `edge_index`, `e_id`, `x` and `input_id`.
        """

    def rows(self, most: int, allocate: Callable[[int, int], Any]) -> GpuEpoch:
        """The features of all vertices, at most `most` at a time, as batches without edges."""

class GpuEpoch:
    """The batches of one epoch on a GPU, some of them begun ahead."""

    def next(self) -> GpuBatch | None: ...
    def stats(self) -> str: ...
    def close(self) -> None:
        """Gives up the batches that were begun."""

class GpuBatch(TypedDict):
    """A batch whose arrays are filled in order with the stream for handing over."""

    number: int
    batch_size: int
    buffers: Any
    """What `allocate` gave."""
    num_sampled_nodes: list[int]
    num_sampled_edges: list[int]
    by_cpu: Batch | None
    """The batch without features, where the CPU sampled it: the GPU has its nodes alone then."""
