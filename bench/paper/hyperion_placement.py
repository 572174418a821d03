"""Placements of lists and rows over GPU and host memory, by budget (Hyperion, figures 7 and 13).

`python bench/paper/hyperion_placement.py [--out DIR] [--tenths 1 2 4 7 10] [--row-bytes 1024]`

The paper compares five strategies with its unified placement on 12 Intel P5510 (the worst is 52 %
of the best), and then a cache in host memory (up to 1.73 times), in GPU memory (1.48) and of
topology (1.1) with none. Here a budget is so many tenths of all lists and rows, a third of it in
GPU memory and the rest in the host's, and what is left lies on modelled drives. `transactions` are
those of the whole first epoch, which presampling predicted: `off` is how far it was. Nobody trains
here. Placements of a budget are measured in turns, `--turns` loaders of each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import _hyperion
from _hyperion import GPU, Row
from matplotlib.figure import Figure

sys.path[:0] = [str(GPU / "drives"), str(GPU)]

PLACEMENTS: dict[str, Any] = {
    "unified": "unified",
    "GTCT": "topology",
    "GFCF": "features",
    "GTCF": "topology/features",
    "GFCT": "features/topology",
    "share": 0.75,
}
"""By the paper's names: what GPU memory takes first, and what the host's does."""
ON_GPU = 1 / 3
"""The part of a budget that is GPU memory."""
LEAST = 192 << 20
"""Bytes of host memory that an opened graph and its readers take."""
WORKING = 256 << 20
"""Bytes of GPU memory for what is on its way, beside the sampler's."""
EPOCHS = 3
"""Epochs of each loader that are measured."""


def main() -> None:
    """Measures, or draws saved rows."""
    args = parser().parse_args()
    _hyperion.run("hyperion_placement", args, lambda: measure(args), line, draw)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parsed = _hyperion.parser(__doc__)
    parsed.add_argument("--tenths", type=int, nargs="+", default=[1, 2, 4, 7, 10])
    parsed.add_argument("--row-bytes", type=int, default=1024)
    parsed.add_argument("--drives", type=int, default=12)
    parsed.add_argument("--scale", type=int, default=21)
    parsed.add_argument("--seeds", type=float, default=0.05, help="share of vertices to train on")
    parsed.add_argument("--turns", type=int, default=3, help="loaders of each placement, in turns")
    return parsed


