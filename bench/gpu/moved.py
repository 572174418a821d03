"""Batches that kernels do not sample yet: made on the CPU and moved, beside those of the GPU.

`python bench/gpu/moved.py [--scale 20] [--features 128] [--batches 24] [--out FILE]`

An R-MAT graph with weights and times of its edges, batches of 1,024 seeds at [15, 10], GraphSAGE of
two layers with 256 hidden values. Each way to sample: milliseconds a batch to prepare it alone, to
train on it alone, and of both overlapped, where rows of features fit GPU memory. Medians of three
epochs; one JSON object a row goes to FILE.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import statistics
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _arguments
import numpy as np
import torch
from _batches import per_batch
from torch_geometric.nn.models import GraphSAGE

import tiergraph as tg

BATCH, FANOUT, CLASSES, TURNS = 1024, [15, 10], 64, 3
WAYS: dict[str, dict[str, Any]] = {
    "uniform, by the GPU": {"device": "cuda"},
    "uniform, moved": {"device": "cpu"},
    "by weight": {"device": "cuda", "weight_attr": "weight"},
    "by time": {"device": "cuda", "time_attr": "time"},
    "disjoint": {"device": "cuda", "disjoint": True},
}


def main() -> None:
    """Prints a row for each way to sample."""
    parser = _arguments.arguments(__doc__, scale=20)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--batches", type=int, default=24)
    args = parser.parse_args()
    warnings.simplefilter("ignore", tg.FallbackWarning)
    path = build(args.folder, args.scale, args.features)
    graph = tg.open(path)
    seeds = np.flatnonzero(graph.degrees("in") > 0)[: args.batches * BATCH]
    model = GraphSAGE(args.features, 256, 2, CLASSES).cuda()
    rows = []
    for way, options in WAYS.items():
        given = dict(options)
        if "time_attr" in given:
            given["input_time"] = np.full(len(seeds), 1 << 29)
        loader = tg.NeighborLoader(
            path, FANOUT, batch_size=BATCH, input_nodes=seeds, shuffle=True, **given
        )
        row = {"way": way, "cores": os.cpu_count(), **measure(loader, model)}
        rows.append(row)
        print(
            f"{way:20} {row['edges'] / 1e3:5.0f} K edges, ms a batch: "
            f"prepare {row['prepare_seconds'] * 1e3:6.2f}, "
            f"train {row['train_seconds'] * 1e3:6.2f}, "
            f"together {row['together_seconds'] * 1e3:6.2f}",
            flush=True,
        )
    if args.out:
        args.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


def build(folder: Path, scale: int, features: int) -> Path:
    """The graph, generated if it is not there; each edge has a weight and a time."""
    path = folder / f"moved-{scale}-{features}.tg"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    count = 16 << scale
    ends = random.integers(0, 1 << scale, (count, 2), dtype=np.uint32)
    # Half of the ends are among few vertices.
    ends[::2] = ends[::2] >> 4
    # Every vertex has an edge.
    ends[: 1 << scale, 0] = np.arange(1 << scale)
    edges = [(ends[:, 0], ends[:, 1])]
    tg.build(edges, path, layouts="training", order="none")
    tg.add_features(path, features=random.random((1 << scale, features), dtype=np.float32))
    weights = random.random(count, dtype=np.float32)
    times = random.integers(0, 1 << 30, count)
    tg.add_edge_values(path, edges, values={"weight": weights, "time": times})
    return path


def measure(loader: tg.NeighborLoader, model: torch.nn.Module) -> dict[str, float]:
    """Seconds a batch: preparing alone, training alone, and overlapped; medians."""
    train = trainer(model)
    held = list(itertools.islice(epoch(loader), 4))
    for batch in held:
        train(batch)
    repeated = itertools.chain.from_iterable
    return {
        "edges": statistics.mean(batch.edge_index.shape[1] for batch in held),
        "prepare_seconds": median(lambda: per_batch(epoch(loader), lambda _: None)),
        "train_seconds": median(lambda: per_batch(repeated([held] * 6), train)),
        "together_seconds": median(lambda: per_batch(epoch(loader), train)),
    }


def epoch(loader: tg.NeighborLoader) -> Iterator[Any]:
    """The batches of an epoch, on the GPU."""
    with contextlib.closing(iter(loader)) as batches:
        for batch in batches:
            yield batch.to("cuda", non_blocking=True)


def trainer(model: torch.nn.Module) -> Callable[[Any], None]:
    """Trains the model on a batch."""
    optimizer = torch.optim.Adam(model.parameters())

    def train(batch: Any) -> None:
        optimizer.zero_grad()
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        torch.nn.functional.cross_entropy(out, batch.input_id % CLASSES).backward()
        optimizer.step()

    return train


def median(measured: Callable[[], float]) -> float:
    """The median of a few runs."""
    return statistics.median(measured() for _ in range(TURNS))


if __name__ == "__main__":
    main()
