"""What a training job takes, as its first batches show it."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .. import _native
from ..arguments.calls import checked
from ..arguments.checks import Check, MisfitError, arguments, each, number, text, truth, whole
from ..errors import InputError
from ..loaders.node import NeighborLoader
from ..loaders.source import Batches
from .misses import OTHER_EPOCH, Misses, misses_of

LINE_BYTES = 128
"""Of a transaction over PCIe, as loaders on a GPU count them."""
MOST_BATCHES = 10_000
PAIRS = 2
"""Times that two batches are trained on one right after the other."""
AHEAD = 4
"""Batches that loaders have ready, at least, after the time for so many."""
LEAST_AHEAD, MOST_AHEAD = 0.02, 2.0
"""Seconds that are waited for those."""
SETTLED_BY = 30.0
"""Seconds after which counts are taken as they are, though they still change."""
DRIVES = re.compile(r"(?:^|:)modelled:(?P<kind>[a-z0-9]+)(?:\*(?P<count>\d+))?$")
"""In what a loader reads by (`io`), the drives that are imitated."""
SAID = re.compile(r"(?P<kind>[a-z0-9]+)(?:\*(?P<count>\d+))?$")


class Job(NamedTuple):
    """What a batch of a training job takes, on average; `_asdict()` is JSON, as `plan` reads it."""

    batch_size: int
    """Seeds of a batch."""
    drive_bytes: float
    """Bytes that are read from drives."""
    drive_reads: float
    """Reads by which they are."""
    host_bytes: float
    """Bytes of neighbours and rows in host memory that a GPU reads; 0 where the CPU trains."""
    train_seconds: float
    """Seconds of training, while the next batches are prepared."""
    is_on_gpu: bool
    """Whether a GPU trains."""
    prepare_seconds: float = 0.0
    """Seconds of preparing where nobody trains, as it was measured; plans do not use it."""
    lookup_seconds: float = 0.0
    """Seconds of preparing that neither drives nor the link to a GPU set: sampling, look-ups."""
    drive_share: float = 1.0
    """The share of a drive's reads a second that preparing reaches."""
    row_bytes: float = 0.0
    """Bytes of a row of features."""
    device_rows: float = 0.0
    """Rows that were in the GPU's memory."""
    host_rows: float = 0.0
    """Rows that were in the host's memory."""
    misses: Misses = ()
    """Numbers of rows, rising from 0 to all, and of each, how many of a batch's rows are not among
    so many of the hottest. Empty: what more or less memory brings is not known."""


def _curve(value: Any) -> Misses:
    """Pairs of numbers."""
    points = each(each(number(0), "pairs of numbers"), "pairs of numbers")(value)
    if any(len(point) != 2 for point in points):
        raise MisfitError("pairs of numbers")
    return tuple((at, missed) for at, missed in points)


OF_JOB: dict[str, Check] = {
    "batch_size": whole(1),
    "drive_bytes": number(0),
    "drive_reads": number(0),
    "host_bytes": number(0),
    "train_seconds": number(0, open_below=True),
    "is_on_gpu": truth,
    "prepare_seconds": number(0),
    "lookup_seconds": number(0),
    "drive_share": number(0, open_below=True),
    "row_bytes": number(0),
    "device_rows": number(0),
    "host_rows": number(0),
    "misses": _curve,
}
"""What the figures of a job may be."""

LEAST = set(Job._fields) - set(Job._field_defaults)
"""What a job must say."""


def job_of(found: Any, where: object = None) -> Job:
    """The job that a mapping says, as `Job._asdict()` and its JSON are; `where` it was read.

    Raises `InputError` for what is no mapping, for other names, and for values that no job has.
    """
    if not isinstance(found, Mapping):
        got = type(found).__name__
        raise InputError.of("read the job", where, expected="a `Job`, or a mapping", got=got)
    if not LEAST <= set(found) <= set(Job._fields):
        expected = f"an object with {', '.join(f'`{name}`' for name in Job._fields)}"
        got = ", ".join(map(str, found)) or "no entry"
        raise InputError.of("read the job", where, expected=expected, got=got)
    read = {}
    for name, value in found.items():
        try:
            read[name] = OF_JOB[name](value)
        except MisfitError as misfit:
            expected, got = f"{misfit} as `{name}`", json.dumps(value, default=str)
            raise InputError.of("read the job", where, expected=expected, got=got) from None
    return Job(**read)


