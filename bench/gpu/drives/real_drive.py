"""Rows read from a real drive by a loader on a GPU, beside what the drive gives to bare reads.

`python bench/gpu/drives/real_drive.py --folder DIR [--scale 19] [--row-bytes 4096] [--out FILE]`

`--folder` is on the drive: its files are read past the page cache. `ceiling` is the most 4 KiB
reads a second of `tiergraph bench io` over the feature file, right before and right after a way is
measured. Who reads: the host's threads (`auto`: io_uring or pread), the GPU's kernels by queue
pairs that threads of the host answer from the files (`gpu`), or whoever a trial finds faster
(`gpu:auto`). `rate` is missed rows a second of batches that nobody trains on, from the second one
on.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import epochs
import numpy as np

import tiergraph as tg
from tiergraph import _native

sys.path.append(str(Path(__file__).parent.parent))
import _arguments
from _batches import middle

import training

DEPTHS = (32, 128)
"""Reads in flight a thread, of bare reads."""


def main() -> None:
    """Prints a row for each way to read."""
    parser = _arguments.arguments(__doc__, scale=19)
    parser.add_argument("--row-bytes", type=int, default=4096)
    parser.add_argument("--ways", nargs="+", default=["auto", "gpu", "gpu:auto"])
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--turns", type=int, default=2)
    args = parser.parse_args()
    path = epochs.graph(args, args.row_bytes)
    file = path / "features" / "x.rows"
    rows: list[dict[str, Any]] = []
    for way in args.ways:
        before = ceiling(file)
        row = measured(path, way, args)
        row["ceiling"] = statistics.mean([before, ceiling(file)])
        rows.append(row)
        print(
            f"{way:9} {row['prepare'] * 1e3:8.2f} ms a batch, {row['missed_rows'] / 1e3:.1f} K of "
            f"{row['nodes'] / 1e3:.1f} K rows missed: {row['rate'] / 1e3:.1f} K/s = "
            f"{row['rate'] / row['ceiling']:.0%} of {row['ceiling'] / 1e3:.1f} K reads/s "
            f"{row.get('storage_reads', '')} {row.get('storage_rates', '')}",
            flush=True,
        )
        if args.out:
            args.out.write_text("".join(json.dumps(r) + "\n" for r in rows))


def ceiling(file: Path) -> float:
    """The most 4 KiB reads a second at several depths."""
    measured = [
        json.loads(_native.bench_io(str(file), "uring", 4096, d, None, 1.0)) for d in DEPTHS
    ]
    return max(float(row["iops"]) for row in measured)


def measured(path: Path, way: str, args: Any) -> dict[str, Any]:
    """Seconds a batch that nobody trains on, and the rows that were missed for it."""
    seeds = np.flatnonzero(tg.open(path).degrees("in") > 0)
    device_memory, memory = epochs.little_memory(path, 0.05, 0.1)
    loader = tg.NeighborLoader(
        path,
        training.FANOUT,
        batch_size=args.batch_size,
        input_nodes=seeds,
        shuffle=True,
        device="cuda",
        presample=20,
        io=way,
        device_memory=device_memory,
        memory=memory,
    )
    turns = []
    for _ in range(args.turns + 1):
        took = middle(loader, None, args.batches)
        counts = {key: took.counts[key] for key in ("nodes", "missed_rows", "bytes_ssd")}
        turns.append({"prepare": took.seconds} | counts)
    row = {key: statistics.median(turn[key] for turn in turns[1:]) for key in turns[0]}
    kept = loader.kept()
    loader.close()
    told = ("device_rows", "host_rows", "storage_rows", "storage_reads", "storage_rates")
    row |= {"way": way, "row_bytes": args.row_bytes, "rate": row["missed_rows"] / row["prepare"]}
    return row | {key: kept[key] for key in told if key in kept}


if __name__ == "__main__":
    main()
