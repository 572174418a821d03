"""Which of several training processes this is."""

from __future__ import annotations

from dataclasses import dataclass

from . import pyg
from .errors import InputError


@dataclass(frozen=True)
class Rank:
    """The rank that a loader was given, or else that of `torch.distributed`'s process group."""

    rank: int | None
    world_size: int | None

    def __post_init__(self) -> None:
        given = self.rank, self.world_size
        if given == (None, None):
            return
        for number in given:
            if not isinstance(number, int) or isinstance(number, bool):
                raise InputError.of(
                    "load the batches of one rank",
                    expected="whole numbers `rank` and `world_size`",
                    got=f"rank={self.rank}, world_size={self.world_size}",
                )
        if not 0 <= given[0] < given[1]:  # type: ignore[operator]
            raise InputError.of(
                "load the batches of rank", self.rank, expected=f"0 to {self.world_size} - 1"
            )

    def now(self) -> tuple[int, int]:
        """The rank of this process, and how many there are."""
        if self.rank is not None and self.world_size is not None:
            return self.rank, self.world_size
        distributed = pyg.torch().distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return 0, 1
