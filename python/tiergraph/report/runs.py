"""What a run said of itself, and its timeline."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, InputError, IoError

MICRO = 1e-6


@dataclass(frozen=True)
class Spans:
    """The spans of a timeline, in the order of their lanes."""

    begin: NDArray[np.float64]
    """Seconds from the first span's begin on, shape (n,)."""
    seconds: NDArray[np.float64]
    lane: NDArray[np.int64]
    """The row that each is drawn in, from 0 on."""
    what: list[str]
    """The part of the machine and what it did, of each."""
    size: NDArray[np.float64]
    """Bytes that were read; 0 of other work, and where the trace does not say."""
    lanes: list[str]
    """The part of the machine that each lane belongs to."""

    def __len__(self) -> int:
        return len(self.begin)


@dataclass(frozen=True)
class Run:
    """A run: what it said of itself, by the names of `--json`, and its timeline."""

    title: str
    fields: dict[str, Any]
    spans: Spans | None = None
    details: list[dict[str, Any]] = field(default_factory=list)
    """Of iterations, in their order."""
    epochs: list[dict[str, Any]] = field(default_factory=list)
    """Of a training run."""


def read(path: Path, trace: Path | None = None) -> Run:
    """The run whose `--json` is in the file `path`, with the timeline that `--trace` wrote.

    Raises `FormatError` for a file that is no run or no trace, `IoError` for one that cannot be
    read.
    """
    spans = None if trace is None else spans_of(trace)
    return of(_object(path, "a run"), spans, path)


def of(fields: dict[str, Any], spans: Spans | None = None, path: Path | None = None) -> Run:
    """The run that said `fields` of itself; `path` is where, for messages."""
    epochs, details = fields.get("epochs"), fields.get("details")
    if not isinstance(epochs, list) and "algorithm" not in fields:
        raise FormatError.of(
            "report",
            path,
            expected="what a run of an algorithm, or of training, says of itself as JSON",
            got=", ".join(fields) or "an empty object",
        )
    details, epochs = (
        _records(details, ("iterations", "seconds"), path),
        _records(epochs, ("epoch",), path),
    )
    graph = Path(str(fields.get("graph", ""))).name
    name = fields.get("algorithm") or f"training, {fields.get('options', {}).get('model', '')}"
    return Run(
        title=f"{name} on {graph}",
        fields={k: v for k, v in fields.items() if k not in ("details", "epochs")},
        spans=spans,
        details=details,
        epochs=epochs,
    )


def _records(found: Any, numbers: tuple[str, ...], path: Path | None) -> list[dict[str, Any]]:
    """The records of a list, each of which has these numbers; none without a list."""
    for record in found or []:
        has = record.get if isinstance(record, dict) else {}.get
        missing = [name for name in numbers if not isinstance(has(name), int | float)]
        if missing:
            raise FormatError.of("report", path, expected=f"a number as `{missing[0]}`", got=record)
    return list(found or [])


def spans_of(path: Path) -> Spans:
    """The timeline in a file of Chrome trace events, as `--trace` writes it."""
    events = _object(path, "a trace").get("traceEvents")
    try:
        return _spans(events)
    except (TypeError, KeyError, ValueError) as error:
        raise FormatError.of(
            "report",
            path,
            expected="Chrome trace events, as a run that is traced writes them",
            got=error,
        ) from None


def _spans(events: Any) -> Spans:
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    spans = [e for e in events if e["ph"] == "X"]
    rows = sorted({(int(e["pid"]), int(e["tid"])) for e in spans})
    lane_of = {row: lane for lane, row in enumerate(rows)}
    begin = np.array([float(e["ts"]) for e in spans]) * MICRO
    return Spans(
        begin=begin - begin.min(initial=np.inf) if len(begin) else begin,
        seconds=np.array([float(e["dur"]) for e in spans]) * MICRO,
        lane=np.array([lane_of[int(e["pid"]), int(e["tid"])] for e in spans], np.int64),
        what=[f"{names.get(e['pid'], e['pid'])}: {e['name']}" for e in spans],
        size=np.array([float(e.get("args", {}).get("bytes", 0)) for e in spans]),
        lanes=[str(names.get(pid, pid)) for pid, _ in rows],
    )


def _object(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise IoError.of("read", path, got=error.strerror or str(error)) from None
    except ValueError as error:
        raise FormatError.of("report", path, expected=f"{what} (JSON)", got=error) from None
    if not isinstance(found, dict):
        raise FormatError.of(
            "report", path, expected=f"{what}, a JSON object", got=type(found).__name__
        )
    return found


def check_number(count: int) -> None:
    """Refuses a report of nothing, and of more runs than colours tell apart."""
    if not 1 <= count <= MOST:
        raise InputError.of("report", expected=f"1 to {MOST} runs", got=str(count))


MOST = 8
"""Runs side by side."""
