"""`tiergraph export`: a graph's edges as a file that other software reads."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from .. import graph as tg
from .options import GraphPath, Io, Json, Memory, Threads
from .output import print_fields, print_json


def export(
    graph: GraphPath,
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="OUT.parquet, .csv, .txt, .mtx, .npz or .graph (METIS)"),
    ],
    memory: Memory = None,
    io: Io = "auto",
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Write a graph's edges to a file: Parquet, CSV, text, Matrix Market, SciPy or METIS."""
    started = time.perf_counter()
    with tg.open(graph, memory=memory, io=io, threads=threads) as opened:
        opened.export(out)
        edges = opened.edges
    done = {
        "output": str(out),
        "edges": edges,
        "bytes_written": out.stat().st_size,
        "seconds": time.perf_counter() - started,
    }
    if as_json:
        print_json(done)
    else:
        print_fields(done)
