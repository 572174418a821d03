"""Mini-batches around links, for models that predict them: PyG's `LinkNeighborLoader`, out of core.

A batch has some of the links, as many negative ones as wanted, and the sampled neighbours of all
their ends. The ends become the seeds of a `NeighborLoader`, each once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _native, pyg
from ..arguments.calls import options_of, taking
from ..arguments.checks import arguments, one
from ..arguments.dataloader import take
from ..errors import InputError
from ..graph import Graph
from ..hetero import EdgeType, HeteroGraph
from ..inputs import PathLike, check_sampling, not_a_batch_size
from .base import Loader, places_of
from .ends import LinkEnds, edges_of, links_of, typed_links_of
from .given import LoaderInput, opened
from .making import BatchMaker
from .moving import to_device
from .options import DEFAULTS, LOADER_CHECKS, Fanouts, LoaderOptions, Settings
from .ordinary import OrdinaryInput
from .source import Source
from .typed import TypedInput

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data as Batch

    from .moving import Moved

Ids = NDArray[np.uint64]
Places = NDArray[np.int64]

SHUFFLE = (1 << 32) - 1
"""The stream of draws that shuffles an epoch's links; those below are its batches' negatives."""

WINDOW = 4
"""Batches that are prepared together unless `window` says otherwise: at least these are counted."""


@dataclass(frozen=True)
class Negatives:
    """How many links are made up for each one given, and how."""

    mode: Literal["binary", "triplet"]
    amount: float

    @property
    def ends(self) -> int:
        """Ends that each is drawn: both, or the target that comes to a given source."""
        return 2 if self.mode == "binary" else 1

    def beside(self, links: int) -> int:
        """How many there are beside so many links."""
        return math.ceil(links * self.amount)

    @classmethod
    def of(cls, given: Any, ratio: float | None) -> Negatives | None:
        """From what PyG's loader takes: a mode's name, its options, a `NegativeSampling`."""
        if ratio:
            given = {"mode": "binary", "amount": ratio}
        if given is None:
            return None
        if isinstance(given, str):
            given = {"mode": given}
        if not isinstance(given, dict):
            weights = getattr(given, "src_weight", None), getattr(given, "dst_weight", None)
            if any(weight is not None for weight in weights):
                raise InputError.of("draw negative links", expected="no weights of vertices")
            named = ("mode", "amount")
            given = {name: getattr(given, name) for name in named if hasattr(given, name)}
        for name in given.keys() - {"mode", "amount"}:
            raise InputError.of(
                "draw negative links with", name, expected="`mode` and `amount` alone"
            )
        mode, amount = given.get("mode"), one("amount", given.get("amount", 1))
        mode = getattr(mode, "value", mode)
        if mode not in ("binary", "triplet"):
            raise InputError.of("draw negative links", mode, expected="`binary` or `triplet`")
        if not 0 < amount < math.inf or (mode == "triplet" and amount % 1):
            kind = "a whole number" if mode == "triplet" else "a number"
            raise InputError.of("draw negative links", expected=f"{kind} above 0", got=amount)
        return cls(cast(Literal["binary", "triplet"], mode), amount)


@dataclass(frozen=True)
class Links:
    """The links of one batch, as local places of their ends."""

    seeds: Ids
    source: Places
    target: Places
    positives: NDArray[np.integer[Any]]
    """Which of all links they are; those after them are negative."""


@dataclass(frozen=True)
class FirstSeeds:
    """That the maker's own seeds are those of epoch 0, and where each of its batches begins."""

    rank: tuple[int, int]
    """Whose batches they are, and of how many ranks."""
    bounds: list[int]


