"""Training PyG models on graphs that need not fit in memory: `tiergraph train`, as a library."""

from __future__ import annotations

from .link_trainer import LinkTrainer
from .options import TrainOptions
from .trainer import Trainer

__all__ = ["LinkTrainer", "TrainOptions", "Trainer"]
