"""Loops of runs on a graph: checkpoints between their steps, and one report of all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..opening import Opening

Values = NDArray[np.float64]
Step = Callable[[Values], Values]

SUMMED = (
    "iterations",
    "bytes_read",
    "wait_seconds",
    "compute_seconds",
    "check_seconds",
    "loaded_bytes",
    "load_seconds",
)
"""What reports of runs count; of everything else, the last run's is the loop's."""

ENTRIES = 1000
"""The most iterations that a report lists one by one, as reports of the native part do."""


class Loop:
    """Steps that end once one changes little: one run, whatever runs a step is made of."""

    def __init__(self, opening: Opening, name: str) -> None:
        self._opening = opening
        self._name = name
        self._begin = self._last = perf_counter()
        self._counted: dict[str, Any] = {}
        self._details: list[dict[str, Any]] = []
        self._read_before = 0
        self._kept: dict[str, Any] = {}
        self.is_reached = False
        """Whether a step changed as little as was asked for."""

    def add(self, report: dict[str, Any]) -> None:
        """Notes the report of a run that a step made."""
        sums = {key: self._counted.get(key, 0) + report[key] for key in SUMMED if key in report}
        self._counted = report | sums

    def run(
        self, step: Step, first: Values, iterations: int, tolerance: float, options: dict[str, Any]
    ) -> Values:
        """The values after the step that changes all of them together by less than `tolerance`.

        Those after `iterations` where none does; `is_reached` tells. A checkpoint that an earlier
        loop of the same name, `options` and `tolerance` left is where it begins.
        """
        kept = None
        if self._opening.checkpoint is not None:
            told = options | {"tolerance": tolerance}
            given = json.dumps({key: _digest(value) for key, value in told.items()}, sort_keys=True)
            kept = self._opening.native.loop_checkpoints(f"loop-{self._name}", given)
        done, values = (kept and kept.take()) or (0, first)
        for _ in range(done, iterations):
            before, values = values, step(values)
            change = float(np.abs(values - before).sum())
            self._note(change)
            self.is_reached = change < tolerance
            if self.is_reached:
                break
            if kept is not None:
                kept.keep(np.ascontiguousarray(values, np.float64))
        if kept is not None:
            self._kept = json.loads(kept.report())
        return values

    def _note(self, change: float) -> None:
        """Notes the end of an iteration."""
        now, read = perf_counter(), self._counted.get("bytes_read", 0)
        entry = {
            "iterations": 1,
            "seconds": now - self._last,
            "bytes_read": read - self._read_before,
            "how": "step",
            "measure": change,
        }
        self._last, self._read_before = now, read
        if len(self._details) < ENTRIES:
            self._details.append(entry)
            return
        last = self._details[-1]
        for key in ("iterations", "seconds", "bytes_read"):
            last[key] += entry[key]
        last["measure"] = change

    def report(self) -> dict[str, Any]:
        """What `last_run` says of the loop: its iterations, and what all of its runs took."""
        counted, seconds = self._counted, perf_counter() - self._begin
        iterations = sum(entry["iterations"] for entry in self._details)
        looped = seconds - counted.get("load_seconds", 0)
        said = {
            "graph": self._opening.path,
            "algorithm": self._name,
            "iterations": iterations,
            "seconds": seconds,
            "seconds_per_iteration": looped / max(iterations, 1),
            "converged": self.is_reached,
        }
        if counted:
            # Every iteration of a run visits all edges.
            said |= {
                f"{kind}_per_second": counted[kind] * counted["iterations"] / seconds
                for kind in ("edges", "arcs")
            }
            said["read_bandwidth"] = counted["bytes_read"] / seconds
            said["passes"] = counted["bytes_read"] / max(counted["pass_bytes"], 1)
        whole = counted | said | self._kept | {"details": self._details}
        if self._kept:
            whole.pop("checkpoint_why", None)
        return whole


def _digest(value: Any) -> Any:
    """What tells a value from others, as JSON has it: itself, or the checksum of an array."""
    if isinstance(value, np.ndarray):
        return sha256(value.tobytes()).hexdigest()
    return value.item() if isinstance(value, np.generic) else value
