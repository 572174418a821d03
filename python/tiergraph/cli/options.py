"""The flags that several commands share, each worded once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..arguments.checks import MOST_THREADS
from ..errors import InputError
from ..graph import Graph

GraphPath = Annotated[Path, typer.Argument(metavar="GRAPH.tg", help="A graph directory.")]
OutPath = Annotated[Path, typer.Argument(metavar="OUT.tg", help="The graph to write.")]
Memory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Bound of resident memory: 2GiB, 512M or bytes."),
]
Io = Annotated[
    str,
    typer.Option(
        "--io",
        metavar="ENGINE",
        help="Read engine: auto, uring, posix, nvme:ADDRESS, passthrough:/dev/ng0n1, "
        "modelled:DRIVE*N, or gpu: kernels start what reads they can.",
    ),
]
Threads = Annotated[
    int | None, typer.Option(min=1, max=MOST_THREADS, help="Worker threads; default: all cores.")
]
Device = Annotated[
    str, typer.Option(metavar="DEVICE", help="Where to compute: cpu, cuda, cuda:N or auto.")
]
DeviceMemory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Bound of GPU memory; default: nine tenths of the free."),
]
Transfers = Annotated[
    Literal["async", "sync", "direct"],
    typer.Option(help="How blocks reach a GPU: overlapped, one by one, or by cuFile."),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where the run leaves its state, to go on from if killed."),
]
CheckpointEvery = Annotated[
    str,
    typer.Option(metavar="K|TIME", help="How often: after K iterations, or 90s, 5min, 2h."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from --checkpoint, if one is there.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object with everything measured.")
]
Ceiling = Annotated[
    bool, typer.Option("--ceiling", help="Measure around the run what bare reads reach.")
]
Trace = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write the run's timeline (Chrome trace; opens in Perfetto)."
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE.html",
        help="Write a page of the run: timeline, bandwidth, convergence. Needs tiergraph[report].",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the result: .parquet, .arrow, .csv or .npy."
    ),
]
Top = Annotated[int, typer.Option(min=0, help="How many to list.")]


def vertex_of(graph: Graph, given: str, flag: str) -> int:
    """The id of a vertex that an option gives: by name, where the graph has names."""
    if graph.names is not None:
        return graph.names.find(given)
    if not given.isascii() or not given.isdigit():
        expected = "a vertex id, a whole number from 0 to 2^64 - 1"
        raise InputError.of("use", f"{flag} {given}", expected=expected)
    return int(given)
