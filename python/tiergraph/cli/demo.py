"""`tiergraph demo`: a graph built, four algorithms in a quarter of its memory, and training.

Vertex state, indexes and read buffers are always in memory; the quarter is of the edges.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .. import graph as tg
from .. import results, write
from . import demo_training
from .output import print_fields, print_table, readable
from .progress import Bars

STATE_BYTES = 16
"""Vertex state that the hungriest of the four algorithms holds, bytes a vertex."""


def demo(
    graph: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own edges; default: generated.")
    ] = None,
    scale: Annotated[int, typer.Option(min=1, help="Generate 2^scale vertices.")] = 20,
    directory: Annotated[
        Path, typer.Option("--directory", "-C", help="Where the graph is written.")
    ] = Path("demo.tg"),
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Default: a quarter of what it fills.")
    ] = None,
    training: Annotated[
        bool, typer.Option(help="Then train GraphSAGE on a second graph, where PyTorch is there.")
    ] = True,
) -> None:
    """Build a graph, run PageRank, WCC, BFS and SSSP on it, train, and show where the time went."""
    _make(graph, scale, directory)
    info = tg.open(directory).info()
    budget: int | str = memory or _quarter(info)
    print(f"\nRunning with memory {readable('bytes', budget)}.\n")
    opened = tg.open(directory, memory=budget)
    opened.ceiling = True
    rows = []
    with Bars() as bars:
        ranks = opened.pagerank(iterations=10, progress=bars)
        rows.append(_row(opened.last_run))
        hub = int(opened.ids[np.argmax(opened.degrees())])
        opened.wcc(progress=bars)
        rows.append(_row(opened.last_run))
        opened.bfs(hub, progress=bars)
        rows.append(_row(opened.last_run))
        opened.sssp(hub, progress=bars)
        rows.append(_row(opened.last_run))
    print_table(COLUMNS, rows)
    print("\nThe highest PageRanks:\n")
    top = results.top(opened.ids, ranks, 10)
    print_table(("vertex", "rank"), [(str(v), readable("rank", r)) for v, r in top])
    if graph is None and training:
        demo_training.train(scale, directory)


def _make(source: Path | None, scale: int, directory: Path) -> None:
    """Writes the demo's graph anew."""
    with Bars() as bars:
        if source is not None:
            print(f"Building {directory} from {source}.\n")
            stats = write.build(source, directory, overwrite=True, progress=bars)
        else:
            print(f"Generating {directory}: RMAT, scale {scale}, undirected, weighted.\n")
            stats = write.generate(
                "rmat",
                directory,
                scale=scale,
                weights="byte",
                undirected=True,
                overwrite=True,
                progress=bars,
            )
    print_fields(stats)


def _quarter(info: dict[str, Any]) -> int:
    """A quarter of what edges and vertex state fill, and what an opened graph holds anyway."""
    state = STATE_BYTES * int(info["vertices"])
    return int(info["reserved_bytes"]) + max(state, (int(info["bytes"]) + state) // 4)


COLUMNS = (
    "algorithm",
    "seconds",
    "iterations",
    "edges/s",
    "read",
    "bandwidth",
    "ceiling",
    "resident",
    "peak RSS",
)


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(run["algorithm"]),
        readable("seconds", run["seconds"]),
        str(run["iterations"]),
        readable("edges_per_second", run["edges_per_second"]),
        readable("bytes", run["bytes_read"]),
        readable("bandwidth", run["read_bandwidth"]),
        readable("ceiling", run["read_ceiling"]),
        readable("bytes", run["resident_bytes"]),
        readable("bytes", run["peak_rss_bytes"]),
    )
