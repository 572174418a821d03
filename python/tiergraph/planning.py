"""Which hardware a training job needs: throughput for a dollar, and what limits it.

After Hyperion (ICDE 2025, sections III-C and VI): a few batches say what a job takes, and a model
says what becomes of it with other numbers of drives.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from . import _native
from .arguments.calls import checked
from .arguments.checks import Check, arguments, number, one, path, text, truth, whole
from .errors import InputError
from .loaders.node import NeighborLoader

LINE_BYTES = 128
"""Of a transaction over PCIe, as loaders on a GPU count them."""
MOST_BATCHES = 10_000


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
    """Seconds of training, where the batch is there already."""
    lookup_seconds: float
    """Seconds of looking up what caches have, which reads from drives wait for."""
    is_on_gpu: bool
    """Whether a GPU trains."""


OF_JOB: dict[str, Check] = {
    "batch_size": whole(1),
    "drive_bytes": number(0),
    "drive_reads": number(0),
    "host_bytes": number(0),
    "train_seconds": number(0, open_below=True),
    "lookup_seconds": number(0),
    "is_on_gpu": truth,
}
"""What the figures of a job may be."""


class Estimate(NamedTuple):
    """What comes of a number of drives; seconds are of a batch."""

    drives: int
    drive_seconds: float
    link_seconds: float
    """Of the link to the GPU (PCIe); 0 where the CPU trains."""
    train_seconds: float
    batch_seconds: float
    """The largest of the three: they go on at the same time."""
    bottleneck: str
    """Which of them it is: `drives`, `link` or `training`."""
    seeds_per_second: float
    dollars: float
    """For five years, with electricity."""
    seeds_per_second_and_dollar: float


class Plan(NamedTuple):
    """The answer of `plan`."""

    estimates: list[Estimate]
    """Each number of drives that slots and budget allow, from 1 on."""
    best: Estimate
    """The one that gives most for a dollar."""
    one_more: float | None
    """By how much one drive more raises seeds a second (0.1: a tenth); None without one."""
    limit: str
    """What limits the best, in a sentence."""


@checked
@arguments(batches=whole(1, MOST_BATCHES))
def measure_job(loader: NeighborLoader, train: Callable[[Any], object], *, batches: int = 8) -> Job:
    """What a batch of `loader`, and `train` on it, take, from the first batches of an epoch.

    `train(batch)` trains on one batch: on a GPU, it need not wait for the device. The loader's
    memory, and so what lies on drives, is as it is now: make the loader with the memory that the
    machine shall have. The epoch that was begun for this begins anew with the next `iter()`.
    Raises `InputError` for a loader without batches.
    """
    number, epoch, held = loader.epoch, iter(loader), list[Any]()
    for batch in itertools.islice(epoch, batches):
        held = [*held, batch][:2]
    read = epoch.stats()
    epoch.close()
    loader.set_epoch(number)
    if not held:
        raise InputError.of("measure a job", expected="a batch at least", got="none")
    begun = max(read["batches"], 1)
    seconds = [_seconds(train, held[turn % len(held)]) for turn in range(3)]
    moved = read.get("transactions", {})
    lines = sum(moved.get(name, 0) for name in ("host_lists", "host_rows"))
    return Job(
        batch_size=loader.batch_size,
        drive_bytes=read["bytes_ssd"] / begun,
        drive_reads=read["reads"] / begun,
        host_bytes=LINE_BYTES * lines / begun,
        # The first call compiles, and fills caches.
        train_seconds=min(seconds[1:]),
        lookup_seconds=0.0,
        is_on_gpu="transactions" in read,
    )


def _seconds(train: Callable[[Any], object], batch: Any) -> float:
    """The time of training on a batch, to the end of what it had a GPU do."""
    import torch

    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    wait()
    since = time.perf_counter()
    train(batch)
    wait()
    return time.perf_counter() - since


@checked
@arguments(
    machine=text, gpu=text, drive=text, budget=number(0, open_below=True), parts=path, job=None
)
def plan(
    job: Job,
    *,
    machine: str = "a",
    gpu: str = "a100",
    drive: str = "p5510",
    budget: float | None = None,
    parts: str | os.PathLike[str] | None = None,
) -> Plan:
    """The number of drives that gives most training for a dollar, and what limits it.

    `machine` and `gpu` are of the catalogue of parts: the paper's machines `a` and `b`, `a100`,
    `h800` and `none`; `parts` is a file of others (TOML, of the same form as the program's own,
    `crates/planner/parts.toml`). `gpu` should be the one that the job's training was timed on.
    `drive` is `p5510`, `980pro`, or one of `parts`. `budget` is the most dollars for five years,
    with electricity.

    Drives are predicted by their data sheets; a batch takes the largest of what drives, the link
    and training take (equation 4 of the paper). Raises `InputError` for parts that are not in the
    catalogues or have no price there, a budget that pays for no machine, and figures that no job
    has; `FormatError` for a file of parts that is none; `IoError` for one that cannot be read.
    """
    job = Job(*(one(name, value, OF_JOB) for name, value in job._asdict().items()))
    catalogue = None
    if parts is not None:
        catalogue = (read_text(Path(parts)), os.fspath(parts))
    parts_asked = {"machine": machine, "gpu": gpu, "drive": drive, "parts": catalogue}
    question: dict[str, Any] = {"job": job._asdict(), "budget": budget} | parts_asked
    found = json.loads(_native.plan(json.dumps(question)))
    estimates = [Estimate(**estimate) for estimate in found["estimates"]]
    return Plan(estimates, estimates[found["best"]], found["one_more"], found["limit"])


def read_text(file: Path) -> str:
    """The text of a small file, or an `Error` that names it."""
    from .errors import FormatError, IoError

    try:
        return file.read_text()
    except OSError as error:
        raise IoError.of("read", file, got=error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise FormatError.of("read", file, expected="text", got="other bytes") from None
