"""Epochs of a loader on a GPU whose feature rows lie on modelled drives, by who starts the reads.

`python bench/gpu/drives/epochs.py [--scale 21] [--row-bytes 512 …] [--drives 1 4 12] [--out FILE]`

The paper's settings (Hyperion, section IV-A): fanout 25 and 10, batches of 8,000, GraphSAGE of two
layers and 256 values, on an RMAT graph with random features, a twentieth of whose rows lie in GPU
memory, a fifth in host memory, and the others on drives. `--folder` should be in memory, so that
modelled drives are limited by their model alone. Who reads:

- `host`: threads of the host by queue pairs, whole pages.
- `gpu`: the GPU's kernels by queue pairs, the blocks of a row.
- `auto`: one of those two, by a trial when the loader is made.
- `coupled`: warps of the GPU that each wait for their own row, on all multiprocessors: the
  baseline.
- `coupled_cache`: the same, which look rows up before in a page cache (BaM). It has the GPU memory
  of placed rows, and host memory the rows that are wanted most (GIDS).
- `host_memory`: nobody: rows and lists that GPU memory of the same size leaves lie in host memory, as
  systems that train in memory have them (Legion, which the paper compares with).
- `memory`: nobody: all rows lie in GPU memory, which is what more drives can come near to.

Figures are medians of `--turns` epochs of each way, in turns. `prepare` is a batch's time where
nobody trains, `train` where the batch is there already, `together` where both go on.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tiergraph as tg

sys.path.append(str(Path(__file__).parent.parent))
import _arguments
from _batches import Middle, middle, per_batch

import training

KIND = "p5510"
IOPS = 750e3
"""Of one drive of that kind, at any size of a row."""
LEAST = 160 << 20
"""What an opened graph and its readers take."""
IN_MEMORY = ("host_memory", "memory")
"""Ways whose rows are on no drive: what the others are compared with."""
WAYS = ("host", "gpu", "auto", "coupled", "coupled_cache", *IN_MEMORY)


def main() -> None:
    """Prints a row for each size of a row, number of drives and way to read."""
    args = parser().parse_args()
    rows: list[dict[str, Any]] = []
    for row_bytes in args.row_bytes:
        path = graph(args, row_bytes)
        for drives in args.drives:
            found = measured(path, row_bytes, drives, args.ways, args)
            rows += found
            beside = {row["way"]: row["together"] for row in found if row["way"] in IN_MEMORY}
            for row in found:
                shares = (f"; {beside[way] / row['together']:.1%} of {way}" for way in beside)
                print(line(row) + "".join(shares), flush=True)
            if args.out:
                args.out.write_text("".join(json.dumps(r) + "\n" for r in rows))


def graph(args: argparse.Namespace, row_bytes: int) -> Path:
    """The graph with rows of so many bytes, generated if it is not there."""
    path: Path = args.folder / f"epochs-{args.scale}-{row_bytes}.tg"
    if not path.exists():
        features = row_bytes // 4
        tg.generate("rmat", path, scale=args.scale, features=features, layouts="training")
    return path


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parsed = _arguments.arguments(__doc__, scale=21)
    parsed.add_argument("--row-bytes", nargs="+", type=int, default=[512, 1024, 2048, 4096])
    parsed.add_argument("--drives", nargs="+", type=int, default=[1, 4, 12])
    parsed.add_argument("--cached", type=float, default=0.05, help="share of rows in GPU memory")
    parsed.add_argument("--host", type=float, default=0.2, help="share of rows in host memory")
    parsed.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parsed.add_argument("--prefetch", type=int, help="batches that are begun ahead")
    parsed.add_argument("--multiprocessors", type=int, help="the most that prepare batches")
    parsed.add_argument("--batches", type=int, default=12)
    parsed.add_argument("--turns", type=int, default=3)
    parsed.add_argument("--model", default="GraphSAGE", choices=list(training.MODELS))
    return parsed


def measured(
    path: Path, row_bytes: int, drives: int, ways: Sequence[str], args: argparse.Namespace
) -> list[dict[str, Any]]:
    """Seconds a batch, and what was read for it, by each way to read: in turns."""
    loaders, opened = {}, {}
    for way in ways:
        begun = time.perf_counter()
        loaders[way] = opened_loader(path, drives, way, args)
        opened[way] = time.perf_counter() - begun
    train = training.trainer(training.MODELS[args.model](row_bytes // 4).cuda())
    turns: dict[str, list[dict[str, Middle]]] = {way: [] for way in ways}
    # The first compiles kernels, and fills caches of allocations.
    for _ in range(args.turns + 1):
        for way, loader in loaders.items():
            prepare = middle(loader, None, args.batches)
            together = middle(loader, train, args.batches)
            turns[way].append({"prepare": prepare, "together": together})
    rows = []
    for way, loader in loaders.items():
        measured = turns[way][1:]
        row = {k: statistics.median(turn[k].seconds for turn in measured) for k in measured[0]}
        last = measured[-1]["prepare"].counts
        row |= {k: last[k] for k in ("nodes", "missed_rows", "list_pages", "bytes_ssd")}
        held = list(training.take(loader, 4))
        row["train"] = per_batch((held[i % 4] for i in range(args.batches)), train)
        kept = loader.kept()
        told = (
            "device_rows",
            "cached_rows",
            "host_rows",
            "storage_rows",
            "storage_reads",
            "storage_rates",
        )
        told += ("device_list_bytes", "host_list_bytes", "storage_list_bytes", "multiprocessors")
        row |= {"row_bytes": row_bytes, "drives": drives, "way": way, "model": args.model}
        row |= {"opened": opened[way]} | {k: kept[k] for k in told if k in kept}
        rows.append(row)
        # Its drives are threads, which would take the cores of others.
        loader.close()
        del held
        torch.cuda.empty_cache()
    return rows


def opened_loader(path: Path, drives: int, way: str, args: argparse.Namespace) -> tg.NeighborLoader:
    """A loader that reads rows by one way."""
    seeds = np.flatnonzero(tg.open(path).degrees("in") > 0)
    device_memory, memory = little_memory(path, args.cached, args.host)
    _, all_memory = little_memory(path, args.cached, 1.0)
    disks = f"modelled:{KIND}*{drives}"
    place: dict[str, dict[str, Any]] = {
        "host": {"io": disks, "device_memory": device_memory, "memory": memory},
        "gpu": {"io": f"gpu:{disks}", "device_memory": device_memory, "memory": memory},
        "auto": {"io": f"gpu:auto:{disks}", "device_memory": device_memory, "memory": memory},
        "coupled": {"io": f"gpu:coupled:{disks}", "device_memory": device_memory, "memory": memory},
        "coupled_cache": {
            "io": f"gpu:coupled-cache:{disks}",
            "device_memory": device_memory,
            "memory": memory,
        },
        "host_memory": {"device_memory": device_memory, "memory": all_memory},
        "memory": {},
    }
    return tg.NeighborLoader(
        path,
        training.FANOUT,
        batch_size=training.BATCH,
        input_nodes=seeds,
        shuffle=True,
        device="cuda",
        presample=20,
        prefetch=args.prefetch,
        multiprocessors=args.multiprocessors,
        **place[way],
    )


def little_memory(path: Path, cached: float, host: float) -> tuple[int, int]:
    """Device memory for the graph, a sampler and a share of the rows; host memory for reading."""
    manifest = json.loads((path / "manifest.json").read_text())
    vertices, arcs = manifest["vertices"], manifest["arcs"]
    edges = training.BATCH * training.FANOUT[0] * (1 + training.FANOUT[1])
    rows = vertices * manifest["features"]["x"]["dim"] * 4
    device_memory = 16 * vertices + 60 * edges + 8 * arcs + int(cached * rows)
    # Two thirds and more of what is left are rows; the others are on their way.
    return device_memory, 4 * arcs + 8 * vertices + int(1.3 * host * rows) + LEAST


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    text = (
        f"{row['row_bytes']:5} B x {row['drives']:2} {row['way']:11} ms a batch: prepare "
        f"{row['prepare'] * 1e3:7.2f}, train {row['train'] * 1e3:6.2f}, together "
        f"{row['together'] * 1e3:7.2f}; {row['nodes'] / 1e3:.0f} K nodes, "
        f"{row['missed_rows'] / 1e3:.0f} K missed (rows: {row['device_rows'] / 1e3:.0f} K on the "
        f"device, {row['host_rows'] / 1e3:.0f} K in host memory)"
    )
    if row["missed_rows"]:
        rate = row["missed_rows"] / row["prepare"]
        share = rate / (IOPS * row["drives"])
        text += f", {rate / 1e6:.2f} M/s = {share:.0%} of the drives' reads"
    return text


if __name__ == "__main__":
    main()
