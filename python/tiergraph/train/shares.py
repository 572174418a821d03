"""How a run's memory is shared: a part for what evaluates, and the rest for what trains.

Everything that a run holds is made before its first batch, in its part of the memory, and knows the
largest batch that may come. So a run that begins has room until it ends; one that has none is
refused with the memory that it would run in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import BudgetError

QUARTER = 4
MIB = 1 << 20


def quarter(memory: int) -> int:
    """What a loader that evaluates has of a run's memory, in bytes."""
    return memory // QUARTER


@dataclass(frozen=True)
class Part:
    """Something that a run needs, and how it is made.

    `make` takes bytes (None: not bounded) and returns the least that it could have been made in; it
    raises `BudgetError`, with the same figure, where they are too few. `usual` says how much of a
    run's memory it has where nothing else is known.
    """

    make: Callable[[int | None], int]
    usual: Callable[[int], int] = quarter
    note: str | None = None
    """What the user is told who gets it in place of what was asked for."""


@dataclass(frozen=True)
class Shares:
    """A run's memory in bytes, None where it is not bounded, and what evaluation has of it."""

    memory: int | None
    evaluation: int | None
    held: int = 0
    """Bytes of arrays that are there all the time: labels, splits, ids."""
    note: str | None = None
    enough: int = 0
    """The least memory that was shown to do."""

    @property
    def training(self) -> int | None:
        """Bytes for the loader that trains."""
        if self.memory is None or self.evaluation is None:
            return None
        return self.memory - self.held - self.evaluation


def share(
    memory: int | None, held: int, training: Part, ways: Sequence[Part], least: int = 0
) -> Shares:
    """Makes what trains and the first of the `ways` to evaluate that fits, and says who has what.

    Evaluation has its usual part; it gives up what training needs, and takes more where training
    can spare it. Raises `BudgetError` where no way fits, naming a memory in which one does, of
    `least` bytes or more.
    """
    if memory is None:
        ways[0].make(None)
        training.make(None)
        return Shares(None, None, note=ways[0].note)
    left = max(memory - held, 0)
    usual = min(ways[0].usual(left), left)
    evaluating, trained = _need(ways[0], usual), _need(training, left - usual)
    if evaluating.fits and trained.fits:
        enough = held + trained.bytes + evaluating.bytes
        return Shares(memory, usual, held, ways[0].note, enough)
    fewest = evaluating
    for number, way in enumerate(ways):
        need = _need(way, max(left - trained.bytes, 0))
        if not need.fits and trained.fits:
            # What fitted may fit in less than it says.
            trained = _need(training, max(left - need.bytes, 0))
        fewest = need if number == 0 or need.bytes < fewest.bytes else fewest
        if need.fits or trained.fits:
            spare = left - trained.bytes if need.fits else need.bytes
            evaluation = max(need.bytes, min(way.usual(left), spare))
            way.make(evaluation)
            training.make(left - evaluation)
            enough = held + trained.bytes + need.bytes
            return Shares(memory, evaluation, held, way.note, enough)
    raise refusal(memory, max(held + trained.bytes + fewest.bytes, least), trained, fewest)


@dataclass(frozen=True)
class _Need:
    bytes: int
    fits: bool
    error: BudgetError | None = None


def _need(part: Part, memory: int) -> _Need:
    try:
        return _Need(part.make(memory), fits=True)
    except BudgetError as error:
        if error.enough_bytes is None:
            raise
        return _Need(error.enough_bytes, fits=False, error=error)


def refusal(memory: int, enough: int, trained: _Need, evaluated: _Need) -> BudgetError:
    """The error of a run that has too little, with the memory in which it fits."""
    mib = [-(-part // MIB) for part in (trained.bytes, evaluated.bytes, enough, memory)]
    error = BudgetError.of(
        "train",
        expected=f"{mib[2]} MiB or more: {mib[0]} to train, {mib[1]} to evaluate, and what is held",
        got=f"{memory // MIB} MiB",
        hint=f"run with `--memory {mib[2]}MiB` or more, or a smaller `--batch-size` or `--fanout`",
    )
    error.enough_bytes = enough
    return error
