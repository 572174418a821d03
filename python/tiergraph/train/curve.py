"""The curve of a run as a picture: loss, scores, and where the epochs' time went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError, IoError

SCORES = ("train_accuracy", "accuracy", "roc_auc")
STAGES = ("seconds_wait", "seconds_train", "seconds_evaluate")


def draw(history: Sequence[dict[str, Any]], path: Path) -> None:
    """Writes `path`, in the format that its suffix says (`.png`, `.svg`, `.pdf`)."""
    figure_class = _figure()
    figure = figure_class(figsize=(9, 3), layout="constrained")
    loss, scores, time = figure.subplots(1, 3)
    epochs = [record["epoch"] for record in history]
    loss.plot(epochs, [record["loss"] for record in history])
    loss.set_ylabel("training loss")
    for name in SCORES:
        values = [record.get(name) for record in history]
        if any(value is not None for value in values):
            scores.plot(epochs, values, label=name.replace("_", " "))
    scores.set_ylabel("score")
    stages = {name.removeprefix("seconds_"): [r[name] for r in history] for name in STAGES}
    time.stackplot(epochs, list(stages.values()), labels=list(stages))
    time.set_ylabel("seconds an epoch")
    for axes in (loss, scores, time):
        axes.set_xlabel("epoch")
    for axes in (scores, time):
        axes.legend()
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise IoError.of("write the curve", path, got=error) from error


def check() -> None:
    """Complains now, and not after the run, where curves cannot be drawn."""
    _figure()


def _figure() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError.of(
            "draw a curve", got="matplotlib is not installed", hint="pip install matplotlib"
        ) from error
    return Figure
