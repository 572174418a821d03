"""`tiergraph demo`: a graph built, four algorithms in a quarter of its memory, training, a report.

Vertex state, indexes and read buffers are always in memory; the quarter is of the edges.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer

from ... import graph as tg
from ... import report, results, write
from ...errors import InputError
from ...units import readable
from ..output import print_fields, print_table
from ..progress import Bars
from .training import train

SCALE = 20


def demo(
    graph: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own edges; default: generated.")
    ] = None,
    scale: Annotated[int, typer.Option(min=1, help="Generate 2^scale vertices.")] = SCALE,
    directory: Annotated[
        Path, typer.Option("--directory", "-C", help="Where the graph is written.")
    ] = Path("demo.tg"),
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Of the algorithms; default: a quarter of what it fills."
        ),
    ] = None,
    training: Annotated[
        bool, typer.Option(help="Then train GraphSAGE on a second graph, where PyTorch is there.")
    ] = True,
) -> None:
    """Build a graph, run PageRank, WCC, BFS and SSSP on it, train, and show where the time went."""
    _make(graph, scale, directory)
    budget: int | str = memory or quarter(tg.open(directory))
    print(f"\nRunning with memory {readable('bytes', budget)}; {_before()}.\n")
    opened = tg.open(directory, memory=budget)
    opened.ceiling = True
    with Bars() as bars, TemporaryDirectory(prefix="tiergraph-") as folder:
        ranks, runs = run_all(opened, bars, Path(folder))
        pages = [report.of(run, report.spans_of(_trace(Path(folder), run))) for run in runs]
    print_table(COLUMNS, [_row(run) for run in runs])
    print("\nThe highest PageRanks:\n")
    top = [(opened.ids_of(v, v + 1)[0], rank) for v, rank in results.top(ranks, 10)]
    print_table(("vertex", "rank"), [(str(v), readable("rank", r)) for v, r in top])
    if graph is None and training:
        trained = train(scale, directory)
        pages += [] if trained is None else [report.of(trained)]
    _report(pages, directory.with_suffix(".html"))


def _report(pages: list[report.Run], path: Path) -> None:
    """Writes the runs' page; says why where what draws it is missing."""
    try:
        report.write(pages, path)
    except InputError as error:
        print(f"\nThere is no report: {error}")
        return
    print(f"\nThe report of all runs is in {path}: open it in a browser.")


def _trace(folder: Path, run: dict[str, Any]) -> Path:
    return folder / f"{run['algorithm']}.json"


def _before() -> str:
    """Has the system forget the build's peak; what the algorithms' peaks begin with."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as error:
        return f"peaks are those of the build too: {error}"
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    held = int(status["VmRSS"].split()[0]) << 10
    return f"Python and what it has loaded hold {readable('bytes', held)} already"


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


def run_all(
    graph: tg.Graph, bars: Bars, traces: Path | None = None
) -> tuple[tg.Floats, list[dict[str, Any]]]:
    """PageRank, WCC, and BFS and SSSP from the hub; the ranks, and what each run measured.

    Timelines go to the folder `traces`, each under its algorithm's name.
    """

    def told(name: str) -> dict[str, Any]:
        return {"progress": bars, "trace": None if traces is None else traces / f"{name}.json"}

    ranks = graph.pagerank(iterations=10, **told("pagerank"))
    runs = [graph.last_run]
    graph.wcc(**told("wcc"))
    runs.append(graph.last_run)
    hub = int(graph.ids[np.argmax(graph.degrees())])
    graph.bfs(hub, **told("bfs"))
    runs.append(graph.last_run)
    graph.sssp(hub, **told("sssp"))
    runs.append(graph.last_run)
    return ranks, runs


def quarter(graph: tg.Graph) -> int:
    """A quarter of what edges and vertex state fill, and what an opened graph holds anyway.

    The state is that of PageRank, the hungriest of the four algorithms.
    """
    info = graph.info()
    state = graph.pagerank_bytes()
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
