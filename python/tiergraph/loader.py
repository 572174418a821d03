"""Mini-batches for PyG models, prepared from storage while others are trained on.

The names, meanings and batch attributes are PyG's (`torch_geometric.loader.NeighborLoader`), so
that a training loop stays as it is. Threads of the native part sample and gather; nothing is
forked, and nothing is pickled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native, pyg
from .batches import Prepared, Source
from .calls import taking
from .dataloader import take
from .epochs import Loader
from .errors import BudgetError
from .gpu_loader import GpuBatches, check_device, not_sampled_there
from .graph import Graph
from .handles import Handle, without
from .hetero import HeteroGraph, is_hetero
from .inputs import (
    Chosen,
    LoaderOptions,
    PathLike,
    Placement,
    Sampling,
    check_sampling,
    edge_features_of,
    features_of,
    graph_of,
    labels_of,
    node_times_of,
    seeds_of,
    times_of,
)
from .moving import Moved, fall_back
from .ranks import Rank
from .shrinking import warn_of_shrinking
from .sizes import to_bytes

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data as Batch

CACHED = ("seeds", "_labels", "_node_times", "_times")
"""What a loader derives from its graph and what it was given."""


@taking(take)
class NeighborLoader(Loader):
    """Batches of seeds with sampled neighbours, as `torch_geometric.data.Data`.

    Of a heterogeneous graph it gives `HeteroData`, as `HeteroNeighborLoader` says.

    `graph` is an opened graph or its path; the loader opens it for itself. `num_neighbors` has one
    fanout a hop, -1 for all. `input_nodes` are the seeds: vertex ids, a mask with a value a vertex,
    the name of one of the graph's splits, or None for all vertices. By position, arguments mean
    what they mean in PyG; `batch_size` goes by its name.

    `weight_attr` names values of edges that neighbours are drawn by, without replacement: twice the
    weight, twice the chance in each draw; weight 0, never. `time_attr` names times of edges, and
    `input_time` has the time of each seed: edges that are later than their seed are not there; of
    the others, `temporal_strategy` takes any (`uniform`, or by weight) or the latest (`last`). Each
    seed then has a tree of its own (`disjoint`). `tiergraph.add_edge_values` stores such values.
    Where `time_attr` names times of nodes, neighbours that are later than their seed are not there,
    and `input_time` is by default the seeds' own.

    A batch has `x` (float32, (n, D)), `y`, `edge_index` (int64, (2, e), local), `n_id` (the user's
    vertex ids), `e_id` (each edge's place among those given to `add_edge_values`; without, or on a
    GPU, its number in the graph), `edge_attr`, the weights and times that it was sampled by under
    their own names, `seed_time`, `input_id` (the seeds' places in `input_nodes`), `batch_size`,
    `num_sampled_nodes` and `num_sampled_edges` (by hop), and for disjoint batches `batch`; beyond
    PyG's, `degree` (neighbours in the whole graph). Seeds come first. `x` lies where it was
    gathered: no copy is made. Ids of 2^63 and more come as negative numbers:
    `n_id.numpy().view("uint64")`.

    Each `iter()` is the next epoch, with a shuffle and neighbours of its own; `set_epoch` goes to
    another. Batches follow from (`seed`, epoch, number) alone, whatever the memory and the threads.
    Of `world_size` processes, this one has the batches of `rank`: by default those of
    `torch.distributed`'s process group, where it is initialised, else all. Ranks share each epoch's
    seeds and have equally many batches (`docs/sampling.md`). `state_dict` and `load_state_dict`
    go on in the middle of an epoch.

    - `memory` bounds what the loader holds, batches and cache included, `"2GiB"` or bytes; three
      quarters of what the machine has free.
    - `threads` prepare batches (the machine's cores), `window` batches (4) together, which share
      reads; `prefetch` may be begun beyond a window and not yet taken: a window for each thread. On
      a GPU, `prefetch` are begun before the last is taken: 1, or 3 where rows are read.
    - `placement` says what is kept in memory where not all fits: what saves most reads (`unified`),
      neighbours first (`topology`), `features` first, or this share of the memory for features.
      `presample` batches (an epoch's) are sampled to see what is worth keeping.
    - `share_pages` reads a page once for all rows of a window on it; without, once a row.
    - `direction` says which neighbours are sampled: `in`, as PyG does, so that messages go along
      edges, or `out`. `io` names the read engine: `uring`, `posix`, or `auto`.
    - `features` become `x` and `edge_features` become `edge_attr`: by name, or those named so where
      there are (True), or none (False or None). `labels` become `y`: those of this name, or `y`.
    - `device` (`cpu`, `cuda`, `cuda:N`) is where batches are made and handed over. On a GPU, hot
      rows and neighbours stay in its memory within `device_memory` (half of what is free), others
      in pinned memory of the host within `memory`; rows that fit neither are read from storage.
      `multiprocessors` is the most of the GPU's multiprocessors that batches are prepared on, in a
      green context, so that training has the others for itself (GPUs set groups apart: `kept()`
      has what it came to). Without green contexts (before CUDA 12.5) batches are prepared on all,
      and a `FallbackWarning` says so.

    Arguments of PyTorch's `DataLoader` (`num_workers`, `pin_memory`, …) are taken with a
    `FallbackWarning` that says what happens instead; those that would change batches (`sampler`,
    `collate_fn`, …) are refused.

    Raises `InputError` for what cannot be sampled, `BudgetError` where `memory` does not hold what
    its threads sample with; iterating raises `BudgetError` where a batch does not fit, `IoError`
    and `FormatError` for what cannot be read or is damaged.

    With `device="cuda"`, kernels make the batches. What they do not sample (weights, times,
    disjoint trees, values of edges, several types), and neighbours that `memory` and
    `device_memory` do not hold, the CPU prepares, and the batches are moved: a `FallbackWarning`
    and `kept()` say so.
    """

    _device: torch.device | None = None
    """Where the CPU's batches are moved to."""
    _why: str | None = None
    _seeds_vary: ClassVar[bool] = False
    """Whether epochs have other seeds than those that the loader is made with."""
    _of_hetero: ClassVar[type[NeighborLoader]]
    """What loads heterogeneous graphs."""

    def __init_subclass__(cls, *, hetero: bool = False, **options: Any) -> None:
        """Notes the subclass that loads heterogeneous graphs."""
        super().__init_subclass__(**options)
        if hetero:
            NeighborLoader._of_hetero = cls

    def __init__(
        self,
        graph: Graph | HeteroGraph | PathLike,
        num_neighbors: Sequence[int],
        input_nodes: ArrayLike | str | None = None,
        input_time: ArrayLike | None = None,
        replace: bool = False,
        subgraph_type: str = "directional",
        disjoint: bool = False,
        temporal_strategy: Literal["uniform", "last"] = "uniform",
        time_attr: str | None = None,
        weight_attr: str | None = None,
        transform: Callable[[Batch], Batch] | None = None,
        *,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        seed: int = 0,
        memory: int | str | None = None,
        threads: int | None = None,
        window: int | None = None,
        prefetch: int | None = None,
        placement: Placement = "unified",
        share_pages: bool = True,
        presample: int | None = None,
        direction: Literal["in", "out"] = "in",
        io: str = "auto",
        features: Chosen = True,
        labels: str | None = None,
        edge_features: Chosen = True,
        device: str = "cpu",
        device_memory: int | str | None = None,
        multiprocessors: int | None = None,
    ) -> None:
        check_sampling(replace, subgraph_type)
        sampling = Sampling(
            num_neighbors,
            batch_size=batch_size,
            shuffle=shuffle,
            drop_last=drop_last,
            disjoint=disjoint,
            weight_attr=weight_attr,
            time_attr=time_attr,
            temporal_strategy=temporal_strategy,
            rank=Rank(rank, world_size),
        )
        options = LoaderOptions(
            seed=seed,
            memory=memory,
            threads=threads,
            window=window,
            prefetch=prefetch,
            placement=placement,
            share_pages=share_pages,
            presample=presample,
            direction=direction,
            io=io,
            features=features,
            labels=labels,
            edge_features=edge_features,
            device=device,
            device_memory=device_memory,
            multiprocessors=multiprocessors,
        )
        self.transform = transform
        self._set_up(graph, input_nodes, input_time, sampling, options)

    if not TYPE_CHECKING:

        @wraps(__init__, assigned=())
        def __new__(cls, graph=None, *_arguments, **_options):
            """A loader of the graph's kind, which Python then initialises."""
            if cls is NeighborLoader and is_hetero(graph):
                return super().__new__(cls._of_hetero)
            return super().__new__(cls)

    def _set_up(
        self, graph: Any, input_nodes: Any, input_time: Any, how: Sampling, options: LoaderOptions
    ) -> None:
        """Looks at all that the loader was told, and opens the graph with it."""
        pyg.geometric("data")
        check_device(options.device or "cpu")
        self._how, self._options = how, options
        self._owns_graph = not isinstance(graph, Graph)
        graph = graph_of(graph)
        self._input_nodes, self._input_time = input_nodes, input_time
        self.seeds = seeds_of(graph, input_nodes)
        super().__init__(graph, how.batch_size, how.drop_last, how.rank)
        if not isinstance(input_nodes, str | None):
            self._input_nodes = self.seeds
        self._handle: Handle[_native.Loader | GpuBatches] = Handle("loader", graph.path)
        # What cannot be loaded is told at once.
        _ = self._labels, self._times, self._part

    @cached_property
    def seeds(self) -> NDArray[np.uint64]:
        """The seeds of an epoch, as vertex ids."""
        return seeds_of(self.graph, self._input_nodes)

    @cached_property
    def _labels(self) -> NDArray[Any] | None:
        """A value for each vertex, in the user's order."""
        return labels_of(self.graph, self._options.labels)

    @cached_property
    def _node_times(self) -> NDArray[np.int64] | None:
        """A time for each vertex, where nodes have some."""
        return node_times_of(self.graph, self._how.time_attr)

    @cached_property
    def _times(self) -> NDArray[np.int64] | None:
        """The seeds' times."""
        times = self._input_time
        if self._node_times is not None and times is None:
            places = np.searchsorted(np.asarray(self.graph.ids), self.seeds)
            times = self._node_times.take(places, mode="clip")
        return times_of(self._how.time_attr, times, len(self.seeds))

    @property
    def _part(self) -> _native.Loader | GpuBatches:
        """What makes batches, opened in this process."""
        return self._handle.get(self._open)

    def _open(self) -> _native.Loader | GpuBatches:
        native = self._how.native() | self._options.native()
        native |= {
            "num_neighbors": self._how.num_neighbors,
            "seeds_vary": self._seeds_vary,
            "features": features_of(self.graph, self._options.features),
            "edge_features": edge_features_of(self.graph, self._options.edge_features),
        }
        device = self._options.device or "cpu"
        if device != "cpu":
            made = self._open_on(device, native)
            self._handle.device = device
            if isinstance(made, GpuBatches):
                return made
            self._move_to(device, made)
        loaded = _native.Loader(self.graph.path, json.dumps(native), self.seeds, self._times)
        warn_of_shrinking(json.loads(loaded.kept()))
        return loaded

    def _open_on(self, device: str, native: dict[str, Any]) -> GpuBatches | str:
        """What makes batches on a GPU; or why none can be made there."""
        why = not_sampled_there(native)
        if why is not None:
            return why
        memory = to_bytes(self._options.device_memory)
        try:
            return GpuBatches(self.graph, native, self.seeds, device, memory, self._labels)
        except BudgetError as error:
            return str(error)

    def _move_to(self, device: str, why: str) -> None:
        """Has the CPU's batches moved to a GPU."""
        self._device, self._why = fall_back(device, why), why

    def _inputs(self) -> int:
        return len(self.seeds)

    def _seed(self) -> int:
        return self._options.seed or 0

    def _begin(self, epoch: int, first: int, rank: tuple[int, int]) -> Source:
        part = self._part
        if isinstance(part, GpuBatches):
            return part.epoch(epoch, first, self._cut(), self._transformed)
        return self._prepared(part.epoch(epoch, first, *rank), self.to_data)

    def _prepared(self, native: _native.Epoch, to_data: Callable[[_native.Batch], Batch]) -> Source:
        """Batches that the CPU prepares, where they are to be handed over."""
        prepared = Prepared(native, to_data)
        return prepared if self._device is None else Moved(prepared, self._device)

    def _release(self) -> None:
        self._handle.close()
        if self._owns_graph:
            self.graph.close()

    def _transformed(self, data: Batch) -> Batch:
        return data if self.transform is None else self.transform(data)

    def kept(self) -> dict[str, Any]:
        """What is kept in memory: pages of neighbours and rows of features, of how many.

        On a GPU, also how many multiprocessors prepare batches.
        """
        part = self._part
        if isinstance(part, GpuBatches):
            return part.placed()
        return self._with_fallback(json.loads(part.kept()))

    def rows_on_device(self, most: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]] | None:
        """The features of all vertices where batches are made on a GPU; None where they are not.

        In blocks of at most `most` vertices, as `(positions, rows)` on the GPU: int64 of shape
        (n,), places in the graph's `ids`, and float32 of shape (n, D). Between two epochs.
        """
        part = self._part
        return part.rows(most) if isinstance(part, GpuBatches) else None

    def _with_fallback(self, kept: dict[str, Any]) -> dict[str, Any]:
        return kept if self._why is None else kept | {"made_on": "cpu", "why": self._why}

    def __getstate__(self) -> dict[str, Any]:
        return without(super().__getstate__(), *CACHED)

    def to_data(self, native: _native.Batch) -> Batch:
        """PyG's `Data` over the arrays of a batch."""
        tensor = pyg.torch().from_numpy
        data: Batch = pyg.geometric("data").Data(edge_index=tensor(native["edge_index"]))
        data.num_nodes = len(native["n_id"])
        if native["x"] is not None:
            data.x = tensor(native["x"])
        if self._labels is not None:
            data.y = tensor(self._labels[native["position"]])
        if native["edge_attr"] is not None:
            data.edge_attr = tensor(native["edge_attr"])
        if self._how.weight_attr is not None:
            data[self._how.weight_attr] = tensor(native["weight"])
        if self._how.time_attr is not None:
            of_nodes = self._node_times
            data[self._how.time_attr] = tensor(
                native["time"] if of_nodes is None else of_nodes[native["position"]]
            )
            data.seed_time = tensor(native["seed_time"])
        data.n_id, data.e_id = tensor(native["n_id"]), tensor(native["e_id"])
        data.input_id, data.degree = tensor(native["input_id"]), tensor(native["degree"])
        if len(native["batch"]):
            data.batch = tensor(native["batch"])
        data.batch_size = native["batch_size"]
        data.num_sampled_nodes = native["num_sampled_nodes"]
        data.num_sampled_edges = native["num_sampled_edges"]
        return self._transformed(data)
