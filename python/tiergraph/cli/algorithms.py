"""`tiergraph pagerank | wcc | bfs | sssp`: one run each, its result and where its time went."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from .. import _native, report, results
from .. import graph as tg
from ..handles import without
from ..opening import CHECKPOINT_EVERY
from ..units import readable
from .flags import with_flags_of
from .histogram import print_histogram
from .options import (
    Ceiling,
    Checkpoint,
    CheckpointEvery,
    Device,
    DeviceMemory,
    GraphPath,
    Io,
    Json,
    Memory,
    Output,
    Report,
    Resume,
    Threads,
    Top,
    Trace,
    Transfers,
    vertex_of,
)
from .output import print_fields, print_json, print_table
from .progress import Bars

Values = NDArray[Any]
Source = Annotated[str, typer.Option(help="The vertex to start from, by its own id or name.")]


class Run:
    """One algorithm on one graph: opened, run under a progress bar, written and shown."""

    def __init__(
        self,
        graph: GraphPath,
        memory: Memory = None,
        io: Io = "auto",
        threads: Threads = None,
        device: Device = "cpu",
        device_memory: DeviceMemory = None,
        transfers: Transfers = "async",
        ceiling: Ceiling = False,
        trace: Trace = None,
        page: Report = None,
        checkpoint: Checkpoint = None,
        checkpoint_every: CheckpointEvery = CHECKPOINT_EVERY,
        resume: Resume = False,
        output: Output = None,
        as_json: Json = False,
    ) -> None:
        self.output = None if output is None else results.check_suffix(str(output))
        self.as_json = as_json
        self.trace, self.page = trace, page
        self.spans: report.Spans | None = None
        if page is not None:
            report.check(page)
        # What the indexes need beside what the algorithm needs is said once, by the algorithm.
        self.graph = tg.open_for_run(
            graph,
            memory=memory,
            io=io,
            threads=threads,
            device=device,
            device_memory=device_memory,
            transfers=transfers,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            resume=resume,
        )
        self.graph.ceiling = ceiling

    def measure(self, algorithm: Callable[..., Values], *arguments: Any, **options: Any) -> Values:
        """Runs with progress on stderr."""
        with Bars() as bars, self._traced() as trace:
            values = algorithm(*arguments, **options, trace=trace, progress=bars)
            if self.page is not None and trace is not None:
                self.spans = report.spans_of(trace)
        return values

    @contextmanager
    def _traced(self) -> Iterator[Path | None]:
        """Where the timeline goes: to the user's file, or to one that a report is made of."""
        if self.page is None or self.trace is not None:
            yield self.trace
            return
        with TemporaryDirectory(prefix="tiergraph-") as folder:
            yield Path(folder) / "trace.json"

    def show(
        self,
        name: str,
        values: Values,
        summary: dict[str, Any],
        rows: list[tuple[int, Any]],
        hidden: Sequence[str] = (),
    ) -> None:
        """Writes the result file, then prints JSON, or the rows on stdout and figures on stderr.

        `rows` are positions and values; figures that are `hidden` are shown elsewhere.
        """
        run = self.graph.last_run | summary
        ids, names = self.graph.ids_of, self.graph.names
        if self.output is not None:
            results.write(self.output, ids, name, values, names)
            run["output"] = self.output
        self.graph.drop_checkpoint()
        found = [(int(ids(v, v + 1)[0]), x) for v, x in rows]
        texts = [{} if names is None else {"name": names[v]} for v, _ in rows]
        run["peak_rss_bytes"] = _native.peak_rss_bytes()
        if self.page is not None:
            report.write([report.of(run, self.spans)], self.page)
            run["report"] = str(self.page)
        if self.as_json:
            top = zip(found, texts, strict=True)
            print_json(run | {"top": [{"vertex": v} | text | {name: x} for (v, x), text in top]})
            return
        print_fields(without(run, *hidden), stderr=True)
        if rows:
            shown = zip(found, texts, strict=True)
            print_table(
                ("vertex", name),
                [(text.get("name", str(v)), readable(name, x)) for (v, x), text in shown],
            )

    def vertex(self, given: str) -> int:
        """The id of a vertex that an option gives: by name, where the graph has names."""
        return vertex_of(self.graph, given, "--source")


@with_flags_of(Run)
def pagerank(
    run: Run,
    damping: Annotated[float, typer.Option(min=0.0, max=1.0, help="Chance to follow an edge.")] = (
        0.85
    ),
    iterations: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many; default: 100.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Stop once ranks change by less in all; default: 1e-6, or none with --iterations.",
        ),
    ] = None,
    sources: Annotated[
        list[str] | None, typer.Option("--source", help="Personalise to this id; repeat for more.")
    ] = None,
    top: Top = 10,
) -> None:
    """PageRank (LDBC Graphalytics' definition); with --source, personalised."""
    ranks = run.measure(
        run.graph.pagerank,
        damping=damping,
        iterations=iterations,
        tolerance=tolerance,
        sources=[run.vertex(source) for source in sources] if sources else None,
    )
    run.show("rank", ranks, {}, results.top(ranks, top))


@with_flags_of(Run)
def wcc(run: Run, top: Top = 10) -> None:
    """Weakly connected components; lists the largest, each by its smallest vertex."""
    components = run.measure(run.graph.wcc, largest=top)
    measured = run.graph.last_run
    largest = measured.pop("largest")
    if run.as_json:
        measured["largest"] = [{"component": c, "vertices": n} for c, n in largest]
        run.show("component", components, {}, [])
        return
    sizes = measured["component_sizes"]
    run.show("component", components, {}, [], hidden=("component_sizes",))
    print_histogram("vertices", "components", [0, *sizes], stderr=True)
    print_table(("component", "vertices"), [(str(c), f"{n:,}") for c, n in largest])


@with_flags_of(Run)
def bfs(run: Run, source: Source, top: Top = 10) -> None:
    """Hops from one vertex to every other; --top lists the farthest."""
    start = run.vertex(source)
    depths = run.measure(run.graph.bfs, start)
    show_reached(run, start, ("depth", depths), lambda values: values >= 0, top)


@with_flags_of(Run)
def sssp(run: Run, source: Source, top: Top = 10) -> None:
    """Least total weight from one vertex to every other; --top lists the farthest."""
    start = run.vertex(source)
    distances = run.measure(run.graph.sssp, start)
    show_reached(run, start, ("distance", distances), np.isfinite, top)


def show_reached(
    run: Run, source: int, result: tuple[str, Values], is_reached: results.Mask, top: int
) -> None:
    """Shows what was reached, and the farthest of it."""
    name, values = result
    reached, farthest = results.counted(values, is_reached)
    summary = {"source": source, name: farthest, "reached": reached}
    run.show(name, values, summary, results.top(values, top, is_reached))
