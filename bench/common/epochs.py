"""Epochs of a loader in this process, timed: with a model that is trained, or with nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import torch

import tiergraph as tg
from common.reporting import Record
from tiergraph.train import TrainOptions
from tiergraph.train.models import forward


def drain(loader: tg.NeighborLoader, number: int) -> Record:
    """Epoch `number`, each batch dropped as soon as it is there: what the loader itself takes."""
    loader.set_epoch(number)
    began = time.perf_counter()
    for batch in loader:
        del batch
    return loader.last_epoch | {"seconds": time.perf_counter() - began}


def train(
    batches: Iterable[Any], model: Any, optimizer: torch.optim.Optimizer, shape: TrainOptions
) -> Record:
    """A step on each batch; the seconds of all, and of the steps alone."""
    training = 0.0
    began = time.perf_counter()
    for batch in batches:
        stepped = time.perf_counter()
        optimizer.zero_grad()
        logits = forward(model, batch, batch.x, shape)
        labels = batch.y[: batch.batch_size].reshape(-1).long()
        torch.nn.functional.cross_entropy(logits, labels).backward()
        optimizer.step()
        training += time.perf_counter() - stepped
    return {"seconds": time.perf_counter() - began, "seconds_train": training}
