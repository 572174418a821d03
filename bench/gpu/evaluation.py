"""What evaluation after each epoch costs beside the epoch, on a GPU and on the CPU.

`python bench/gpu/evaluation.py [--scale 21] [--features 128] [--models sage gcn] [--out FILE]`

Trains on an R-MAT graph (2^21 vertices, 128 random features) with one vertex in a hundred as seeds,
which makes epochs short, and evaluates after each. Prints seconds an epoch and an evaluation, their
ratio (medians after the first epoch), the first evaluation's, and those of the same model on the
CPU, with the largest difference between the two's logits of the validation split.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

import _arguments
import numpy as np

import tiergraph as tg
from tiergraph.train import Trainer, TrainOptions, load

CLASSES = 16
SHARE = 100
"""One vertex in so many is trained on, and as many validate and test."""
SPLITS = ("few-train", "few-val", "few-test")


def main() -> None:
    """Prints a row a model."""
    parser = _arguments.arguments(__doc__, scale=21)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--models", nargs="+", default=["sage", "gcn"], choices=["sage", "gcn"])
    args = parser.parse_args()
    path = build(args.folder, args.scale, args.features)
    rows = []
    for model in args.models:
        row = measure(path, model, args.epochs)
        rows.append(row)
        print(
            f"{model:5} epoch {row['epoch']:7.3f} s, evaluation {row['evaluation']:7.3f} s "
            f"({row['evaluation'] / row['epoch']:.2f} epochs), the first {row['first']:7.3f} s; "
            f"on the CPU {row['cpu']:7.3f} s; logits differ by {row['difference']:.1e} of "
            f"{row['largest']:.1e}; {row['how']}",
            flush=True,
        )
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


def build(folder: Path, scale: int, features: int) -> Path:
    """The graph with its splits, generated if it is not there."""
    path = folder / f"evaluation-{scale}-{features}.tg"
    if not path.exists():
        tg.generate("rmat", path, scale=scale, features=features, classes=CLASSES)
        vertices = tg.open(path).vertices
        chosen = np.random.default_rng(0).permutation(vertices)[: 3 * (vertices // SHARE)]
        parts = zip(SPLITS, np.split(chosen, 3), strict=True)
        tg.add_features(path, splits={name: np.sort(part) for name, part in parts})
    return path


def measure(path: Path, model: str, epochs: int) -> dict[str, Any]:
    """Seconds of a run's epochs and evaluations, and of an evaluation on the CPU."""
    options = TrainOptions(
        model=model, epochs=epochs, batch_size=1024, splits=SPLITS, device="cuda"
    )
    trainer = Trainer(str(path), options)
    trainer.train()
    history = trainer.history
    file = path.with_suffix(f".{model}.pt")
    trainer.save(file)
    positions = np.asarray(trainer.graph.splits[SPLITS[1]])
    ids = np.asarray(trainer.graph.ids)[positions]
    on_gpu = trainer.logits(positions)
    saved = load(file)
    begin = time.perf_counter()
    on_cpu = saved.logits(str(path), ids)
    seconds = time.perf_counter() - begin
    report = trainer.report(str(path))
    return {
        "model": model,
        "epoch": statistics.median(record["seconds"] for record in history[1:]),
        "evaluation": statistics.median(record["seconds_evaluate"] for record in history[1:]),
        "first": history[0]["seconds_evaluate"],
        "cpu": seconds,
        "difference": float(np.abs(on_gpu - on_cpu).max()),
        "largest": float(np.abs(on_cpu).max()),
        "accuracy": [record["accuracy"] for record in history],
        "how": report["evaluation"],
        "notes": report["notes"],
        "seconds": [(record["seconds"], record["seconds_evaluate"]) for record in history],
    }


if __name__ == "__main__":
    main()
