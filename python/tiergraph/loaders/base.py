"""What all loaders have: epochs of batches, a rank's share of them, and an end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from .. import _native, pyg
from ..arguments.calls import checked_class
from ..errors import InputError
from ..graph import Graph
from ..handles import without
from .making import BatchMaker
from .options import Settings, check_device, check_reads
from .ranks import Rank
from .source import Batches, Progress, Source

if TYPE_CHECKING:
    from .moving import Moved


@checked_class
class Loader(ABC):
    """Hands out the batches of one epoch after the other.

    A loader is closed by `close()`, by leaving a `with` block, or when nothing refers to it any
    more. It can be pickled, and used in forked processes, as `Graph` can.
    """

    maker: BatchMaker
    """Makes its batches; set by what is made of this class."""
    batch_size: int
    epoch: int
    """The number of the epoch that the next `iter()` begins."""
    last_epoch: dict[str, Any]
    """What the last epoch that ended did: bytes by tier, pages, seconds by stage."""

    def __init__(
        self,
        graph: Graph,
        options: Settings,
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        pyg.geometric("data")
        check_device(options.device or "cpu")
        check_reads(options.io)
        self.graph, self._options, self.transform = graph, options, transform
        self.batch_size = options.batch_size
        self.epoch = 0
        self.last_epoch = {}
        self._rank = Rank(options.rank, options.world_size)
        self._first = 0
        self._progress: Progress | None = None
        # Not in a `WeakSet`, whose callback in Python would swallow an interrupt at an epoch's end.
        self._running: list[ref[Batches]] = []
        # Refuses a batch size and a rank that there are not.
        self._cut()

    @abstractmethod
    def _inputs(self) -> int:
        """How many seeds, or links, an epoch has."""

    @abstractmethod
    def _begin(self, epoch: int, first: int, rank: tuple[int, int]) -> Source | Moved:
        """Begins an epoch at the rank's batch `first`."""

    @property
    def dataset(self) -> range:
        """The places of all seeds, or links, as PyTorch's loaders have them."""
        return range(self._inputs())

    @property
    def num_workers(self) -> int:
        """0: threads of this process prepare batches."""
        return 0

    @property
    def drop_last(self) -> bool:
        """Whether a last batch with fewer seeds is left out."""
        return bool(self._options.drop_last)

    def kept(self) -> dict[str, Any]:
        """What is kept in memory: pages of neighbours and rows of features, of how many.

        On a GPU, also how many multiprocessors prepare batches.
        """
        return self.maker.kept()

    def _seed(self) -> int:
        """What everything random follows from."""
        return self._options.seed or 0

    def __len__(self) -> int:
        """Batches of an epoch; of a rank's share, where there are several."""
        return len(self._cut())

    def __iter__(self) -> Batches:
        """Begins the next epoch, or goes on where the state that was loaded says."""
        return self.batches(self._first)

    def batches(self, first: int = 0) -> Batches:
        """Begins the next epoch at its batch `first`, where an interrupted one was."""
        rank = self._rank.now()
        source = self._begin(self.epoch, first, rank)
        self._progress = Progress(self.epoch, first, len(self))
        self.epoch, self._first = self.epoch + 1, 0
        begun = Batches(source, self._progress, ended=self._keep)
        self._running = [*(one for one in self._running if one() is not None), ref(begun)]
        return begun

    def set_epoch(self, epoch: int) -> None:
        """The next `iter()` is epoch `epoch`: from its begin, or where the loaded state says."""
        if int(epoch) != self.epoch:
            self._first = 0
        self.epoch, self._progress = int(epoch), None

    def state_dict(self) -> dict[str, int]:
        """Where this loader is: the epoch, and how many of its batches were handed out.

        The same on every rank, which have taken equally many.
        """
        epoch, batch = self.epoch, self._first
        if self._progress is not None and self._progress.taken < self._progress.batches:
            epoch, batch = self._progress.epoch, self._progress.taken
        return {"epoch": epoch, "batch": batch} | self._shape()

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """The next `iter()` goes on where `state_dict()` was: with the same batches.

        Raises `InputError` where that was of another seed, batch size, world size or number of
        seeds, for batches would be others then.
        """
        for name, here in self._shape().items():
            if state_dict.get(name) != here:
                raise InputError.of(
                    "go on with the state of another loader",
                    expected=f"{name} {here}",
                    got=state_dict.get(name),
                )
        self.set_epoch(state_dict["epoch"])
        self._first = int(state_dict["batch"])

    def close(self) -> None:
        """Ends its epochs, and lets go of threads, files and memory, the GPU's too."""
        for running in self._running:
            batches = running()
            if batches is not None and batches.is_here():
                batches.close()
        self.maker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _shape(self) -> dict[str, int]:
        """What an epoch's batches follow from, beside its number and the graph."""
        return {
            "seed": self._seed(),
            "batch_size": self.batch_size,
            "world_size": self._rank.now()[1],
            "inputs": self._inputs(),
        }

    def _cut(self) -> _native.Cut:
        """How this rank's batches are cut from an epoch's seeds."""
        return _native.Cut(
            self._inputs(), self.batch_size, self._options.drop_last, *self._rank.now()
        )

    def _transformed(self, data: Any) -> Any:
        """What `transform` makes of a batch; refuses None, which is none."""
        if self.transform is None:
            return data
        made = self.transform(data)
        if made is None:
            raise InputError.of(
                "hand over a batch",
                expected="what `transform` makes of it",
                got="nothing: transform returned None",
                hint="end the function with `return batch`",
            )
        return made

    def _keep(self, stats: dict[str, Any]) -> None:
        self.last_epoch = stats

    def __getstate__(self) -> dict[str, Any]:
        return without(self.__dict__, "_running") | {"_progress": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._running = []


def places_of(
    cut: _native.Cut, batch: int, order: NDArray[np.integer[Any]]
) -> NDArray[np.integer[Any]]:
    """The places of a batch's seeds in the list of all, which `order` has in an epoch's order."""
    begin, end = cut.range(batch)
    if end <= len(order):
        return order[begin:end]
    # Fewer seeds than ranks want: the first come once more.
    return order.take(np.arange(begin, end), mode="wrap")
