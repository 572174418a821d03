"""Mini-batches for PyG models, prepared from storage while others are trained on.

The names, meanings and batch attributes are PyG's (`torch_geometric.loader.NeighborLoader`), so
that a training loop stays as it is. Threads of the native part sample and gather; nothing is
forked, and nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments.calls import options_of, taking
from ..arguments.checks import arguments
from ..arguments.dataloader import take
from ..graph import Graph
from ..hetero import HeteroGraph
from ..inputs import PathLike, check_sampling
from .base import Loader
from .given import LoaderInput, opened
from .making import BatchMaker
from .options import DEFAULTS, LOADER_CHECKS, Fanouts, LoaderOptions, Settings
from .ordinary import OrdinaryInput
from .source import Source
from .typed import TypedInput

if TYPE_CHECKING:
    import torch

    from .moving import Moved

TypedSeeds: TypeAlias = tuple[str, ArrayLike | str | None]


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
    GPU, its number in the graph), `edge_attr`, the edges' stored values (`edge_weight`, …) under
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

    - `memory` bounds what the loader holds, batches, cache and seeds included, `"2GiB"` or bytes;
      three quarters of what the machine has free.
    - `threads` prepare batches (the machine's cores, or fewer where `memory` does not hold what so
      many sample with: `kept()` has `threads`), `window` batches (4) together, which share reads;
      `prefetch` may be begun beyond a window and not yet taken: a window for each thread. On a GPU,
      `prefetch` are begun before the last is taken: 1, or 3 where rows are read.
    - `placement` says what is kept in memory where not all fits: what saves most reads (`unified`),
      neighbours first (`topology`), `features` first, or this share of the memory for features.
      `topology/features` and `features/topology` say first what a GPU's memory takes first, then
      what the host's does (the pages of a loader on the CPU). Without `io="gpu"` the host holds
      every list that the GPU does not, and rows the rest, unless lists fit neither.
      `presample` batches (an epoch's) are sampled to see what is worth keeping.
    - `share_pages` reads a page once for all rows of a window on it; without, once a row.
    - `direction` says which neighbours are sampled: `in`, as PyG does, so that messages go along
      edges, or `out`. `io` names the read engine, as for `open`; on a GPU, `gpu` has its kernels
      read rows and neighbours that lie in no memory: from threads in a drive's place, or as
      `gpu:modelled:p5510*4` or `gpu:0000:01:00.0` say (untested on hardware). `gpu:auto` and
      `gpu:auto:DRIVES` try whether rows come faster by the host's reads, and take the faster.
    - `features` become `x` and `edge_features` become `edge_attr`: by name, or those named so where
      there are (True), or none (False or None). `labels` become `y`: those of this name, or `y`;
      False is none. Splits that are stored as masks come as `train_mask` and so on.
    - `edge_values` of edges (`edge_weight`, times, …) come under their own names, float32 or int64,
      as PyG's do: all that are stored (True), those of a name or of a list of names, or none (False
      or None). What edges are sampled by always comes. Where it is not kept in memory, a column is
      read page by page for the edges of a window, as their numbers are: who does not use one of a
      large graph leaves it out.
    - `device` (`cpu`, `cuda`, `cuda:N`) is where batches are made and handed over. On a GPU, hot
      rows and neighbours stay in its memory within `device_memory` (half of what is free), others
      in pinned memory of the host within `memory`; what fits neither is read from storage.
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
    disjoint trees, features and values of edges), and neighbours that `memory` and `device_memory`
    do not hold, if nothing of them is left for reading, the CPU samples, kernels gather `x`, and
    the rest is moved. Batches of several types, without features, or with too little memory for
    that are made on the CPU and moved, by a thread that also runs `transform` then: a
    `FallbackWarning` says so. `kept()` has `made_on`: `gpu`, `both` (and `why`) or `cpu` (and
    `why`), and `list_reads_by`: who reads neighbours that are on storage, `gpu` or `host`.
    """

    seeds_vary: ClassVar[bool] = False
    """Whether epochs have other seeds than those that the loader is made with."""
    typed: ClassVar[bool] = False
    """Whether it takes graphs whose nodes and edges have types alone."""

    @arguments(**LOADER_CHECKS)
    @options_of(LoaderOptions, DEFAULTS)
    def __init__(
        self,
        graph: Graph | HeteroGraph | PathLike,
        num_neighbors: Fanouts,
        input_nodes: ArrayLike | str | TypedSeeds | None = None,
        input_time: ArrayLike | None = None,
        replace: bool = False,
        subgraph_type: str = "directional",
        disjoint: bool = False,
        temporal_strategy: Literal["uniform", "last"] = "uniform",
        time_attr: str | None = None,
        weight_attr: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        given = locals()
        check_sampling(replace, subgraph_type)
        how = Settings.of(given)
        found, owned = opened(graph, self.typed)
        of = owned, input_nodes, input_time, how
        self.given: LoaderInput = (
            OrdinaryInput(found, *of) if isinstance(found, Graph) else TypedInput(found, *of)
        )
        super().__init__(self.given.graph, how, transform)
        self.maker = BatchMaker(self.given, self.seeds_vary)

    @property
    def seeds(self) -> NDArray[np.uint64]:
        """The seeds of an epoch, as vertex ids."""
        return self.given.seeds

    @property
    def input_nodes(self) -> NDArray[np.uint64]:
        """The seeds, by PyG's name."""
        return self.seeds

    def rows_on_device(self, most: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]] | None:
        """The features of all vertices where batches are made on a GPU; None where they are not.

        In blocks of at most `most` vertices, as `(positions, rows)` on the GPU: int64 of shape
        (n,), places in the graph's `ids`, and float32 of shape (n, D). Between two epochs.
        """
        return self.maker.rows_on_device(most)

    def without_features(self) -> NeighborLoader | None:
        """A loader of the CPU that samples the same batches, of nodes and edges alone.

        None where batches have several types, or seeds have times.
        """
        given, how = self.given, self._options
        if not isinstance(given, OrdinaryInput) or given.times is not None:
            return None
        options: Any = {name: getattr(how, name) for name in LoaderOptions.__annotations__}
        options |= {"features": False, "labels": False, "edge_features": False, "presample": None}
        options |= {"edge_values": False}
        options |= {"device": "cpu", "device_memory": None, "multiprocessors": None, "io": "auto"}
        sampled: Any = {"disjoint": how.disjoint, "weight_attr": how.weight_attr}
        return NeighborLoader(given.path, how.num_neighbors, self.seeds, **sampled, **options)

    @property
    def row_bytes(self) -> int:
        """Bytes from a row of features to the next in its file; 0 without, or of several types."""
        given = self.given
        return given.row_bytes if isinstance(given, OrdinaryInput) else 0

    @property
    def device(self) -> str:
        """Where its batches are."""
        return str(self._options.device)

    @property
    def reads_by(self) -> str:
        """What its `io` is."""
        return str(self._options.io)

    def _inputs(self) -> int:
        return len(self.seeds)

    def _begin(self, epoch: int, first: int, rank: tuple[int, int]) -> Source | Moved:
        return self.maker.epoch(epoch, first, rank, lambda _, data: self._transformed(data))