@taking(take)
class LinkNeighborLoader(Loader):
    """Batches of links with sampled neighbours, as `torch_geometric.data.Data`.

    `edge_label_index` has the links: vertex ids of shape (2, L); None is all edges, once each, in
    the order of `Graph.edge_batches`, and 16 bytes of `memory` each. `edge_label`, if given, has a
    label for each. `neg_sampling` is `"binary"`, `"triplet"`, `{"mode": …, "amount": …}` or PyG's
    `NegativeSampling`; `neg_sampling_ratio` is short for an amount of binary ones. Everything else
    is as in `NeighborLoader`, but that links are not sampled by time, and so are the batches, which
    also have

    - without negatives or with binary ones, `edge_label_index` (int64, (2, l), local) and
      `edge_label`: as given, or 1; 0 for negatives, which come last. Labels that begin at 0 are
      raised by one beside negatives, as in PyG.
    - with triplets, `src_index`, `dst_pos_index`, and `dst_neg_index` of shape (l,) or (l, amount).
    - `input_id`: which of the links given.

    Of a heterogeneous graph, `edge_label_index` is `(edge type, nodes of shape (2, L))`, numbered
    within the types of its ends, or an edge type for all its edges. Batches are `HeteroData`,
    `num_neighbors` is as in `HeteroNeighborLoader`; the edge type has `edge_label_index`,
    `edge_label` and `input_id`, the type of its sources `src_index`, that of its targets
    `dst_pos_index` and `dst_neg_index`. Ends of negative links are drawn from the nodes of their
    type.

    Ends of negative links are drawn uniformly from all vertices, so that a few may be links. They
    follow from (seed, epoch, batch) alone: NumPy's Philox under the key (seed, 2^32 epoch +
    batch), whose words' upper halves are scaled to the number of vertices. Links themselves are
    not taken out of the sampled neighbours.

    Raises `InputError` for links that are none, and what `NeighborLoader` raises.
    """

    @arguments(**LOADER_CHECKS)
    @options_of(LoaderOptions, DEFAULTS)
    def __init__(
        self,
        graph: Graph | HeteroGraph | PathLike,
        num_neighbors: Fanouts,
        edge_label_index: Any = None,
        edge_label: ArrayLike | None = None,
        edge_label_time: None = None,
        replace: bool = False,
        subgraph_type: str = "directional",
        disjoint: bool = False,
        temporal_strategy: Literal["uniform", "last"] = "uniform",
        neg_sampling: Any = None,
        neg_sampling_ratio: float | None = None,
        time_attr: None = None,
        weight_attr: str | None = None,
        transform: Callable[[Batch], Batch] | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        given = locals()
        check_sampling(replace, subgraph_type)
        _check_no_times(edge_label_time, time_attr, temporal_strategy)
        self._negatives = Negatives.of(neg_sampling, neg_sampling_ratio)
        found, owned = opened(graph)
        self._edge_type: EdgeType | None = None
        """Of a heterogeneous graph: what the links are of."""
        if isinstance(found, Graph):
            all_edges = edge_label_index is None
            links = edges_of(found.edge_batches()) if all_edges else links_of(edge_label_index)
            of_seeds, self._links = found, links
            self._between = LinkEnds.of_graph(found)
        else:
            self._edge_type, self._links = typed_links_of(found, edge_label_index)
            of_seeds = found[self._edge_type[0]]
            self._between = LinkEnds.of_types(found, self._edge_type)
        self._labels = labels_of(edge_label, self._links.shape[1], self._negatives)
        self._disjoint = disjoint
        super().__init__(of_seeds, Settings.of(given), transform)
        cut, rank = self._cut(), self._rank.now()
        seeds, bounds = self._seeds_of(0, self._order(0), cut, self._presampled())
        self._first_seeds = FirstSeeds(rank, bounds) if len(bounds) == len(cut) + 1 else None
        most = {"batch_size": self._most_seeds(), "shuffle": False, "drop_last": False}
        how = Settings.of(given, held=self._held_bytes(), **most)
        of = owned, seeds, None, how
        ends = list(dict.fromkeys((self._edge_type or ())[::2]))
        given_ends: LoaderInput = (
            OrdinaryInput(found, *of) if isinstance(found, Graph) else TypedInput(found, *of, ends)
        )
        self.maker = BatchMaker(given_ends, seeds_vary=True)

    @property
    def negatives(self) -> Negatives | None:
        """How many links are made up for each one given, and how."""
        return self._negatives

    def _inputs(self) -> int:
        return int(self._links.shape[1])

    def _begin(self, epoch: int, first: int, rank: tuple[int, int]) -> Source | Moved:
        order, cut, first_seeds = self._order(epoch), self._cut(), self._first_seeds
        if epoch == 0 and first_seeds is not None and first_seeds.rank == rank:
            seeds, bounds = self.maker.seeds, first_seeds.bounds
        else:
            seeds, bounds = self._seeds_of(epoch, order, cut)

        def finish(native: _native.Batch | _native.GpuBatch, data: Batch) -> Batch:
            links = self._batch(epoch, order, cut, native["number"] // rank[1])
            return self._transformed(self._with_links(data, links))

        return self.maker.epoch(epoch, first, rank, finish, seeds, bounds)

    def _most_ends(self) -> int:
        """The most ends that a batch of links and negatives may have, repeated ones too."""
        links = min(self.batch_size, max(self._inputs(), 1))
        ends = 2 * links
        if self._negatives is not None:
            ends += self._negatives.ends * self._negatives.beside(links)
        return ends

    def _most_seeds(self) -> int:
        """The most seeds that a batch of links and negatives may have, in any epoch."""
        ends = self._most_ends()
        return ends if self._disjoint else max(1, min(ends, self._between.vertices))

    def _order(self, epoch: int) -> Places:
        """The links' numbers in the order of an epoch."""
        count = self._links.shape[1]
        if not self._options.shuffle:
            return np.arange(count)
        return np.argsort(self._draws(epoch, SHUFFLE, count), kind="stable")

    def _presampled(self) -> int | None:
        """How many seeds are sampled to see what is worth keeping; None for an epoch's."""
        presample, window = self._options.presample, self._options.window or WINDOW
        return None if presample is None else self._most_seeds() * max(presample, window)

    def _held_bytes(self) -> int:
        """Bytes of the links, of their labels, and of their order in an epoch."""
        labels = 0 if self._labels is None else self._labels.nbytes
        return self._links.nbytes + labels + 8 * self._inputs()

    def _draws(self, epoch: int, stream: int, count: int) -> Ids:
        """Random 64-bit words."""
        key = np.array([self._seed() & (1 << 64) - 1, epoch << 32 | stream], dtype=np.uint64)
        return np.random.Philox(key=key).random_raw(count)

    def _batch(self, epoch: int, order: Places, cut: _native.Cut, batch: int) -> Links:
        """The rank's batch `batch`: its links, then its negatives."""
        chosen = places_of(cut, batch, order)
        source, target = self._links[:, chosen]
        if self._negatives is not None:
            count, ends = self._negatives.beside(len(chosen)), self._negatives.ends
            words = self._draws(epoch, cut.number(batch), ends * count) >> np.uint64(32)
            words = words.reshape(ends, count)
            target = np.concatenate([target, self._drawn(1, words[-1])])
            if ends == 2:
                source = np.concatenate([source, self._drawn(0, words[0])])
        base = np.uint64(self._between.base)
        seeds = np.concatenate([source, target + base])
        places: Places = np.arange(len(seeds))
        if not self._disjoint:
            seeds, places = np.unique(seeds, return_inverse=True)
        # Targets of a type of their own are counted from 0.
        others = np.count_nonzero(seeds < base)
        return Links(seeds, places[: len(source)], places[len(source) :] - others, chosen)

    def _drawn(self, end: int, words: Ids) -> Ids:
        """Sources (`end` 0) or targets (1) of links that are made up, by 32 random bits each."""
        places = self._between.drawn(end, words)
        if self._edge_type is not None or not self.graph.has_own_ids:
            return places
        return self.graph.ids[places.astype(np.int64)]

    def _seeds_of(
        self, epoch: int, order: Places, cut: _native.Cut, most: int | None = None
    ) -> tuple[Ids, list[int]]:
        """The seeds of the rank's batches, one behind the other, and where each begins.

        Of the first batches alone once these have `most` seeds.
        """
        bounds = [0]
        # Memory that is not written to is not there yet.
        seeds = np.empty(len(cut) * self._most_ends(), dtype=np.uint64)
        for batch in range(len(cut)):
            found = self._batch(epoch, order, cut, batch).seeds
            bounds.append(bounds[-1] + len(found))
            seeds[bounds[-2] : bounds[-1]] = found
            if most is not None and bounds[-1] >= most:
                break
        seeds.resize(bounds[-1], refcheck=False)
        return seeds, bounds

    def _with_links(self, data: Any, links: Links) -> Batch:
        positives = len(links.positives)
        # Where the links, their sources and their targets are told of.
        of_links, sources, targets = data, data, data
        if self._edge_type is not None:
            source, _, target = self._edge_type
            of_links, sources, targets = data[self._edge_type], data[source], data[target]
            del sources.input_id
        device = sources.n_id.device

        def tensor(array: NDArray[Any]) -> torch.Tensor:
            made: torch.Tensor = pyg.torch().from_numpy(array)
            return made if device.type == "cpu" else to_device(made, device)

        del sources.batch_size
        of_links.input_id = tensor(links.positives)
        if self._disjoint:
            for store in data.node_stores:
                store.batch = store.batch % max(positives, 1)
        if self._negatives is not None and self._negatives.mode == "triplet":
            sources.src_index = tensor(links.source)
            targets.dst_pos_index = tensor(links.target[:positives])
            wrong = links.target[positives:].reshape(positives, -1)
            targets.dst_neg_index = tensor(wrong).squeeze(-1)
        else:
            of_links.edge_label_index = tensor(np.stack([links.source, links.target]))
            label = self._label(links)
            if label is not None:
                of_links.edge_label = tensor(label)
        return data

    def _label(self, links: Links) -> NDArray[Any] | None:
        """A label for each of a batch's links; None where there is nothing to tell."""
        made_up = len(links.source) - len(links.positives)
        if self._labels is None:
            if self._negatives is None:
                return None
            given = np.ones(len(links.positives), dtype=np.float32)
        else:
            given = self._labels[links.positives]
        nothing = np.zeros((made_up, *given.shape[1:]), dtype=given.dtype)
        return np.concatenate([given, nothing])


def _check_no_times(edge_label_time: Any, time_attr: Any, temporal_strategy: str) -> None:
    """Refuses sampling by time, and a batch size in its place."""
    if np.ndim(edge_label_time) == 0 and edge_label_time is not None:
        raise not_a_batch_size("edge_label_time", "None", edge_label_time)
    if edge_label_time is not None or time_attr is not None or temporal_strategy != "uniform":
        raise InputError.of(
            "sample the neighbours of links by time",
            expected="no `edge_label_time` and `time_attr`",
            hint="`NeighborLoader` samples by time, around nodes",
        )


def labels_of(
    given: ArrayLike | None, links: int, negatives: Negatives | None
) -> NDArray[Any] | None:
    """One label a link, beside negatives from 1 on."""
    if given is None:
        return None
    labels = np.asarray(given)
    if labels.shape[:1] != (links,):
        raise InputError.of(
            "use", "edge_label", expected=f"one for each of {links} links", got=labels.shape
        )
    if negatives is None:
        return labels
    if negatives.mode == "triplet":
        raise InputError.of("use", "edge_label", expected="none, beside triplets", got="labels")
    return labels + 1 if labels.size and labels.min() == 0 else labels
