"""`tiergraph pagerank | wcc | bfs | sssp`: one run each, its result and where its time went."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from .. import graph as tg
from .. import results
from .options import (
    Ceiling,
    Device,
    DeviceMemory,
    GraphPath,
    Io,
    Json,
    Memory,
    Output,
    Threads,
    Top,
    Trace,
)
from .output import print_fields, print_json, print_table, readable
from .progress import Bars

Values = NDArray[Any]
Source = Annotated[int, typer.Option(help="The vertex to start from, by its own id.")]


class Run:
    """One algorithm on one graph: opened, run under a progress bar, written and shown."""

    def __init__(
        self,
        path: Path,
        memory: str | None,
        io: str,
        threads: int | None,
        device: str,
        device_memory: str | None,
        ceiling: bool,
        output: Path | None,
    ) -> None:
        self.output = None if output is None else results.check_suffix(str(output))
        self.graph = tg.open(
            path,
            memory=memory,
            io=io,
            threads=threads,
            device=device,
            device_memory=device_memory,
        )
        self.graph.ceiling = ceiling

    def measure(self, algorithm: Callable[[Bars], Values]) -> Values:
        """Runs with progress on stderr."""
        with Bars() as bars:
            return algorithm(bars)

    def show(
        self,
        name: str,
        values: Values,
        summary: dict[str, Any],
        rows: list[tuple[int, Any]],
        as_json: bool,
    ) -> None:
        """Writes the result file, then prints JSON, or the rows on stdout and figures on stderr."""
        run = self.graph.last_run | summary
        if self.output is not None:
            results.write(self.output, self.graph.ids, name, values)
            run["output"] = self.output
        if as_json:
            print_json(run | {"top": [{"vertex": v, name: x} for v, x in rows]})
            return
        print_fields(run, stderr=True)
        if rows:
            print_table(("vertex", name), [(str(v), readable(name, x)) for v, x in rows])


def pagerank(
    graph: GraphPath,
    damping: Annotated[float, typer.Option(min=0.0, max=1.0, help="Chance to follow an edge.")] = (
        0.85
    ),
    iterations: Annotated[int | None, typer.Option(min=1, help="Stop after this many.")] = None,
    tolerance: Annotated[
        float | None, typer.Option(min=0.0, help="Stop once all ranks change by less together.")
    ] = None,
    sources: Annotated[
        list[int] | None, typer.Option("--source", help="Personalise to this id; repeat for more.")
    ] = None,
    memory: Memory = None,
    io: Io = "auto",
    threads: Threads = None,
    device: Device = "cpu",
    device_memory: DeviceMemory = None,
    ceiling: Ceiling = False,
    trace: Trace = None,
    output: Output = None,
    top: Top = 10,
    as_json: Json = False,
) -> None:
    """PageRank (LDBC Graphalytics' definition); with --source, personalised."""
    run = Run(graph, memory, io, threads, device, device_memory, ceiling, output)
    ranks = run.measure(
        lambda bars: run.graph.pagerank(
            damping=damping,
            iterations=iterations,
            tolerance=tolerance,
            sources=sources or None,
            trace=trace,
            progress=bars,
        )
    )
    run.show("rank", ranks, {}, results.top(run.graph.ids, ranks, top), as_json)


def wcc(
    graph: GraphPath,
    memory: Memory = None,
    io: Io = "auto",
    threads: Threads = None,
    device: Device = "cpu",
    device_memory: DeviceMemory = None,
    ceiling: Ceiling = False,
    trace: Trace = None,
    output: Output = None,
    top: Top = 10,
    as_json: Json = False,
) -> None:
    """Weakly connected components; lists the largest, each by its smallest vertex."""
    run = Run(graph, memory, io, threads, device, device_memory, ceiling, output)
    components = run.measure(lambda bars: run.graph.wcc(trace=trace, progress=bars))
    names, sizes = np.unique(components, return_counts=True)
    summary: dict[str, Any] = {
        "components": len(names),
        "largest_component": int(sizes.max(initial=0)),
    }
    largest = results.top(names, sizes, top)
    if as_json:
        summary["largest"] = [{"component": c, "vertices": n} for c, n in largest]
    run.show("component", components, summary, [], as_json)
    if not as_json:
        print_table(("component", "vertices"), [(str(c), f"{n:,}") for c, n in largest])


def bfs(
    graph: GraphPath,
    source: Source,
    memory: Memory = None,
    io: Io = "auto",
    threads: Threads = None,
    device: Device = "cpu",
    device_memory: DeviceMemory = None,
    ceiling: Ceiling = False,
    trace: Trace = None,
    output: Output = None,
    top: Top = 0,
    as_json: Json = False,
) -> None:
    """Hops from one vertex to every other; --top lists the farthest."""
    run = Run(graph, memory, io, threads, device, device_memory, ceiling, output)
    depths = run.measure(lambda bars: run.graph.bfs(source, trace=trace, progress=bars))
    reached = depths >= 0
    summary = {
        "source": source,
        "reached": int(np.count_nonzero(reached)),
        "depth": int(depths.max()),
    }
    farthest = results.top(run.graph.ids[reached], depths[reached], top)
    run.show("depth", depths, summary, farthest, as_json)


def sssp(
    graph: GraphPath,
    source: Source,
    memory: Memory = None,
    io: Io = "auto",
    threads: Threads = None,
    device: Device = "cpu",
    device_memory: DeviceMemory = None,
    ceiling: Ceiling = False,
    trace: Trace = None,
    output: Output = None,
    top: Top = 0,
    as_json: Json = False,
) -> None:
    """Least total weight from one vertex to every other; --top lists the farthest."""
    run = Run(graph, memory, io, threads, device, device_memory, ceiling, output)
    distances = run.measure(lambda bars: run.graph.sssp(source, trace=trace, progress=bars))
    reached = np.isfinite(distances)
    summary = {
        "source": source,
        "reached": int(np.count_nonzero(reached)),
        "distance": float(distances[reached].max()),
    }
    farthest = results.top(run.graph.ids[reached], distances[reached], top)
    run.show("distance", distances, summary, farthest, as_json)
