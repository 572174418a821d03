"""What models that are trained on sampled batches score, beside what must be reached.

Five small graphs with published results, ten seeds each, trained by the loop of `tiergraph train`.
The score is the test split's, of the epoch with the best validation score.

Needs PyTorch and PyG: `pip install 'tiergraph[train]'`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import tiergraph as tg
from common import machine, reporting
from common.reporting import Record, say
from tiergraph.train import Trainer, TrainOptions

TRAIN_A_CLASS, VAL_A_CLASS = 20, 30
"""Labels of random splits (Shchur et al. 2018); the rest is for the test."""

Masks = dict[str, NDArray[np.bool_]]


@dataclass(frozen=True)
class Case:
    """A graph, how it is trained, and what must be reached."""

    name: str
    options: TrainOptions
    at_least: float


CITATIONS = TrainOptions(
    model="gcn",
    hidden=64,
    fanout=(-1, -1),
    input_dropout=0.5,
    normalize=True,
    batch_size=140,
    epochs=200,
    patience=50,
    lr=0.01,
    weight_decay=5e-4,
)
PURCHASES = TrainOptions(
    model="sage",
    hidden=64,
    fanout=(10, 10),
    norm="layer",
    input_dropout=0.2,
    normalize=True,
    batch_size=80,
    epochs=120,
    patience=30,
    lr=0.01,
    weight_decay=5e-4,
)
MINES = TrainOptions(
    model="sage",
    hidden=64,
    fanout=(-1,) * 5,
    norm="layer",
    dropout=0.2,
    batch_size=5000,
    epochs=200,
    patience=40,
    lr=0.005,
)
CASES = [
    Case("cora", CITATIONS, 80.5),
    Case("citeseer", CITATIONS, 69.0),
    Case("amazon-photo", PURCHASES, 89.5),
    Case("coauthor-cs", replace(PURCHASES, fanout=(10, 5)), 90.0),
    Case("minesweeper", MINES, 91.0),
]


def main() -> None:
    """Builds each graph, trains on it, prints and saves the scores."""
    options = _options()
    torch.set_num_threads(options.threads)
    records: list[Record] = []
    runs: list[tuple[Case, Path, int]] = []
    with reporting.data_directory("accuracy", options.keep) as directory:
        for case in CASES:
            if options.only and case.name not in options.only:
                continue
            source = options.data / f"{case.name}.npz"
            if not source.exists():
                say(f"{case.name} skipped: no `{source.name}` below --data")
                records.append({"case": case.name, "skipped": f"no {source.name} below --data"})
                continue
            path = directory / f"{case.name}.tg"
            _build(source, path, options.repetitions)
            runs.extend((case, path, seed) for seed in range(options.repetitions))
        records += _train_all(runs, options)
    _print(records)
    reporting.save(options, "accuracy", "not timed", records)


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=0, repetitions=10)
    parser.add_argument("--only", action="append", help="one of the graphs; repeat for more")
    parser.add_argument("--jobs", type=int, default=1, help="seeds that are trained at once")
    parser.add_argument(
        "--data",
        type=Path,
        default=machine.ROOT.parent / "shared/data/gnn",
        help="directory with cora.npz and the others",
    )
    return parser.parse_args()


def _build(source: Path, path: Path, seeds: int) -> None:
    """The graph with its features and labels, and splits `train-0`, `val-0`, `test-0` and so on."""
    arrays = np.load(source)
    splits = {}
    for seed in range(seeds):
        masks = _masks(arrays, seed)
        splits |= {f"{name}-{seed}": mask for name, mask in masks.items()}
    tg.build(source, path, features=source, labels=arrays["y"], splits=splits)


def _masks(arrays: Any, seed: int) -> Masks:
    """The published split, the `seed`-th of several, or a random one."""
    names = ("train", "val", "test")
    if "train_mask" in arrays:
        return {name: arrays[f"{name}_mask"] for name in names}
    if "train_masks" in arrays:
        return {name: arrays[f"{name}_masks"][seed] for name in names}
    labels = arrays["y"]
    masks = {name: np.zeros(len(labels), dtype=bool) for name in names}
    random = np.random.default_rng(seed)
    for label in np.unique(labels[labels >= 0]):
        members = random.permutation(np.flatnonzero(labels == label))
        train, rest = np.split(members, [TRAIN_A_CLASS])
        val, test = np.split(rest, [VAL_A_CLASS])
        for name, chosen in zip(names, (train, val, test), strict=True):
            masks[name][chosen] = True
    return masks


def _train_all(runs: list[tuple[Case, Path, int]], options: argparse.Namespace) -> list[Record]:
    """Trains with each seed, `jobs` at a time in processes of their own; slow graphs first."""
    if options.jobs == 1:
        return [_train(*run) for run in runs]
    slow = ["minesweeper", "coauthor-cs"]
    runs = sorted(runs, key=lambda run: run[0].name not in slow)
    with ProcessPoolExecutor(
        options.jobs, get_context("spawn"), torch.set_num_threads, (options.threads,)
    ) as pool:
        return list(pool.map(_train, *zip(*runs, strict=True)))


def _train(case: Case, path: Path, seed: int) -> Record:
    began = time.perf_counter()
    splits = (f"train-{seed}", f"val-{seed}", f"test-{seed}")
    threads = torch.get_num_threads()
    options = replace(case.options, seed=seed, splits=splits, threads=threads)
    trainer = Trainer(str(path), options)
    trainer.train()
    report = trainer.report(case.name)
    test = report["test"]
    score = 100 * test.get("roc_auc", test["accuracy"])
    seconds = time.perf_counter() - began
    say(
        f"{case.name} seed {seed}: {score:.2f} after {len(trainer.history)} epochs, {seconds:.0f} s"
    )
    return {
        "case": case.name,
        "seed": seed,
        "score": score,
        "metric": "roc_auc" if "roc_auc" in test else "accuracy",
        "at_least": case.at_least,
        "best_epoch": report["best_epoch"],
        "epochs": len(trainer.history),
        "evaluation": report["evaluation"],
        "options": report["options"],
        "seconds": seconds,
    }


def _print(records: list[Record]) -> None:
    rows = []
    for case in CASES:
        scores = [r["score"] for r in records if r["case"] == case.name and "score" in r]
        if scores:
            deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
            mean = statistics.mean(scores)
            reached = "yes" if mean >= case.at_least else "no"
            row = (case.name, case.options.model, len(scores), mean, deviation)
            rows.append((*row, case.at_least, reached))
    header = ("graph", "model", "seeds", "mean", "deviation", "at least", "reached")
    reporting.table("test accuracy, or ROC AUC of two classes, in percent", header, rows)


if __name__ == "__main__":
    main()
