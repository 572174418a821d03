"""An algorithm's iterations with other drives and other memory, as one run shows them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .. import _native
from ..arguments.calls import checked
from ..arguments.checks import arguments, each, number, path, text, whole
from ..errors import InputError
from .plan import catalogue

WHOLE = ("pagerank", "wcc")
"""Algorithms whose iterations go over the whole graph."""
OF_RUN = ("iterations", "seconds", "compute_seconds", "wait_seconds", "threads", "pass_bytes")
BESIDE = ("check_seconds", "bytes_read", "read_ceiling")
"""What a run may say, too."""
DRIVES = (1, 2, 4, 8, 12)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


class PassEstimate(NamedTuple):
    """An iteration with some drives and some memory."""

    drives: int
    resident_bytes: float
    """Of the graph, that stay in memory."""
    drive_seconds: float
    """Of reading the others."""
    compute_seconds: float
    """Of all workers at once."""
    seconds: float
    """The larger of the two, and what goes on at the same time as neither."""
    bottleneck: str
    """`drives` or `compute`."""


@checked
@arguments(
    run=None,
    drive=text,
    drives=each(whole(1, 1000), "numbers of drives"),
    shares=each(number(0, 1), "shares from 0 to 1"),
    parts=path,
)
def plan_passes(
    run: Mapping[str, Any],
    *,
    drive: str | None = None,
    drives: Sequence[int] = DRIVES,
    shares: Sequence[float] = SHARES,
    parts: str | os.PathLike[str] | None = None,
) -> list[PassEstimate]:
    """Seconds an iteration takes with each number of drives and share of the graph in memory.

    `run` is what a run of PageRank or WCC on a CPU measured: `graph.last_run`, or what the command
    printed with `--json`. It tells what is computed in an iteration, what comparing checksums of
    blocks that are read takes, and what goes on beside, with the codec and the processors that it
    had. `drive` is a kind of the catalogue (`p5510`), or of
    the file `parts`; None for the drives that the run read from, if it measured them (`--ceiling`).
    `shares` of the graph are in memory.

    Raises `InputError` for a run of another algorithm, or on a GPU, and for a drive that is not
    known; `FormatError` and `IoError` as `plan` does.
    """
    algorithm, device = run.get("algorithm"), str(run.get("device", "cpu"))
    missing = [name for name in OF_RUN if not isinstance(run.get(name), int | float)]
    if algorithm not in WHOLE or device != "cpu" or missing:
        raise InputError.of(
            "plan for a run",
            expected="one of PageRank or WCC, whose iterations go over the whole graph, on a CPU",
            got=f"{algorithm} on {device}" + (f" without {missing[0]}" if missing else ""),
        )
    question = {
        "run": {name: run[name] for name in (*OF_RUN, *BESIDE) if run.get(name) is not None},
        "drive": drive,
        "drives": list(drives),
        "shares": list(shares),
        "parts": catalogue(parts),
    }
    found = json.loads(_native.plan_passes(json.dumps(question)))
    return [PassEstimate(**estimate) for estimate in found]
