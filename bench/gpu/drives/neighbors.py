"""Batches of a loader on a GPU whose neighbour lists fit neither memory, by who reads their pages.

`python bench/gpu/drives/neighbors.py [--scale 24] [--shares 0.1 0.4] [--ways …] [--out FILE]`

GPU memory has room for a tenth of the lists of an RMAT graph beside a sampler, host memory for each
of `--shares` of them beside what reading takes; the others lie in files in `--folder`. A way is the
loader's `io`: with `auto`, `posix` and `modelled:…` threads of the host read the pages that a hop
wants, with `gpu:…` kernels do. With `both` the CPU samples and kernels gather rows, and `cpu` is
the loader of the CPU, whose batches are moved to the GPU, in the same memory.

Figures are medians of `--turns` parts of an epoch of `--batches`: ms a batch that nobody trains on.
Some twenty that the CPU has ready when a part begins are among them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import tiergraph as tg
from tiergraph.loaders.ordinary import OrdinaryInput

sys.path.append(str(Path(__file__).parent.parent))
import _arguments
from _batches import middle

FEATURES = 16
"""The number of features of a vertex: rows are small beside lists."""
LEAST = 700 << 20
"""What an opened graph, readers and sixteen samplers take of host memory."""
THREADS = 4
"""Threads that sample, where the CPU does: more need more than this memory for their tables."""
WAYS = ["auto", "both", "cpu", "modelled:p5510*4", "gpu:modelled:p5510*4"]


def main() -> None:
    """Prints a row for each share of the lists in host memory and way to read."""
    parser = _arguments.arguments(__doc__, scale=24)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.4])
    parser.add_argument("--ways", nargs="+", default=WAYS)
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--fanout", type=int, nargs="+", default=[15, 10])
    parser.add_argument("--batches", type=int, default=160)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    path = args.folder / f"neighbors-{args.scale}.tg"
    if not path.exists():
        tg.generate("rmat", path, scale=args.scale, features=FEATURES, layouts="training")
    rows = []
    for share in args.shares:
        for way in args.ways:
            row = measured(path, share, way, args)
            rows.append(row)
            print(line(row), flush=True)
            if args.out:
                args.out.write_text("".join(json.dumps(r) + "\n" for r in rows))


def measured(path: Path, share: float, way: str, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds a batch by one way, and what was read for it."""
    manifest = json.loads((path / "manifest.json").read_text())
    vertices, lists = manifest["vertices"], 4 * manifest["arcs"]
    edges = args.batch_size * args.fanout[0] * (1 + args.fanout[1])
    device_memory = 40 * vertices + 100 * edges + lists // 10
    memory = LEAST + 16 * vertices + int(share * lists)
    seeds = np.flatnonzero(tg.open(path).degrees("in") > 0)
    where: dict[str, Any] = {"memory": memory} | (
        {"threads": THREADS} if way in ("both", "cpu") else {}
    )
    if way != "cpu":
        where |= {"device": "cuda", "device_memory": device_memory}
        where |= {"io": "auto" if way == "both" else way}
    with contextlib.ExitStack() as stack:
        said = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always", tg.FallbackWarning)
        if way == "both":
            stack.enter_context(patch.object(OrdinaryInput, "not_on_gpu", "as this measures it"))
        loader = tg.NeighborLoader(
            path,
            args.fanout,
            batch_size=args.batch_size,
            input_nodes=seeds,
            shuffle=True,
            presample=10,
            **where,
        )
    turns = [
        middle(loader, None if way != "cpu" else moved, args.batches) for _ in range(args.turns)
    ]
    kept = loader.kept()
    loader.close()
    told = (
        "made_on",
        "why",
        "list_reads_by",
        "device_list_bytes",
        "host_list_bytes",
        "storage_list_bytes",
        "device_rows",
        "host_rows",
        "storage_rows",
    )
    row = {"share": share, "way": way, "lists": lists, "memory": memory}
    row |= {"device_memory": device_memory}
    row |= {"seconds": statistics.median(turn.seconds for turn in turns)}
    row |= {"turns": [turn.seconds for turn in turns], "warnings": [str(w.message) for w in said]}
    counts = turns[-1].counts
    row |= {k: counts[k] for k in ("nodes", "reads", "bytes_ssd", "list_pages") if k in counts}
    return row | {key: kept[key] for key in told if key in kept}


def moved(batch: Any) -> None:
    """Moves a batch to the GPU, and waits for it."""
    batch.to("cuda")


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    lists = [row.get(f"{place}_list_bytes", 0) / 1e6 for place in ("device", "host", "storage")]
    return (
        f"{row['share']:4.0%} {row['way']:22} {row['seconds'] * 1e3:8.2f} ms a "
        f"batch of {row['nodes'] / 1e3:.0f} K nodes; {row.get('reads', 0) / 1e3:.1f} K reads, "
        f"{row.get('bytes_ssd', 0) / 1e6:.1f} MB; made on {row.get('made_on', 'cpu')}, lists in MB "
        f"(device, host, storage) {lists[0]:.0f} {lists[1]:.0f} {lists[2]:.0f}, read by "
        f"{row.get('list_reads_by', '-')} {row.get('why', '')}"
    )


if __name__ == "__main__":
    main()
