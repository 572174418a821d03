"""One training run: epochs of batches, an evaluation after each, a checkpoint after that."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import pyg
from ..graph import Graph, open
from ..link import LinkNeighborLoader
from ..loader import NeighborLoader
from . import checkpoint
from .data import check_features, class_labels, split_positions
from .evaluate import Evaluator
from .models import build_model, forward, prepare
from .options import TrainOptions
from .scores import accuracy, score, score_name
from .shares import Shares

Record = dict[str, Any]
Chosen: TypeAlias = NDArray[np.integer[Any]]

Watch = Callable[[int, int, int, float], object]
"""`(epoch, batches done, batches, mean loss so far)`."""


class Trainer:
    """Node classification of the graph at `path`.

    After `train`, `history` has a record an epoch, and `report` everything. Raises `InputError`
    for what the graph does not have, `BudgetError` where a loader's part of `options.memory` does
    not hold it.
    """

    def __init__(
        self,
        path: str,
        options: TrainOptions,
        *,
        checkpoint: Path | None = None,
        resume: bool = False,
    ) -> None:
        torch = pyg.torch()
        self.options = options
        # What is trained on, validated and tested: positions, or links.
        self._train: Chosen
        self._val: Chosen
        self._test: Chosen
        # It runs no passes: loaders open it for themselves.
        graph = open(path, memory=options.memory, threads=1)
        width = check_features(graph, options.features)
        outputs = self._prepare(graph)
        torch.manual_seed(options.seed)
        self.model = build_model(options, width, outputs).to(pyg.device(options.device))
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=options.lr, weight_decay=options.weight_decay
        )
        self.shares = self._prepare_evaluation(graph)
        with self.shares.while_training():
            self.loader = self._loader(graph, self.shares.training)
        self.history: list[Record] = []
        self.best: Record = {"epoch": -1, "score": -math.inf, "model": None}
        self._checkpoint = checkpoint
        if resume and checkpoint is not None:
            self._restore(checkpoint)

    def _prepare(self, graph: Graph) -> int:
        """Reads what is predicted; returns how many values the model gives."""
        self._labels, self.classes = class_labels(graph, self.options.labels)
        self._train, self._val, self._test = (
            split_positions(graph, name, self._labels) for name in self.options.splits
        )
        self.score_name = score_name(self.classes)
        return self.classes

    def _prepare_evaluation(self, graph: Graph) -> Shares:
        """Makes what validates; returns how the run's memory is shared with it."""
        self._evaluator = Evaluator(graph, self.options, self.classes)
        self._evaluator.prepare(self._val)
        return self._evaluator.shares

    def _loader(self, graph: Graph, memory: int | None) -> NeighborLoader | LinkNeighborLoader:
        options = self.options
        return NeighborLoader(
            graph,
            options.fanout,
            graph.ids[self._train],
            batch_size=options.batch_size,
            rank=0,
            world_size=1,
            shuffle=True,
            seed=options.seed,
            memory=memory,
            threads=options.threads,
            window=options.window,
            features=options.features,
            labels=options.labels,
            device=options.device,
        )

    def train(self, watch: Watch | None = None) -> None:
        """Runs the epochs that are left, or until patience ends."""
        while len(self.history) < self.options.epochs and not self.is_patience_over():
            with self.shares.while_training():
                record = self._epoch(len(self.history), watch)
            record |= self._validate()
            self._note(record)
            if self._checkpoint is not None:
                checkpoint.save(self._checkpoint, self._state())

    def is_patience_over(self) -> bool:
        """Whether the score has not risen for `patience` epochs."""
        patience = self.options.patience
        return patience is not None and len(self.history) - 1 - self.best["epoch"] >= patience

    def test(self) -> Record:
        """The scores of the best epoch's model on the test split."""
        if self.best["model"] is not None:
            self.model.load_state_dict(self.best["model"])
        return self._scores(self._test)

    def _epoch(self, number: int, watch: Watch | None) -> Record:
        self.model.train()
        self.loader.set_epoch(number)
        began = time.perf_counter()
        total = seeds = correct = bytes_device = 0.0
        seconds_train = 0.0
        batches = iter(self.loader)
        for done, batch in enumerate(batches, 1):
            stepped = time.perf_counter()
            moved = batch.to(self.options.device)
            bytes_device += _moved_bytes(moved)
            loss, hits, count = self._step(moved)
            seconds_train += time.perf_counter() - stepped
            total += loss * count
            correct += hits
            seeds += count
            if watch is not None:
                watch(number, done, len(self.loader), total / seeds)
        seconds = time.perf_counter() - began
        stats = self.loader.last_epoch
        rows = max(stats["nodes"], 1)
        return stats | {
            "epoch": number,
            "seconds": seconds,
            "seconds_train": seconds_train,
            "loss": total / max(seeds, 1),
            "train_accuracy": correct / max(seeds, 1),
            "samples_per_second": seeds / seconds,
            "bytes_device": int(bytes_device),
            "row_hit_rate": 1 - stats["missed_rows"] / rows,
        }

    def _step(self, batch: Any) -> tuple[float, int, int]:
        """Trains on a batch: its mean loss, how many were right, and of how many."""
        torch, options = pyg.torch(), self.options
        x = prepare(batch.x, options)
        if options.input_dropout > 0:
            x = torch.nn.functional.dropout(x, options.input_dropout)
        labels = batch.y[: batch.batch_size].reshape(-1).long()
        self.optimizer.zero_grad()
        logits = forward(self.model, batch, x, options)
        loss = torch.nn.functional.cross_entropy(logits, labels)
        loss.backward()
        self.optimizer.step()
        hits = int((logits.argmax(dim=1) == labels).sum())
        return float(loss.detach()), hits, batch.batch_size

    def _validate(self) -> Record:
        began = time.perf_counter()
        scores = self._scores(self._val)
        return scores | {"seconds_evaluate": time.perf_counter() - began}

    def _scores(self, positions: Any) -> Record:
        """Accuracy, and what the model is chosen by; None of no vertices."""
        name = self.score_name
        if len(positions) == 0:
            return {"accuracy": None, name: None}
        logits = self._evaluator.logits(self.model, positions)
        labels = self._labels[positions]
        return {"accuracy": accuracy(logits, labels), name: score(logits, labels)}

    def _note(self, record: Record) -> None:
        """Adds an epoch to the history; without a validation split, the last is the best."""
        self.history.append(record)
        reached = record[self.score_name]
        if reached is None or np.isnan(reached) or reached > self.best["score"]:
            state = {name: value.clone() for name, value in self.model.state_dict().items()}
            best = -math.inf if reached is None or np.isnan(reached) else reached
            self.best = {"epoch": record["epoch"], "score": best, "model": state}

    def _state(self) -> Record:
        return {
            "run": self.options.run(),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": pyg.torch().get_rng_state(),
            "history": self.history,
            "best": self.best,
        }

    def _restore(self, path: Path) -> None:
        state = checkpoint.load(path, self.options.run())
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        pyg.torch().set_rng_state(state["random"])
        self.history, self.best = state["history"], state["best"]

    def _described(self) -> Record:
        """What is predicted, and how it is evaluated."""
        return {"classes": self.classes, "evaluation": self._evaluator.how}

    def report(self, path: str) -> Record:
        """Everything that was measured, under the names that `--json` prints."""
        return {
            "graph": path,
            **self._described(),
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "options": self.options.run(),
            "kept": self.loader.kept(),
            "epochs": self.history,
            "best_epoch": self.best["epoch"],
            "stopped_early": self.is_patience_over(),
            "test": self.test(),
        }


def _moved_bytes(batch: Any) -> int:
    """Bytes of a batch on an accelerator."""
    tensors = (value for value in batch.to_dict().values() if hasattr(value, "element_size"))
    return sum(t.numel() * t.element_size() for t in tensors if t.device.type != "cpu")
