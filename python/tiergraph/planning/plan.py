"""The hardware that gives a training job most for a dollar, and what limits it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import _native
from ..arguments.calls import checked
from ..arguments.checks import arguments, each, number, path, size, text
from ..errors import FormatError, IoError
from .job import Job, job_of


class Estimate(NamedTuple):
    """What comes of a number of drives; seconds are of a batch."""

    drive: str
    """Their name in the catalogue."""
    drives: int
    device_cache_bytes: float
    """Of rows in the GPU's memory."""
    host_cache_bytes: float
    """Of rows in the host's memory."""
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


class MoreMemory(NamedTuple):
    """By how much 10 GB more memory for rows raises seeds a second (0.1: a tenth)."""

    device: float
    """On the GPU; 0 without one."""
    host: float


class Plan(NamedTuple):
    """The answer of `plan`."""

    estimates: list[Estimate]
    """Each number of drives that slots and budget allow, of the best's kind and with its memory."""
    best: Estimate
    """The one that gives most for a dollar."""
    kinds: list[Estimate]
    """The best of each kind of drive that the budget pays for; first the best of all."""
    one_more: float | None
    """By how much one drive more raises seeds a second (0.1: a tenth); None without one."""
    more_memory: MoreMemory | None
    """What 10 GB more memory brings; None where the job has no `misses`."""
    limit: str
    """What limits the best, in a sentence."""


def _kinds(value: Any) -> list[str]:
    """A name, or several."""
    named = [value] if isinstance(value, str) else value
    found: list[str] = each(text, "a drive's name, or several")(named)
    return found


@checked
@arguments(
    machine=text,
    gpu=text,
    drive=_kinds,
    device_cache=size,
    host_cache=size,
    budget=number(0, open_below=True),
    parts=path,
    job=None,
)
def plan(
    job: Job | Mapping[str, Any],
    *,
    machine: str = "a",
    gpu: str = "a100",
    drive: str | Sequence[str] | None = None,
    device_cache: int | str | None = None,
    host_cache: int | str | None = None,
    budget: float | None = None,
    parts: str | os.PathLike[str] | None = None,
) -> Plan:
    """The drives and the memory that give most training for a dollar, and what limits it.

    `job` is what `measure_job` found, or the same as a mapping, such as a file of it says.
    `machine` and `gpu` are of the catalogue of parts: the paper's machines `a` and `b`, `a100`,
    `h800` and `none`; `parts` is a file of others (TOML, of the same form as the program's own,
    `crates/planner/parts.toml`). `gpu` should be the one that the job's training was timed on.
    `drive` names a kind of drive, or several to choose from: `p5510`, `980pro`, or those of
    `parts`; None for all that have a price. `device_cache` and `host_cache` are bytes of rows of
    features in either memory (`"10GiB"`): as many as the job had where they are not given, or more
    of the host's where the catalogue has a price for memory. `budget` is the most dollars for five
    years, with electricity.

    Drives are predicted by their data sheets, of which a loader reaches `job.drive_share`; a batch
    takes the largest of what drives, the link and training take (equation 4 of the paper). Raises
    `InputError` for parts that are not in the catalogues or have no price there, a budget that pays
    for no machine, memory where the job has no `misses`, and figures that no job has; `FormatError`
    for a file of parts that is none; `IoError` for one that cannot be read.
    """
    job = job_of(job._asdict() if isinstance(job, Job) else job)
    question: dict[str, Any] = {
        "job": job._asdict(),
        "machine": machine,
        "gpu": gpu,
        "drives": drive or [],
        "device_cache": device_cache,
        "host_cache": host_cache,
        "budget": budget,
        "parts": catalogue(parts),
    }
    found = json.loads(_native.plan(json.dumps(question)))
    estimates = [Estimate(**estimate) for estimate in found["estimates"]]
    more = found["more_memory"]
    return Plan(
        estimates=estimates,
        best=estimates[found["best"]],
        kinds=[Estimate(**estimate) for estimate in found["kinds"]],
        one_more=found["one_more"],
        more_memory=None if more is None else MoreMemory(**more),
        limit=found["limit"],
    )


def catalogue(parts: str | os.PathLike[str] | None) -> tuple[str, str] | None:
    """The text and the name of a user's catalogue of parts; None for the program's own."""
    return None if parts is None else (read_text(Path(parts)), os.fspath(parts))


def read_text(file: Path) -> str:
    """The text of a small file, or an `Error` that names it."""
    try:
        return file.read_text()
    except OSError as error:
        raise IoError.of("read", file, got=error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise FormatError.of("read", file, expected="text", got="other bytes") from None
