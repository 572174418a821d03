"""What the planner predicts beside what is measured (Hyperion, figures 14 and 15).

`python bench/paper/hyperion_planner.py [--out DIR] [--hosts 0.02 0.1 0.2 0.5] [--widths 32 64 …]`

GraphSAGE over modelled Intel P5510, a share of the rows in the host's memory and a twentieth on the
GPU. A job is measured with one drive (`tg.measure_job`), for each share; predicted and measured are
whole batches, prepared while others are trained on, with each number of drives. `from_first` is
predicted by the job of the first share, without having seen the others. Then GAT of several widths
with the most drives. Money is the paper's (machine A, an A100), the link what rows of host memory
reached here. In the paper, the recommended number of drives gives more than 90 % of the best.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _hyperion
from _hyperion import GPU, Row
from matplotlib.figure import Figure

sys.path[:0] = [str(GPU / "drives"), str(GPU)]

PARTS = """
dollars_per_kwh = 0.1
[machines.here]
name = "the paper's machine A, with the link of this one"
dollars = 14_098
drive_slots = {slots}
link_bytes_per_second = {link}
watts = 4000
electricity_dollars = 17_000
source = "Hyperion, section VI"
[gpus.a100]
name = "A100"
dollars = 14_177
source = "Hyperion, section VI"
"""
CACHED = 0.05
"""The share of rows that are in GPU memory."""
HEADS = 8
"""Attention heads of GAT."""


def main() -> None:
    """Measures, or draws saved rows."""
    args = parser().parse_args()
    _hyperion.run("hyperion_planner", args, lambda: measure(args), line, draw)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parsed = _hyperion.parser(__doc__)
    parsed.add_argument("--scale", type=int, default=20)
    parsed.add_argument("--row-bytes", type=int, default=4096)
    parsed.add_argument("--drives", type=int, nargs="+", default=[1, 2, 3, 4, 6, 8, 10, 12])
    parsed.add_argument("--hosts", type=float, nargs="+", default=[0.02, 0.1, 0.2, 0.5])
    parsed.add_argument("--widths", type=int, nargs="+", default=[32, 64, 128, 256])
    parsed.add_argument("--batches", type=int, default=16)
    parsed.add_argument("--turns", type=int, default=2)
    return parsed


def measure(args: argparse.Namespace) -> Iterator[Row]:
    """A row for each share of rows in host memory and number of drives, and each width of GAT."""
    from torch_geometric.nn.models import GAT

    import epochs
    import tiergraph as tg
    import training

    own = epochs.parser().parse_args(["--scale", str(args.scale)])
    path = epochs.graph(own, args.row_bytes)
    features, most = args.row_bytes // 4, max(args.drives)
    sage = training.trainer(training.MODELS["GraphSAGE"](features).cuda())
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as parts:
        with opened(path, 0.98, 1) as loader:
            job = tg.measure_job(loader, sage)
        link = (job.host_bytes + job.drive_bytes) / job.prepare_seconds
        parts.write(PARTS.format(slots=most, link=link))
        parts.flush()
        asked: dict[str, Any] = {"machine": "here", "drive": "p5510", "parts": parts.name}
        first = None
        for host in args.hosts:
            with opened(path, host, 1) as loader:
                job = tg.measure_job(loader, sage)
            first = job if first is None else first
            plan = tg.plan(job, **asked)
            caches = {"device_cache": int(job.device_rows * job.row_bytes)}
            caches |= {"host_cache": int(job.host_rows * job.row_bytes)}
            others = tg.plan(first, **asked, **caches)
            for drives in args.drives:
                estimate, other = plan.estimates[drives - 1], others.estimates[drives - 1]
                row: Row = {"figure": 14, "host": host, "drives": drives, "link": link}
                row |= together(path, host, drives, sage, args)
                row |= {"predicted": estimate.batch_seconds, "from_first": other.batch_seconds}
                row |= {"bottleneck": estimate.bottleneck, "dollars": estimate.dollars}
                yield row | {"best": plan.best.drives, "job": job._asdict()}
        for width in args.widths:
            model = GAT(features, HEADS * width, 2, training.CLASSES, heads=HEADS)
            gat = training.trainer(model.cuda())
            with opened(path, args.hosts[-1], 1) as loader:
                job = tg.measure_job(loader, gat)
            estimate = tg.plan(job, **asked).estimates[most - 1]
            row = {"figure": 15, "width": width, "drives": most}
            row |= together(path, args.hosts[-1], most, gat, args)
            row |= {"predicted": estimate.batch_seconds, "bottleneck": estimate.bottleneck}
            yield row | {"job": job._asdict()}


def opened(path: Path, host: float, drives: int) -> Any:
    """A loader with a share of the rows in the host's memory, and the others on modelled drives."""
    import epochs
    import numpy as np

    import tiergraph as tg
    import training

    device_memory, memory = epochs.little_memory(path, CACHED, host)
    return tg.NeighborLoader(
        path,
        training.FANOUT,
        batch_size=training.BATCH,
        input_nodes=np.flatnonzero(tg.open(path).degrees("in") > 0),
        shuffle=True,
        device="cuda",
        io=f"gpu:modelled:p5510*{drives}",
        device_memory=device_memory,
        memory=memory,
        presample=40,
    )