def measure(args: argparse.Namespace) -> Iterator[Row]:
    """A row for each budget and placement, and for each cache left out at the middle budget."""
    import epochs

    own = epochs.parser().parse_args(["--scale", str(args.scale)])
    path = epochs.graph(own, args.row_bytes)
    for tenths in args.tenths:
        cases = [Case(tenths, name, ON_GPU, 1 - ON_GPU) for name in PLACEMENTS]
        yield from in_turns(path, args, cases)
    middle = args.tenths[len(args.tenths) // 2]
    left_out = [
        Case(middle, "unified", ON_GPU, 0.0, "no host cache"),
        Case(middle, "unified", 0.0, 1 - ON_GPU, "no GPU cache"),
        Case(middle, "GFCF", ON_GPU, 1 - ON_GPU, "no topology cache"),
    ]
    yield from in_turns(path, args, left_out)


class Case(NamedTuple):
    """A budget, how it is shared, and what is placed in it first."""

    tenths: int
    placement: str
    on_gpu: float
    on_host: float
    left_out: str | None = None


def in_turns(path: Path, args: argparse.Namespace, cases: list[Case]) -> Iterator[Row]:
    """A row for each case, each turn by a loader of its own and in another order."""
    turns: list[list[Row]] = [[] for _ in cases]
    for turn in range(args.turns):
        for number in range(len(cases)):
            which = (number + turn) % len(cases)
            turns[which].append(measured(path, args, cases[which]))
    for case, rows in zip(cases, turns, strict=True):
        row = rows[-1] | {"prepare": statistics.median(row["prepare"] for row in rows)}
        yield row if case.left_out is None else row | {"left_out": case.left_out}


def measured(path: Path, args: argparse.Namespace, case: Case) -> Row:
    """Seconds a batch of an epoch, and its transactions, by a loader that is closed then."""
    import numpy as np
    import torch
    from _batches import per_batch

    import tiergraph as tg
    import training

    manifest = json.loads((path / "manifest.json").read_text())
    vertices, arcs = manifest["vertices"], manifest["arcs"]
    budget = case.tenths / 10 * (4 * arcs + args.row_bytes * vertices)
    edges = training.BATCH * training.FANOUT[0] * (1 + training.FANOUT[1])
    working = 40 * vertices + 60 * edges + WORKING
    seeds = np.flatnonzero(tg.open(path).degrees("in") > 0)
    seeds = np.random.default_rng(1).permutation(seeds)[: int(args.seeds * vertices)]
    loader = tg.NeighborLoader(
        path,
        training.FANOUT,
        batch_size=training.BATCH,
        input_nodes=seeds,
        shuffle=True,
        device="cuda",
        io=f"gpu:modelled:p5510*{args.drives}",
        placement=PLACEMENTS[case.placement],
        device_memory=working + int(case.on_gpu * budget),
        memory=LEAST + 16 * vertices + int(case.on_host * budget * 1.1),
    )
    times = []
    for _ in range(1 + EPOCHS):
        # The presampled epoch, each time; the first time allocations' caches are filled.
        loader.set_epoch(0)
        times.append(per_batch(iter(loader), lambda _: torch.cuda.synchronize()))
    kept, counted = loader.kept(), loader.last_epoch["transactions"]
    predicted = kept.get("predicted", dict.fromkeys(counted, 0))
    total, expected = sum(counted.values()), sum(predicted[key] for key in counted)
    told = ("device_list_bytes", "host_list_bytes", "storage_list_bytes")
    told += ("device_rows", "host_rows", "storage_rows")
    loader.close()
    row: Row = {"tenths": case.tenths, "placement": case.placement}
    row |= {"prepare": statistics.median(times[1:])}
    row |= {key: kept[key] for key in told}
    row |= {"transactions": total, "by_tier": counted, "predicted": expected}
    return row | {"off": abs(total - expected) / expected if expected else 0.0}


def line(row: Row) -> str:
    """A row as a line of the table."""
    what = row.get("left_out", row["placement"])
    return (
        f"{row['tenths']:2}/10 {what:17} {row['prepare'] * 1e3:8.2f} ms a batch, "
        f"{row['transactions'] / 1e6:8.2f} M transactions ({row['off']:.2%} off the prediction)"
    )


def draw(rows: list[Row]) -> Figure:
    """Times and transactions by budget, relative to unified, and what each cache brings."""
    strategies = [row for row in rows if "left_out" not in row]
    figure, (times, transactions, caches) = _hyperion.panels(3, width=4.8)
    tenths = sorted({row["tenths"] for row in strategies})
    names = [name for name in PLACEMENTS if any(r["placement"] == name for r in strategies)]
    for panel, key, title in (
        (times, "prepare", "seconds a batch, of unified's"),
        (transactions, "transactions", "transactions, of unified's"),
    ):
        value = {(r["placement"], r["tenths"]): r[key] for r in strategies}
        lines = {
            name: [
                (t, value[name, t] / value["unified", t])
                for t in tenths
                if value.get((name, t)) and value.get(("unified", t))
            ]
            for name in names
        }
        lines = {name: points for name, points in lines.items() if points}
        _hyperion.curves(panel, lines, "budget, tenths of lists and rows", title)
    left_out = [row for row in rows if "left_out" in row]
    if left_out:
        (whole,) = (
            row
            for row in strategies
            if (row["placement"], row["tenths"]) == ("unified", left_out[0]["tenths"])
        )
        gains = [row["prepare"] / whole["prepare"] for row in left_out]
        paper = {"no host cache": 1.73, "no GPU cache": 1.48, "no topology cache": 1.1}
        kinds = [row["left_out"] for row in left_out]
        bars = {"here": gains, "paper, at most": [paper[kind] for kind in kinds]}
        _hyperion.groups(caches, kinds, bars, "times as long as with it", "%.2f")
    return figure


if __name__ == "__main__":
    main()
