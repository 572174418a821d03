"""The demo's second half: GraphSAGE on a generated graph that is larger than the memory it has.

That is a quarter of what its features take, or `LEAST_MEMORY` where that is more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ... import graph as tg
from ... import pictures, write
from ...attached.features import add_features
from ...errors import InputError
from ...pyg import geometric
from ...train import Trainer, TrainOptions, curve
from ...units import readable
from ..output import print_fields
from ..progress import Bars
from ..train import Steps, show

COLUMNS = 256
CLASSES = 8
FEATURE_BYTES = 4
SPLITS = {"demo-train": 4096, "demo-val": 512, "demo-test": 512}
LEAST_MEMORY = 512 << 20
"""What batches and buffers need; evaluation has a quarter of it, for buffers of its own."""
THREADS = 2
"""Not one a core: each has buffers and tables, and training is what takes the time."""


def train(scale: int, directory: Path) -> dict[str, Any] | None:
    """Trains, draws the curve, and returns what was measured; says why without PyTorch."""
    try:
        geometric("nn")
        pictures.check()
    except InputError as error:
        print(f"\nTraining is skipped: {error}\n\n`make demo TRAIN=1` installs it (gigabytes).")
        return None
    path = directory.with_name(f"{directory.stem}-training.tg")
    make(scale, path)
    options = options_of(scale)
    print(f"\nTraining GraphSAGE with memory {readable('bytes', options.memory)}.\n")
    trainer = Trainer(str(path), options)
    with Steps(options.epochs, [options.seed]) as steps:
        trainer.train(steps)
    measured = trainer.report(str(path))
    show(measured)
    picture = directory.with_suffix(".png")
    curve.draw(trainer.history, picture)
    print(f"\nThe curve is in {picture}.")
    return measured


def options_of(scale: int) -> TrainOptions:
    """The run on 2^scale vertices, and the memory that it gets."""
    quarter = (COLUMNS * FEATURE_BYTES << scale) // 4
    return TrainOptions(
        model="sage",
        hidden=32,
        fanout=(10, 5),
        batch_size=64,
        epochs=3,
        lr=0.01,
        memory=max(quarter, LEAST_MEMORY),
        threads=THREADS,
        window=1,
        splits=("demo-train", "demo-val", "demo-test"),
    )


def make(scale: int, path: Path) -> None:
    """Communities, with features that tell them apart, and a split small enough for a demo."""
    print(f"\nGenerating {path}: 2^{scale} vertices in communities, {COLUMNS} features each.\n")
    with Bars() as bars:
        stats: dict[str, Any] = write.generate(
            "sbm",
            path,
            vertices=1 << scale,
            communities=CLASSES,
            mean_degree=8,
            inside=0.9,
            undirected=True,
            features=COLUMNS,
            overwrite=True,
            progress=bars,
        )
    print_fields(stats)
    vertices = tg.open(path).vertices
    chosen = np.random.default_rng(0).permutation(vertices)
    ends = np.cumsum([min(size, vertices // 4) for size in SPLITS.values()])
    parts = np.split(chosen, ends)
    splits = {name: np.sort(part) for name, part in zip(SPLITS, parts, strict=False)}
    add_features(path, splits=splits)
