"""Several runs that differ in their seed: each one's scores, and their mean and deviation."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .trainer import Record, Trainer, Watch

Make = Callable[[int], Trainer]
"""A trainer for a seed."""


def train_seeds(
    make: Make, seeds: Sequence[int], graph: str, watch: Callable[[int], Watch] | None = None
) -> tuple[Trainer, Record]:
    """Trains once a seed, one run after the other; `watch` gives what looks at the run of a place.

    Returns a trainer with the model of the best validation score, and the report: `seeds`, `runs`
    (as `Trainer.report`, of each), `best_seed`, and `summary`: `mean` and `deviation` of each
    score of the best epochs (`validation_…`) and the test (`test_…`), None of what was not scored.
    """
    runs: list[Record] = []
    best: Record = {"score": -math.inf, "seed": seeds[0]}
    trainer: Trainer | None = None
    for number, seed in enumerate(seeds):
        # The one before goes first: two do not fit the memory.
        trainer = None
        trainer = make(seed)
        trainer.train(None if watch is None else watch(number))
        runs.append(trainer.report(graph))
        if number == 0 or trainer.best["score"] > best["score"]:
            best = {"score": trainer.best["score"], "seed": seed, "of": trainer.best}
    assert trainer is not None, "there is a seed"
    trainer.best, trainer.options = best["of"], replace(trainer.options, seed=best["seed"])
    report = {"graph": graph, "seeds": list(seeds), "best_seed": best["seed"], "runs": runs}
    return trainer, report | {"summary": summary(runs)}


def summary(runs: Sequence[Record]) -> Record:
    """Mean and sample deviation of the runs' scores."""
    scores: dict[str, list[Any]] = {}
    for run in runs:
        of_best: Record = next((r for r in run["epochs"] if r["epoch"] == run["best_epoch"]), {})
        for name, value in run["test"].items():
            scores.setdefault(f"validation_{name}", []).append(of_best.get(name))
            scores.setdefault(f"test_{name}", []).append(value)
    return {name: _spread(values) for name, values in scores.items()}


def _spread(values: list[Any]) -> Record | None:
    if any(value is None for value in values):
        return None
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return {"mean": statistics.fmean(values), "deviation": deviation}