def together(path: Path, host: float, drives: int, train: Any, args: argparse.Namespace) -> Row:
    """Seconds a batch that is prepared while others are trained on: of all turns, and of most."""
    from _batches import middle

    with opened(path, host, drives) as loader:
        turns = [middle(loader, train, args.batches) for _ in range(args.turns + 1)]
    times = [turn.seconds for turn in turns]
    # The first fills caches.
    row = {"turns": times, "measured": statistics.median(times[1:])}
    return row | {"reads": turns[-1].counts["reads"]}


def line(row: Row) -> str:
    """A row as a line of the table."""
    what = f"host {row['host']:4}" if row["figure"] == 14 else f"GAT, width {row['width']:3}"
    measured, predicted = row["measured"] * 1e3, row["predicted"] * 1e3
    text = (
        f"{what} {row['drives']:2} drives: measured {measured:6.2f} ms a batch, "
        f"predicted {predicted:6.2f} ({off(row, 'predicted'):+.1%}, {row['bottleneck']})"
    )
    if row["figure"] == 14:
        text += f", from the first job {off(row, 'from_first'):+.1%}; best: {row['best']} drives"
    return text


def off(row: Row, by: str) -> float:
    """How far a prediction of throughput is from what was measured: above it, or below."""
    return float(row["measured"] / row[by] - 1)


def draw(rows: list[Row]) -> Figure:
    """Throughput for a dollar by drives, the recommended beside the best, and GAT by width."""
    figure, (curves, best, widths) = _hyperion.panels(3, width=4.8)
    of_drives = [row for row in rows if row["figure"] == 14]
    lines: dict[str, list[tuple[float, float]]] = {}
    reached: dict[float, float] = {}
    for host in sorted({row["host"] for row in of_drives}):
        swept = [row for row in of_drives if row["host"] == host]
        for by in ("measured", "predicted"):
            worth = [(row["drives"], 1 / row[by] / row["dollars"] * 1e3) for row in swept]
            lines[f"{host:.0%} in host memory, {by}"] = worth
        tried = {row["drives"]: 1 / row["measured"] / row["dollars"] for row in swept}
        # Of the numbers that were tried, the recommended one or the next above it.
        given = min((d for d in tried if d >= swept[0]["best"]), default=max(tried))
        reached[host] = tried[given] / max(tried.values())
    _hyperion.curves(curves, lines, "drives", "batches a second for 1,000 dollars")
    names = [f"{host:.0%}" for host in reached]
    bars = {"recommended, of the best tried": list(reached.values())}
    _hyperion.groups(best, names, bars, "throughput for a dollar", "%.2f")
    of_width = [row for row in rows if row["figure"] == 15]
    if of_width:
        by_width = {by: [1 / row[by] for row in of_width] for by in ("measured", "predicted")}
        names = [str(row["width"]) for row in of_width]
        _hyperion.groups(widths, names, by_width, "batches a second, GAT by width", "%.0f")
    return figure


if __name__ == "__main__":
    main()
