"""The curve of a run as a picture: loss, scores, and where the epochs' time went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import pictures

SCORES = ("train_accuracy", "accuracy", "roc_auc")
STAGES = ("seconds_wait", "seconds_train", "seconds_evaluate")


def draw(history: Sequence[dict[str, Any]], path: Path) -> None:
    """Writes `path`, in the format that its suffix says (`.png`, `.svg`, `.pdf`)."""
    figure = pictures.figure(9, 3)
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
    pictures.save(figure, path, "the curve")
