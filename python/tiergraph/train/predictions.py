"""Predictions of a trained model as a file, a row for every vertex."""

from __future__ import annotations

from .. import results
from ..results import Columns
from .trainer import Trainer


def write(trainer: Trainer, path: str) -> None:
    """Writes `vertex`, `class` and `confidence` to `path`: `.parquet`, `.arrow`, `.csv` or `.npy`.

    The class is the likeliest by the best epoch's model (int64), the confidence the chance that the
    model gives it (float32). The trainer was made with `predicts`.
    """
    classes, confidence = trainer.predictions()
    columns: Columns = {"class": classes, "confidence": confidence}
    results.write_columns(path, trainer.graph.ids_of, columns, trainer.graph.names)
