"""One training run: epochs of batches, an evaluation after each, a checkpoint after that."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import _native, pyg
from ..arguments.calls import warn
from ..arguments.words import in_callers_words
from ..errors import BudgetError, FallbackWarning, InputError
from ..graph import Graph, open
from ..hetero import HeteroGraph
from ..loaders.link import LinkNeighborLoader
from ..loaders.making import notes_of
from ..loaders.node import NeighborLoader
from . import checkpoint, saved
from .activations import Step, made_up, measured_bytes
from .data import check_features, class_labels, class_weights, splits_of
from .evaluate import Evaluator
from .models import build_model, dropped, forward, prepare
from .options import TrainOptions
from .schedule import rate
from .scores import accuracy, score, score_name
from .shares import Part, Shares, share

Record = dict[str, Any]
Chosen: TypeAlias = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    epoch: int
    """Its number, from 0; while the test split is scored, the number of epochs."""
    stage: Literal["train", "evaluate"]
    done: int
    """Batches that were trained on or evaluated; or steps of layers (`layers.Inference`)."""
    total: int
    loss: float
    """The epoch's mean loss so far."""


Watch = Callable[[Progress], object]


class Trainer:
    """Node classification of the graph at `path`.

    After `train`, `history` has a record an epoch, and `report` everything. Raises `InputError`
    for what the graph does not have, and `BudgetError` where `options.memory` does not hold the
    largest batch that may come, of training or evaluation, naming a memory that does. What was
    decided for the caller (the batch size, smaller windows) is in `notes`. With `predicts`,
    `predictions` are wanted after the run, and have their room.
    """

    score_name: str

    def __init__(
        self,
        path: str,
        options: TrainOptions,
        *,
        checkpoint: Path | None = None,
        resume: bool = False,
        predicts: bool = False,
    ) -> None:
        torch = pyg.torch()
        free = _native.free_memory()
        self.options = options
        self.device = pyg.device(options.device)
        """Where the model is, and batches are when they are trained on."""
        self._predicts = predicts
        self.notes: list[str] = []
        # What is trained on, validated and tested: positions, or links.
        self._train: Chosen
        self._val: Chosen
        self._test: Chosen
        graph = self.graph = self._open(path)
        self.width = self._width(graph)
        self.outputs = self._prepare(graph)
        self._choose_batch_size()
        options = self.options
        torch.manual_seed(options.seed)
        self.model = self._build_model().to(self.device)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=options.lr, weight_decay=options.weight_decay
        )
        self._evaluator: Evaluator
        self.loader: NeighborLoader | LinkNeighborLoader
        with warnings.catch_warnings():
            # Of loaders that gave way to others, too; `_tell_what_shrank` has those that stay.
            warnings.simplefilter("ignore", FallbackWarning)
            self.shares = self._share(predicts)
        self._tell_what_shrank()
        self.memory = self._measured(free)
        self.history: list[Record] = []
        self.best: Record = {"epoch": -1, "score": -math.inf, "model": None}
        self._checkpoint = checkpoint
        self._watch: Watch | None = None
        self._loss_so_far = math.nan
        if resume and checkpoint is not None:
            self._restore(checkpoint)

    def _open(self, path: str) -> Graph:
        """The graph of what is predicted. It runs no passes: loaders open it for themselves."""
        return open(path, io=self.options.host_io, threads=1)

    def _width(self, graph: Graph) -> int:
        """Columns of the features that the model takes, the most where types have others."""
        return check_features(graph, self.options.features)

    def _build_model(self) -> Any:
        """The model, before its first step."""
        return build_model(self.options, self.width, self.outputs)

    def _prepare(self, graph: Graph) -> int:
        """Reads what is predicted; returns how many values the model gives."""
        options = self.options
        self._labels, self.classes = class_labels(graph, options.labels)
        self._train, self._val, self._test = splits_of(graph, options.splits, self._labels)
        weights = class_weights(options.class_weights, self._labels[self._train], self.classes)
        torch = pyg.torch()
        self._weights = None if weights is None else torch.from_numpy(weights).to(self.device)
        self.score_name = score_name(self.classes)
        return self.classes

    def _choose_batch_size(self) -> None:
        seeds = self._train.shape[-1]
        chosen = self.options.for_seeds(seeds)
        if chosen != self.options:
            steps = -(-seeds // chosen.seeds_a_batch)
            self._tell(
                f"batches of {chosen.seeds_a_batch} of the {seeds} seeds, {steps} steps an epoch; "
                "`--batch-size` takes another"
            )
        self.options = chosen

    def _share(self, predicts: bool) -> Shares:
        """Makes what trains and what evaluates, each in its part of the memory."""
        positions = [self._val, self._test]
        if predicts:
            positions.append(np.arange(self.graph.vertices))
        self._evaluator = self._make_evaluator()
        logits = 8 * self.classes * max(map(len, positions[:2]))
        held = self._held_bytes() + logits + (16 * self.graph.vertices if predicts else 0)
        ways = self._evaluator.ways(positions)
        return share(self.options.memory_bytes, held, Part(self._make_loader), ways)

    def _make_evaluator(self) -> Evaluator:
        """What evaluates the model, not made for any vertices yet."""
        loader = partial(self.__dict__.get, "loader")
        return Evaluator(self.graph, self.options, self.classes, loader)

    def _held_bytes(self) -> int:
        """Bytes of labels, ids and splits."""
        splits = sum(part.nbytes for part in (self._train, self._val, self._test))
        return self._labels.nbytes + 8 * self.graph.vertices + 2 * splits

    def _make_loader(self, memory: int | None) -> int:
        # One at a time.
        self.__dict__.pop("loader", None)
        self.loader = self._loader(self.graph, memory)
        return int(self.loader.kept().get("enough_bytes", 0))

    def _tell_what_shrank(self) -> None:
        """Notes what became of what was asked for, and warns of it."""
        kept, notes = self.loader.kept(), []
        if "why" in kept:
            notes.append(f"batches are made on the CPU, and moved: {kept['why']}")
        if self.shares.note is not None:
            notes.append(in_callers_words(self.shares.note))
        for note in [*notes, *notes_of(kept)]:
            self.notes.append(note)
            warn(note, FallbackWarning)

    def _tell(self, note: str) -> None:
        self.notes.append(in_callers_words(note))

    def _measured(self, free: int) -> Record:
        """Who has how much of the memory, in bytes, and what PyTorch takes beside it.

        Raises `BudgetError` where both come to more than was `free` before the run.
        """
        options, shares = self.options, self.shares
        memory = options.memory_bytes
        if memory is None:
            return {}

        row_bytes = 4 * max(self.width, options.hidden)

        def measured(step: Step, kept: Record) -> int:
            if options.device != "cpu":
                # An accelerator has memory of its own.
                return 0
            return measured_bytes(self.model, step, row_bytes, kept, self._made_up)

        pytorch = measured(self._try_step, self.loader.kept())
        evaluating = self._evaluation_kept()
        if evaluating is not None:
            pytorch = max(pytorch, measured(self._try_forward, evaluating))
        if memory + pytorch > free:
            raise self._too_much(memory, free, pytorch)
        return {
            "bytes": memory,
            "training_bytes": shares.training,
            "evaluation_bytes": shares.evaluation,
            "held_bytes": shares.held,
            "pytorch_bytes": pytorch,
        }

    def _too_much(self, memory: int, free: int, pytorch: int) -> BudgetError:
        """The error of memory that is not there."""
        mib = 1 << 20
        possible = (free - pytorch) // mib
        fits = possible * mib >= self.shares.enough
        smaller = "a smaller `--batch-size` or `--fanout`"
        return BudgetError.of(
            "train",
            expected=f"at most {free // mib} MiB, which are free",
            got=f"`--memory {memory // mib}MiB` beside {-(-pytorch // mib)} MiB of PyTorch's",
            hint=f"run with `--memory {possible}MiB`, or {smaller}" if fits else f"use {smaller}",
        )

    def _made_up(self, kept: Record, part: int) -> Any:
        """A batch of one in `part` of the nodes and edges of the largest of a loader."""
        return made_up(kept, self.options, self.width, part)

    def _evaluation_kept(self) -> Record | None:
        """What evaluation's loader tells of its largest batch; None without one."""
        return self._evaluator.kept()

    def _try_step(self, model: Any, batch: Any) -> None:
        """A step on a copy of the model."""
        loss = self._loss(model.train(), batch)[0]
        loss.backward()
        pyg.torch().optim.Adam(model.parameters(), lr=0.0).step()

    def _try_forward(self, model: Any, batch: Any) -> None:
        """An evaluation on a copy of the model."""
        with pyg.torch().no_grad():
            self._logits(model.eval(), batch)

    def _loader(self, graph: Graph, memory: int | None) -> NeighborLoader | LinkNeighborLoader:
        return self._neighbors(graph, graph.ids[self._train], memory)

    def _neighbors(
        self, graph: Graph | HeteroGraph, seeds: Any, memory: int | None, **given: Any
    ) -> NeighborLoader:
        """What makes the batches around `seeds` that the run trains on; `given` goes to it too."""
        options = self.options
        return NeighborLoader(
            graph,
            options.fanout,
            seeds,
            batch_size=options.seeds_a_batch,
            rank=0,
            world_size=1,
            shuffle=True,
            seed=options.seed,
            memory=memory,
            threads=options.threads,
            window=options.window,
            features=options.features,
            labels=options.labels,
            edge_values=None,
            device=options.device,
            io=options.io,
            **given,
        )

    def train(self, watch: Watch | None = None) -> None:
        """Runs the epochs that are left, or until patience ends.

        `watch` is told of each batch, and of evaluation, that of `test` too.
        """
        self._watch = watch
        while len(self.history) < self.options.epochs and not self.is_patience_over():
            record = self._epoch(len(self.history), watch)
            self._loss_so_far = record["loss"]
            record |= self._validate() if self._is_validated(record["epoch"]) else NOT_VALIDATED
            self._note(record)
            if self._checkpoint is not None:
                checkpoint.save(self._checkpoint, self._state())

    def is_patience_over(self) -> bool:
        """Whether the score had not risen for `patience` epochs when it was last looked at."""
        patience = self.options.patience
        looked_at = [record["epoch"] for record in self.history if record["validated"]]
        if patience is None or not looked_at:
            return False
        return bool(looked_at[-1] - self.best["epoch"] >= patience)

    def _is_validated(self, epoch: int) -> bool:
        done = epoch + 1
        return done % self.options.evaluate_every == 0 or done >= self.options.epochs

    def test(self) -> Record:
        """The scores of the best epoch's model on the test split."""
        self._take_best()
        return self._scores(self._test)

    def _take_best(self) -> None:
        if self.best["model"] is not None:
            self.model.load_state_dict(self.best["model"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the best epoch's model to `path`, for `tiergraph.train.load`."""
        self._take_best()
        shape = self._saved() | {
            "outputs": self.outputs,
            "score": None if math.isinf(self.best["score"]) else self.best["score"],
        }
        saved.save(Path(path), self.model.state_dict(), self.options, shape)

    def _saved(self) -> Record:
        """What a saved model tells of its graph."""
        info = self.graph.info()
        names = ("vertices", "edges", "directed", "source")
        return {"features": self.width, "graph": {name: info[name] for name in names}}

    def logits(self, positions: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """What the best epoch's model gives for vertices: float32 of shape (n, classes).

        `positions` are places in `graph.ids`; where evaluation goes on batches, those of one of the
        splits.
        """
        self._take_best()
        return self._evaluator.logits(self.model, positions, self._tell_evaluated)

    def predictions(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The class of every vertex by the best epoch's model, and the chance that it gives it.

        Both of shape (|V|,), in the order of `graph.ids`. The trainer was made with `predicts`.
        """
        if not self._predicts:
            raise InputError.of("predict", expected="a trainer that was made with `predicts=True`")
        self._take_best()
        everything = np.arange(self.graph.vertices)
        parts = self._evaluator.parts(self.model, everything, self._tell_evaluated)
        return saved.classified(parts, self.graph.vertices)

    def _epoch(self, number: int, watch: Watch | None) -> Record:
        self.model.train()
        self.loader.set_epoch(number)
        began = time.perf_counter()
        total = seeds = correct = bytes_device = 0.0
        seconds_train = 0.0
        batches = iter(self.loader)
        for done, batch in enumerate(batches, 1):
            stepped = time.perf_counter()
            self._set_rate(number + (done - 1) / len(self.loader))
            moved = batch.to(self.device)
            bytes_device += _moved_bytes(moved)
            loss, hits, count = self._step(moved)
            seconds_train += time.perf_counter() - stepped
            total += loss * count
            correct += hits
            seeds += count
            if watch is not None:
                watch(Progress(number, "train", done, len(self.loader), total / seeds))
        seconds = time.perf_counter() - began
        stats = self.loader.last_epoch
        rows = max(stats["nodes"], 1)
        return stats | {
            "epoch": number,
            "seconds": seconds,
            "seconds_train": seconds_train,
            "lr": self.optimizer.param_groups[0]["lr"],
            "loss": total / max(seeds, 1),
            "train_accuracy": correct / max(seeds, 1),
            "samples_per_second": seeds / seconds,
            "bytes_device": int(bytes_device),
            "row_hit_rate": 1 - stats["missed_rows"] / rows,
        }

    def step(self, batch: Any) -> float:
        """Trains on one batch of `loader`, outside of any epoch; returns its mean loss."""
        self.model.train()
        return self._step(batch.to(self.device))[0]

    def _set_rate(self, done: float) -> None:
        """The step size after so many epochs."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate(self.options, done)

    def _step(self, batch: Any) -> tuple[float, int, int]:
        """Trains on a batch: its mean loss, how many were right, and of how many."""
        self.optimizer.zero_grad()
        loss, hits, count = self._loss(self.model, batch)
        loss.backward()
        self.optimizer.step()
        return float(loss.detach()), hits, count

    def _loss(self, model: Any, batch: Any) -> tuple[Any, int, int]:
        """A batch's mean loss as a tensor, how many were right, and of how many."""
        seeds = self._seeds(batch)
        labels = seeds.y[: seeds.batch_size].reshape(-1).long()
        logits = self._logits(model, batch)
        loss = pyg.torch().nn.functional.cross_entropy(logits, labels, self._weights)
        hits = int((logits.argmax(dim=1) == labels).sum())
        return loss, hits, seeds.batch_size

    def _seeds(self, batch: Any) -> Any:
        """What has the labels of a batch's seeds, and their number."""
        return batch

    def _logits(self, model: Any, batch: Any) -> Any:
        """What the model gives for a batch's seeds: of shape (seeds, classes)."""
        x = dropped(prepare(batch.x, self.options), self.options, model.training)
        return forward(model, batch, x, self.options)

    def _tell_evaluated(self, done: int, total: int) -> None:
        """Tells who watches that an evaluation goes on."""
        if self._watch is not None:
            epoch = len(self.history)
            self._watch(Progress(epoch, "evaluate", done, total, self._loss_so_far))

    def _validate(self) -> Record:
        began = time.perf_counter()
        scores = self._scores(self._val)
        return scores | {"validated": True, "seconds_evaluate": time.perf_counter() - began}

    def _scores(self, positions: Any) -> Record:
        """Accuracy, and what the model is chosen by; None of no vertices."""
        name = self.score_name
        if len(positions) == 0:
            return {"accuracy": None, name: None}
        logits = self._evaluator.logits(self.model, positions, self._tell_evaluated)
        labels = self._labels[positions]
        return {"accuracy": accuracy(logits, labels), name: score(logits, labels)}

    def _note(self, record: Record) -> None:
        """Adds an epoch to the history; without a validation split, the last is the best."""
        self.history.append(record)
        reached = record.setdefault(self.score_name, None)
        if not record["validated"]:
            return
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
            "notes": self.notes,
            "memory": self.memory,
            "kept": self.loader.kept(),
            "epochs": self.history,
            "best_epoch": self.best["epoch"],
            "stopped_early": self.is_patience_over(),
            "test": self.test(),
        }


NOT_VALIDATED: Record = {"accuracy": None, "validated": False, "seconds_evaluate": 0.0}


def _moved_bytes(batch: Any) -> int:
    """Bytes of a batch on an accelerator."""
    values = (value for store in batch.stores for value in store.values())
    tensors = (value for value in values if hasattr(value, "element_size"))
    return sum(t.numel() * t.element_size() for t in tensors if t.device.type != "cpu")