@checked
@arguments(batches=whole(2, MOST_BATCHES), drives=text)
def measure_job(
    loader: NeighborLoader,
    train: Callable[[Any], object],
    *,
    batches: int = 5,
    drives: str | None = None,
) -> Job:
    """What a batch of `loader`, and `train` on it, take, from the first batches of an epoch.

    `train(batch)` trains on one batch: on a GPU, it need not wait for the device. `batches` are
    prepared while nobody trains, and as many and four more while others are trained on, of an epoch
    that nobody comes to otherwise. A few more are sampled, without rows, to see how often rows are
    wanted, and so what more or less memory would bring: for that a second loader has as much memory
    for a moment. `drives` are those that the loader reads from, such as `p5510*2`: with it,
    preparing shows what share of their rate it reaches, or what it takes beside them; it is known
    of drives that are imitated (`io="modelled:…"`). Measure with few drives, if you can: they say
    more where they set the pace.

    The loader's next epoch is the one that it was. Raises `InputError` for a loader of fewer than
    two batches, or whose batches the CPU makes and moves to a GPU, and for drives that the
    catalogue does not have.
    """
    found = _drives(loader, drives)
    number = loader.epoch
    # Not one whose batches were sampled to see what is hot: memory has more of what those want.
    loader.set_epoch(OTHER_EPOCH - 1)
    preparing = _Preparing.of(loader, batches)
    loader.set_epoch(OTHER_EPOCH - 1)
    epoch = iter(loader)
    timed = _Training(train, preparing.is_on_gpu)
    train_seconds = timed.seconds(epoch, batches, preparing.seconds)
    epoch.close()
    loader.set_epoch(number)
    kept = loader.kept()
    rows = {"row_bytes": 0.0, "device_rows": 0.0, "host_rows": 0.0, "misses": ()}
    misses = misses_of(loader) if loader.row_bytes else ()
    if misses:
        rows |= {
            "row_bytes": loader.row_bytes,
            "device_rows": kept.get("device_rows", 0),
            "host_rows": kept.get("host_rows", kept.get("kept_rows", 0)),
            "misses": misses,
        }
    measured = rows | {
        "batch_size": loader.batch_size,
        "drive_bytes": preparing.drive_bytes,
        "drive_reads": preparing.drive_reads,
        "host_bytes": preparing.host_bytes,
        "prepare_seconds": preparing.seconds,
        "train_seconds": train_seconds,
        "is_on_gpu": preparing.is_on_gpu,
        "drives": found,
    }
    job = json.loads(_native.measured_job(json.dumps(measured)))
    return Job(**job | {"misses": misses})


def _drives(loader: NeighborLoader, said: str | None) -> tuple[str, int] | None:
    """The drives that a loader reads from, and how many; None if that is not known."""
    matched = DRIVES.search(loader.reads_by) if said is None else SAID.match(said)
    if matched is None:
        if said is not None:
            raise InputError.of("measure a job on", said, expected="a drive, as in `p5510*2`")
        return None
    return matched["kind"], int(matched["count"] or 1)


