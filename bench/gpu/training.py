"""An epoch of GNN training on a GPU by stage: preparing, training, and both together.

`python bench/gpu/training.py [--scale 22] [--features 128] [--batches 24] [--multiprocessors N …]
[--out FILE]`

The paper's settings (Hyperion, Table 3): GraphSAGE, GCN and GAT of two layers, fanout 25 and 10,
batches of 8,000, hidden 256 (GAT: 8 heads of 64), on an RMAT graph with random features. Rows lie
in GPU memory, in pinned host memory behind a GPU cache of a part of them, or in files behind the
same cache (`storage`; `--folder` says on what: /dev/shm is memory, a modelled drive without a
limit). Together: batches are prepared while those before train; apart: the host waits in between.
With `--multiprocessors`, together also with batches prepared on all of the GPU's and on at most so
many, in turns: medians of five epochs each.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _arguments
import numpy as np
import torch
from _batches import middle, per_batch
from torch_geometric.nn.models import GAT, GCN, GraphSAGE

import tiergraph as tg

BATCH, FANOUT, CLASSES = 8000, [25, 10], 64
TURNS = 5
MODELS: dict[str, Callable[[int], torch.nn.Module]] = {
    "GraphSAGE": lambda dim: GraphSAGE(dim, 256, 2, CLASSES),
    "GCN": lambda dim: GCN(dim, 256, 2, CLASSES),
    "GAT": lambda dim: GAT(dim, 512, 2, CLASSES, heads=8),
}


def main() -> None:
    """Prints a row for each model and place of the rows."""
    args = parser().parse_args()
    path = args.folder / f"train-{args.scale}-{args.features}.tg"
    if not path.exists():
        tg.generate("rmat", path, scale=args.scale, features=args.features, layouts="training")
    rows = []
    # Half of an R-MAT graph's vertices are isolated: nobody trains on those.
    seeds = np.flatnonzero(tg.open(path).degrees("in") > 0)
    for place, (device_memory, memory) in places(path).items():
        if args.places and place not in args.places:
            continue
        loaders = [
            tg.NeighborLoader(
                path,
                FANOUT,
                batch_size=BATCH,
                input_nodes=seeds,
                shuffle=True,
                device="cuda",
                device_memory=device_memory,
                memory=memory,
                presample=20,
                multiprocessors=most,
            )
            for most in (None, *args.multiprocessors)
        ]
        for loader in loaders:
            print(place, {k: v for k, v in loader.kept().items() if "bytes" not in k})
        for name in args.models:
            model = MODELS[name](args.features).cuda()
            row = measure(loaders[0], model, args.batches)
            on = in_turns(loaders, model, args.batches) if args.multiprocessors else {}
            rows.append({"rows": place, "model": name, **row, "together_on": on})
            print(
                f"{place:12} {name:10} {row['nodes'] / 1e3:.0f} K nodes, "
                f"{row['edges'] / 1e3:.0f} K edges, ms a batch: "
                f"prepare {row['prepare'] * 1e3:7.2f}, "
                f"train {row['train'] * 1e3:7.2f}, apart {row['apart'] * 1e3:7.2f}, "
                f"together {row['together'] * 1e3:7.2f}: {row['apart'] / row['together']:.2f} x; "
                f"{row['missed_rows'] / 1e3:.1f} K rows and {row['bytes_ssd'] / 1e6:.0f} MB read"
            )
            print(
                f"{'':12} {row['submissions']:.0f} kernels, copies and fills a batch, given in "
                f"{row['submit'] * 1e6:.0f} us; host: sample {row['host_sample'] * 1e6:.0f} us, "
                f"fill {row['host_fill'] * 1e6:.0f} us"
            )
            for count, seconds in on.items():
                print(f"{'':12} together, prepared on {count:3} SMs: {seconds * 1e3:7.2f}")
    if args.out:
        args.out.write_text("".join(json.dumps(r) + "\n" for r in rows))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parsed = _arguments.arguments(__doc__, scale=22)
    parsed.add_argument("--features", type=int, default=128)
    parsed.add_argument("--batches", type=int, default=24)
    parsed.add_argument("--places", nargs="+", help="of rows: device, a tenth, a third, …")
    parsed.add_argument(
        "--multiprocessors", nargs="+", type=int, default=[], help="prepare on so many, too"
    )
    parsed.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    return parsed


def places(path: Path) -> dict[str, tuple[int | None, int | None]]:
    """Device and host memory for each placement of the rows."""
    info = json.loads((path / "manifest.json").read_text())
    vertices, features = info["vertices"], info["features"]["x"]
    edges = BATCH * FANOUT[0] * (1 + FANOUT[1])
    base = 16 * vertices + 40 * edges + 4 * info["arcs"]
    rows = vertices * features["dim"] * 4
    tenth, third = 2 * base + rows // 10, 2 * base + rows // 3
    # What opening the graph takes, and reading rows.
    least = 4 * info["arcs"] + (1 << 30)
    return {
        "device": (None, None),
        "a tenth": (tenth, None),
        "a tenth, storage": (tenth, least),
        "a third": (third, None),
        "a third, storage": (third, least),
        "host": (2 * base, None),
    }


def trainer(model: torch.nn.Module) -> Callable[[Any], None]:
    """Trains the model on a batch."""
    optimizer = torch.optim.Adam(model.parameters())

    def train(batch: Any) -> None:
        optimizer.zero_grad()
        out = model(
            batch.x,
            batch.edge_index,
            num_sampled_nodes_per_hop=batch.num_sampled_nodes,
            num_sampled_edges_per_hop=batch.num_sampled_edges,
        )[: batch.batch_size]
        torch.nn.functional.cross_entropy(out, batch.input_id % CLASSES).backward()
        optimizer.step()

    return train


def measure(loader: tg.NeighborLoader, model: torch.nn.Module, batches: int) -> dict[str, float]:
    """Seconds a batch: preparing alone, training alone, one behind the other, and overlapped."""
    train = trainer(model)

    def waited(batch: Any) -> None:
        torch.cuda.synchronize()
        train(batch)
        torch.cuda.synchronize()

    held = list(take(loader, 4))
    for batch in held:
        train(batch)
    nodes = sum(batch.num_nodes for batch in held) / len(held)
    edges = sum(batch.edge_index.shape[1] for batch in held) / len(held)
    together = middle(loader, train, batches)
    prepare = middle(loader, None, batches)
    host = prepare.counts
    return {
        "nodes": nodes,
        "edges": edges,
        "prepare": prepare.seconds,
        # Of preparing alone: what a CUDA graph could save is a part of the second.
        "submissions": host["submissions"],
        "submit": host["seconds_submit"],
        "host_sample": host["seconds_sample"],
        "host_fill": host["seconds_fill"],
        "train": per_batch((held[i % 4] for i in range(batches)), train),
        "apart": middle(loader, waited, batches).seconds,
        "together": together.seconds,
        "missed_rows": together.counts["missed_rows"],
        "bytes_ssd": together.counts["bytes_ssd"],
    }


def in_turns(
    loaders: list[tg.NeighborLoader], model: torch.nn.Module, batches: int
) -> dict[int, float]:
    """Seconds a batch, overlapped, by how many multiprocessors prepare; medians."""
    train = trainer(model)
    seconds: list[list[float]] = [[] for _ in loaders]
    for _ in range(TURNS):
        for loader, measured in zip(loaders, seconds, strict=True):
            measured.append(middle(loader, train, batches).seconds)
    on = [loader.kept()["multiprocessors"] for loader in loaders]
    return {count: statistics.median(of) for count, of in zip(on, seconds, strict=True)}


def take(loader: tg.NeighborLoader, batches: int) -> Iterator[Any]:
    """The first batches of an epoch, which ends then: it is `loader.last_epoch`."""
    with contextlib.closing(iter(loader)) as epoch:
        yield from itertools.islice(epoch, batches)


if __name__ == "__main__":
    main()
