"""Which of several training processes this is."""

from __future__ import annotations

from dataclasses import dataclass

from .. import pyg
from ..arguments.checks import one, whole
from ..errors import InputError


@dataclass(frozen=True)
class Rank:
    """The rank that a loader was given, or else that of `torch.distributed`'s process group."""

    rank: int | None
    world_size: int | None

    def __post_init__(self) -> None:
        if (self.rank is None) != (self.world_size is None):
            raise InputError.of(
                "load the batches of one rank",
                expected="`rank` and `world_size`",
                got=f"rank={self.rank}, world_size={self.world_size}",
            )
        if self.rank is not None:
            ranks = one("world_size", self.world_size)
            object.__setattr__(self, "rank", one("rank", self.rank, {"rank": whole(0, ranks - 1)}))
            object.__setattr__(self, "world_size", ranks)

    def now(self) -> tuple[int, int]:
        """The rank of this process, and how many there are."""
        if self.rank is not None and self.world_size is not None:
            return self.rank, self.world_size
        distributed = pyg.torch().distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return 0, 1