class _Preparing(NamedTuple):
    """What preparing a batch took where nobody trained."""

    seconds: float
    drive_bytes: float
    drive_reads: float
    host_bytes: float
    is_on_gpu: bool

    @classmethod
    def of(cls, loader: NeighborLoader, batches: int) -> _Preparing:
        """Of the first `batches` of an epoch, but the first."""
        epoch = iter(loader)
        taken, read, times = 0, list[dict[str, Any]](), list[float]()
        for _ in itertools.islice(epoch, batches):
            _wait()
            times.append(time.perf_counter())
            read.append(epoch.stats())
            taken += 1
        seconds = (times[-1] - times[0]) / max(taken - 1, 1) if times else 0.0
        settled = cls._settled(epoch, seconds)
        epoch.close()
        if taken < 2:
            raise InputError.of("measure a job", expected="two batches at least", got=str(taken))
        first, last = read[0], read[-1]
        # As many are on their way at either end, so the difference is what these batches took.
        begun = max(int(last["batches"]) - int(first["batches"]), 1)
        is_on_gpu = "transactions" in last
        if loader.device != "cpu" and not is_on_gpu:
            raise InputError.of(
                "measure a job",
                expected="batches that a GPU makes or gathers, or the CPU for the CPU",
                got=f"batches that the CPU makes, and moves to `{loader.device}`",
                hint="`loader.kept()` says why; measure without `device`",
            )

        def of_each(amount: Callable[[dict[str, Any]], float]) -> float:
            more = float(amount(last) - amount(first))
            return more / begun if more > 0 else 0.0

        def lines(stats: dict[str, Any]) -> float:
            moved: dict[str, int] = stats.get("transactions", {})
            return sum(moved.get(name, 0) for name in ("host_lists", "host_rows"))

        reads = of_each(lambda stats: stats["reads"])
        return cls(
            seconds=seconds,
            drive_bytes=reads * settled["bytes_ssd"] / max(settled["reads"], 1),
            drive_reads=reads,
            host_bytes=LINE_BYTES * of_each(lines),
            is_on_gpu=is_on_gpu,
        )

    @staticmethod
    def _settled(epoch: Batches, seconds: float) -> dict[str, Any]:
        """What is counted when all that was begun is there.

        Reads are counted when they begin, bytes when they end.
        """
        deadline = time.perf_counter() + SETTLED_BY
        before, stats = dict[str, Any](), epoch.stats()
        while stats != before and time.perf_counter() < deadline:
            time.sleep(min(max(AHEAD * seconds, LEAST_AHEAD), MOST_AHEAD))
            before, stats = stats, epoch.stats()
        return stats


class _Training:
    """Trains on batches of an epoch, and measures it: what a GPU takes, where one trains."""

    def __init__(self, train: Callable[[Any], object], on_gpu: bool) -> None:
        self._train, self._on_gpu = train, on_gpu
        self._spans: list[tuple[Any, Any]] = []

    def seconds(self, epoch: Batches, batches: int, prepare_seconds: float) -> float:
        """Seconds from a batch to the next, where it is there in time.

        That is training while the loader prepares others, in the middle of some, and what lies
        between two that are both there: Python's part, which a GPU may have to wait for.
        """
        for batch in itertools.islice(epoch, batches):
            self._step(batch)
        # The first call compiles, and fills caches.
        settled = sorted(self._took(begun, ended) for begun, ended in self._spans[1:])
        return settled[len(settled) // 2] + self._between(epoch, prepare_seconds)

    def _between(self, epoch: Batches, prepare_seconds: float) -> float:
        """Seconds from the end of a batch to the begin of the next; 0 at an epoch's end."""
        found: list[float] = []
        for _ in range(PAIRS):
            # Until batches ahead are ready.
            time.sleep(min(AHEAD * prepare_seconds, MOST_AHEAD))
            pair = 0
            for batch in itertools.islice(epoch, 2):
                self._step(batch)
                pair += 1
            if pair == 2:
                found.append(self._took(self._spans[-2][1], self._spans[-1][0]))
        return min(found, default=0.0)

    def _step(self, batch: Any) -> None:
        begun = self._now()
        self._train(batch)
        self._spans.append((begun, self._now()))

    def _now(self) -> Any:
        """The moment on the clock of what trains."""
        if not self._on_gpu:
            # What trains on a GPU all the same has it done by then.
            _wait()
            return time.perf_counter()
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _took(self, begun: Any, ended: Any) -> float:
        """Seconds from one moment to another."""
        if not self._on_gpu:
            return float(ended - begun)
        _wait()
        return max(float(begun.elapsed_time(ended)) / 1e3, 1e-9)


def _wait() -> None:
    """Until a GPU has done what it was given."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()
