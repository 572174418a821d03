"""Mini-batches around links, for models that predict them: PyG's `LinkNeighborLoader`, out of core.

A batch has some of the links, as many negative ones as wanted, and the sampled neighbours of all
their ends. The ends become the seeds of a `NeighborLoader`, each once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native, pyg
from .arrays import to_ids
from .errors import InputError
from .graph import Graph, open
from .inputs import LoaderOptions, PathLike
from .loader import NeighborLoader

if TYPE_CHECKING:
    from torch_geometric.data import Data as Batch

Ids = NDArray[np.uint64]
Places = NDArray[np.int64]

SHUFFLE = (1 << 32) - 1
"""The stream of draws that shuffles an epoch's links; those below are its batches' negatives."""


@dataclass(frozen=True)
class Negatives:
    """How many links are made up for each one given, and how."""

    mode: Literal["binary", "triplet"]
    amount: float

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
            given = {"mode": given.mode, "amount": given.amount}
        mode, amount = given.get("mode"), float(given.get("amount", 1))
        mode = getattr(mode, "value", mode)
        if mode not in ("binary", "triplet") or not set(given) <= {"mode", "amount"}:
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
    positives: Places
    """Which of all links they are; those after them are negative."""


class LinkNeighborLoader:
    """Batches of links with sampled neighbours, as `torch_geometric.data.Data`.

    `edge_label_index` has the links: vertex ids of shape (2, L). `edge_label`, if given, has a
    label for each. `neg_sampling` is `"binary"`, `"triplet"`, `{"mode": …, "amount": …}` or PyG's
    `NegativeSampling`; `neg_sampling_ratio` is short for an amount of binary ones. Everything else
    is as in `NeighborLoader`, and so are the batches, which also have

    - without negatives or with binary ones, `edge_label_index` (int64, (2, l), local) and
      `edge_label`: as given, or 1; 0 for negatives, which come last. Labels that begin at 0 are
      raised by one beside negatives, as in PyG.
    - with triplets, `src_index`, `dst_pos_index`, and `dst_neg_index` of shape (l,) or (l, amount).
    - `input_id`: which of the links given.

    Ends of negative links are drawn uniformly from all vertices, so that a few may be links. They
    follow from (seed, epoch, batch) alone: NumPy's Philox under the key (seed, 2^32 epoch +
    batch), whose words' upper halves are scaled to the number of vertices. Links themselves are
    not taken out of the sampled neighbours.

    Raises `InputError` for links that are none, and what `NeighborLoader` raises.
    """

    def __init__(
        self,
        graph: Graph | PathLike,
        num_neighbors: Sequence[int],
        edge_label_index: ArrayLike,
        edge_label: ArrayLike | None = None,
        batch_size: int = 1,
        *,
        neg_sampling: Any = None,
        neg_sampling_ratio: float | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
        disjoint: bool = False,
        transform: Callable[[Batch], Batch] | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        self.graph = graph if isinstance(graph, Graph) else open(graph)
        self.negatives = Negatives.of(neg_sampling, neg_sampling_ratio)
        self._links = links_of(edge_label_index)
        self._labels = labels_of(edge_label, self._links.shape[1], self.negatives)
        self.batch_size = int(batch_size)
        if self.batch_size < 1:
            raise InputError.of("load batches", expected="batch_size 1 or more", got=batch_size)
        self.transform = transform
        self.epoch = 0
        self._shuffle, self._drop_last, self._disjoint = shuffle, drop_last, disjoint
        self._seed = int(options.get("seed") or 0)
        seeds, bounds = self._seeds_of(0, self._order(0))
        self._nodes = Ends(
            self.graph,
            num_neighbors,
            max(1, int(np.diff(bounds).max(initial=1))),
            seeds,
            disjoint=disjoint,
            **options,
        )

    def __len__(self) -> int:
        """Batches of an epoch."""
        full, rest = divmod(int(self._links.shape[1]), self.batch_size)
        return full + (rest > 0 and not self._drop_last)

    def __iter__(self) -> Iterator[Batch]:
        """Begins the next epoch."""
        return self.batches()

    def batches(self, first: int = 0) -> Iterator[Batch]:
        """Begins the next epoch at its batch `first`, where an interrupted one was."""
        epoch, order = self.epoch, self._order(self.epoch)
        seeds, bounds = self._seeds_of(epoch, order)
        native = self._nodes._native.epoch_of(epoch, seeds, bounds, first)
        self.epoch += 1
        return self._nodes._handed_over(native, lambda b: self._to_data(b, epoch, order))

    def set_epoch(self, epoch: int) -> None:
        """The next `iter()` is epoch `epoch`."""
        self.epoch = int(epoch)

    @property
    def last_epoch(self) -> dict[str, Any]:
        """What the last epoch that ended did: bytes by tier, pages, seconds by stage."""
        return self._nodes.last_epoch

    def kept(self) -> dict[str, Any]:
        """What is kept in memory: pages of neighbours and rows of features, of how many."""
        return self._nodes.kept()

    def _order(self, epoch: int) -> Places:
        """The links' numbers in the order of an epoch."""
        count = self._links.shape[1]
        if not self._shuffle:
            return np.arange(count)
        return np.argsort(self._draws(epoch, SHUFFLE, count), kind="stable")

    def _draws(self, epoch: int, stream: int, count: int) -> Ids:
        """Random 64-bit words."""
        key = np.array([self._seed & (1 << 64) - 1, epoch << 32 | stream], dtype=np.uint64)
        return np.random.Philox(key=key).random_raw(count)

    def _batch(self, epoch: int, order: Places, number: int) -> Links:
        """Batch `number`: its links, then its negatives."""
        chosen = order[number * self.batch_size : (number + 1) * self.batch_size]
        source, target = self._links[:, chosen]
        if self.negatives is not None:
            count = math.ceil(len(chosen) * self.negatives.amount)
            ends = 2 if self.negatives.mode == "binary" else 1
            words = self._draws(epoch, number, ends * count) >> np.uint64(32)
            drawn = (words * np.uint64(self.graph.vertices)) >> np.uint64(32)
            drawn = self.graph.ids[drawn.astype(np.int64)].reshape(ends, count)
            target = np.concatenate([target, drawn[-1]])
            if ends == 2:
                source = np.concatenate([source, drawn[0]])
        seeds = np.concatenate([source, target])
        places: Places = np.arange(len(seeds))
        if not self._disjoint:
            seeds, places = np.unique(seeds, return_inverse=True)
        return Links(seeds, places[: len(source)], places[len(source) :], chosen)

    def _seeds_of(self, epoch: int, order: Places) -> tuple[Ids, list[int]]:
        """The seeds of all batches, one batch behind the other, and where each begins."""
        seeds = [self._batch(epoch, order, number).seeds for number in range(len(self))]
        bounds = np.cumsum([0, *map(len, seeds)]).tolist()
        return np.concatenate(seeds) if seeds else np.empty(0, dtype=np.uint64), bounds

    def _to_data(self, native: _native.Batch, epoch: int, order: Places) -> Batch:
        tensor = pyg.torch().from_numpy
        data = self._nodes.to_data(native)
        links = self._batch(epoch, order, native["number"])
        positives = len(links.positives)
        del data.batch_size
        data.input_id = tensor(links.positives)
        if self._disjoint:
            data.batch = data.batch % max(positives, 1)
        if self.negatives is not None and self.negatives.mode == "triplet":
            data.src_index = tensor(links.source)
            data.dst_pos_index = tensor(links.target[:positives])
            wrong = links.target[positives:].reshape(positives, -1)
            data.dst_neg_index = tensor(wrong).squeeze(-1)
        else:
            data.edge_label_index = tensor(np.stack([links.source, links.target]))
            label = self._label(links)
            if label is not None:
                data.edge_label = tensor(label)
        return data if self.transform is None else self.transform(data)

    def _label(self, links: Links) -> NDArray[Any] | None:
        """A label for each of a batch's links; None where there is nothing to tell."""
        made_up = len(links.source) - len(links.positives)
        if self._labels is None:
            if self.negatives is None:
                return None
            given = np.ones(len(links.positives), dtype=np.float32)
        else:
            given = self._labels[links.positives]
        nothing = np.zeros((made_up, *given.shape[1:]), dtype=given.dtype)
        return np.concatenate([given, nothing])


class Ends(NeighborLoader):
    """The loader of links' ends: as many in each batch as its links have."""

    def _begin_on(self, _device: str, _native: dict[str, Any]) -> str | None:
        return "the GPU's sampler has no batches of links yet"


def links_of(given: ArrayLike) -> Ids:
    """Vertex ids of shape (2, L), row by row."""
    links = np.asarray(given)
    if links.ndim != 2 or links.shape[0] != 2:
        raise InputError.of(
            "use", "edge_label_index", expected="vertex ids of shape (2, L)", got=links.shape
        )
    return to_ids(links.reshape(-1), "edge_label_index").reshape(2, -1)


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
