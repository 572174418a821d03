"""Mini-batches for PyG models, prepared from storage while others are trained on.

The names, meanings and batch attributes are PyG's (`torch_geometric.loader.NeighborLoader`), so
that a training loop stays as it is. Threads of the native part sample and gather; nothing is
forked, and nothing is pickled.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from . import _native, pyg
from .batches import Batches
from .errors import BudgetError
from .gpu_loader import GpuBatches, check_device, not_sampled_there
from .graph import Graph, open
from .hetero import is_hetero
from .inputs import (
    LoaderOptions,
    PathLike,
    check_sampling,
    edge_features_of,
    features_of,
    labels_of,
    node_times_of,
    seeds_of,
    times_of,
)
from .moving import Moved, fall_back
from .sizes import to_bytes

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data as Batch


class NeighborLoader:
    """Batches of seeds with sampled neighbours, as `torch_geometric.data.Data`.

    Of a heterogeneous graph it gives `HeteroData`, as `HeteroNeighborLoader` says.

    `graph` is an opened graph or its path; the loader opens it for itself. `num_neighbors` has one
    fanout a hop, -1 for all. `input_nodes` are the seeds: vertex ids, a mask with a value a vertex,
    the name of one of the graph's splits, or None for all vertices.

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
    another. Batches follow from (seed, epoch, number) alone, whatever the memory and the threads.

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
    _of_hetero: ClassVar[type[NeighborLoader]]
    """What loads heterogeneous graphs."""

    def __init_subclass__(cls, *, hetero: bool = False, **options: Any) -> None:
        """Notes the subclass that loads heterogeneous graphs."""
        super().__init_subclass__(**options)
        if hetero:
            NeighborLoader._of_hetero = cls

    def __new__(cls, graph: Any, *_arguments: Any, **_options: Any) -> NeighborLoader:
        """A loader of the graph's kind, which Python then initialises."""
        if cls is NeighborLoader and is_hetero(graph):
            return super().__new__(cls._of_hetero)
        return super().__new__(cls)

    def __init__(
        self,
        graph: Graph | PathLike,
        num_neighbors: Sequence[int],
        batch_size: int = 1,
        input_nodes: ArrayLike | str | None = None,
        *,
        shuffle: bool = False,
        drop_last: bool = False,
        replace: bool = False,
        disjoint: bool = False,
        weight_attr: str | None = None,
        time_attr: str | None = None,
        input_time: ArrayLike | None = None,
        temporal_strategy: Literal["uniform", "last"] = "uniform",
        subgraph_type: str = "directional",
        transform: Callable[[Batch], Batch] | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        check_sampling(replace, subgraph_type)
        pyg.geometric("data")
        self.graph = graph if isinstance(graph, Graph) else open(graph)
        self.seeds = seeds_of(self.graph, input_nodes)
        self.batch_size = int(batch_size)
        self.transform = transform
        self.epoch = 0
        self.last_epoch: dict[str, Any] = {}
        """What the last epoch that ended did: bytes by tier, pages, seconds by stage."""
        self._drop_last = drop_last
        self._weight_attr, self._time_attr = weight_attr, time_attr
        edge_features = edge_features_of(self.graph, options)
        self._labels = labels_of(self.graph, options.get("labels"))
        native = options | {
            "num_neighbors": [int(count) for count in num_neighbors],
            "batch_size": self.batch_size,
            "shuffle": bool(shuffle),
            "drop_last": bool(drop_last),
            "disjoint": bool(disjoint) or time_attr is not None,
            "weight_attr": weight_attr,
            "time_attr": time_attr,
            "temporal_strategy": temporal_strategy,
            "edge_features": edge_features,
            "memory": to_bytes(options.get("memory")),
            "features": features_of(self.graph, options),
        }
        device = options.get("device") or "cpu"
        check_device(device)
        self._node_times = node_times_of(self.graph, time_attr)
        if self._node_times is not None and input_time is None:
            places = np.searchsorted(np.asarray(self.graph.ids), self.seeds)
            input_time = self._node_times.take(places, mode="clip")
        times = times_of(time_attr, input_time, len(self.seeds))
        self._gpu: GpuBatches | None = None
        if device != "cpu":
            why = self._begin_on(device, native)
            if why is not None:
                self._move_to(device, why)
        if self._gpu is None:
            self._native = _native.Loader(self.graph.path, json.dumps(native), self.seeds, times)

    def _begin_on(self, device: str, native: dict[str, Any]) -> str | None:
        """Has batches made on a GPU; why that cannot be, where it cannot."""
        why = not_sampled_there(native)
        if why is None:
            memory = to_bytes(native.get("device_memory"))
            try:
                self._gpu = GpuBatches(self.graph, native, self.seeds, device, memory, self._labels)
            except BudgetError as error:
                return str(error)
        return why

    def _move_to(self, device: str, why: str) -> None:
        """Has the CPU's batches moved to a GPU."""
        self._device, self._why = fall_back(device, why), why

    def __len__(self) -> int:
        """Batches of an epoch."""
        full, rest = divmod(len(self.seeds), self.batch_size)
        return full + (rest > 0 and not self._drop_last)

    def __iter__(self) -> Iterator[Batch]:
        """Begins the next epoch."""
        return self.batches()

    def batches(self, first: int = 0) -> Iterator[Batch]:
        """Begins the next epoch at its batch `first`, where an interrupted one was.

        On the CPU, these are `Batches`, which tell what was read; `Moved` ones do, too.
        """
        epoch = self.epoch
        self.epoch += 1
        if self._gpu is not None:
            return self._gpu_batches(self._gpu, epoch, first)
        return self._handed_over(self._native.epoch(epoch, first), self.to_data)

    def _handed_over(
        self, native: _native.Epoch, to_data: Callable[[_native.Batch], Batch]
    ) -> Iterator[Batch]:
        batches = Batches(native, to_data, ended=self._keep)
        return batches if self._device is None else Moved(batches, self._device)

    def _keep(self, stats: dict[str, Any]) -> None:
        self.last_epoch = stats

    def _gpu_batches(self, gpu: GpuBatches, epoch: int, first: int) -> Iterator[Batch]:
        before, waited = gpu.done(), 0.0
        batches = gpu.epoch(epoch, first)
        try:
            while True:
                began = time.perf_counter()
                batch = next(batches, None)
                waited += time.perf_counter() - began
                if batch is None:
                    return
                yield self._transformed(batch)
        finally:
            batches.close()
            done = {name: count - before[name] for name, count in gpu.done().items()}
            self.last_epoch = done | {"seconds_wait": waited}

    def _transformed(self, data: Batch) -> Batch:
        return data if self.transform is None else self.transform(data)

    def set_epoch(self, epoch: int) -> None:
        """The next `iter()` is epoch `epoch`."""
        self.epoch = int(epoch)

    def kept(self) -> dict[str, Any]:
        """What is kept in memory: pages of neighbours and rows of features, of how many.

        On a GPU, also how many multiprocessors prepare batches.
        """
        if self._gpu is not None:
            return self._gpu.placed()
        return self._with_fallback(json.loads(self._native.kept()))

    def _with_fallback(self, kept: dict[str, Any]) -> dict[str, Any]:
        return kept if self._why is None else kept | {"made_on": "cpu", "why": self._why}

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
        if self._weight_attr is not None:
            data[self._weight_attr] = tensor(native["weight"])
        if self._time_attr is not None:
            of_nodes = self._node_times
            data[self._time_attr] = tensor(
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
