"""Training PyG models on graphs that need not fit in memory: `tiergraph train`, as a library."""

from __future__ import annotations

from .link_trainer import LinkTrainer
from .options import TrainOptions
from .runs import train_seeds
from .saved import SavedModel, load
from .trainer import Trainer
from .typed.trainer import TypedTrainer

__all__ = [
    "LinkTrainer",
    "SavedModel",
    "TrainOptions",
    "Trainer",
    "TypedTrainer",
    "load",
    "train_seeds",
]
