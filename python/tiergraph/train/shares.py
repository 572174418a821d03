"""How a run's memory is shared: a part for what evaluates, and the rest for what trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import BudgetError

QUARTER = 4


def quarter(memory: int) -> int:
    """What a loader that evaluates has of a run's memory, in bytes."""
    return memory // QUARTER


@dataclass(frozen=True)
class Shares:
    """A run's memory in bytes, None where it is not bounded, and what evaluation takes of so much.

    A `BudgetError` of a part names what that part would need. `while_evaluating` and
    `while_training` have it name what the run would need, which is what its user can change.
    """

    memory: int | None
    evaluation_of: Callable[[int], int] = quarter

    @property
    def evaluation(self) -> int | None:
        """Bytes for what evaluates."""
        return None if self.memory is None else self.evaluation_of(self.memory)

    @property
    def training(self) -> int | None:
        """Bytes for the loader that trains."""
        return None if self.memory is None else self.memory - self.evaluation_of(self.memory)

    @contextmanager
    def while_evaluating(self) -> Iterator[None]:
        """For a loader in a quarter of the memory."""
        with self._scaled("evaluate in a quarter of the run's memory", lambda part: QUARTER * part):
            yield

    @contextmanager
    def while_training(self) -> Iterator[None]:
        """For the loader in the memory that evaluation leaves."""
        with self._scaled("train in what evaluation leaves of the run's memory", self._to_train_in):
            yield

    def _to_train_in(self, part: int) -> int:
        """The least memory that leaves `part` beside what evaluation takes of it."""
        memory = -(-QUARTER * part // (QUARTER - 1))
        return max(memory, part + self.evaluation_of(memory))

    @contextmanager
    def _scaled(self, op: str, run_of: Callable[[int], int]) -> Iterator[None]:
        try:
            yield
        except BudgetError as error:
            if self.memory is None or error.enough_bytes is None:
                raise
            enough = run_of(error.enough_bytes)
            hint = f"run with `--memory {-(-enough // (1 << 20))}MiB` or more"
            whole = BudgetError.of(op, got=error.without_hint(), hint=hint)
            whole.enough_bytes = enough
            raise whole from error
