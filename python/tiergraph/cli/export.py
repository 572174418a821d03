"""`tiergraph export | walks`: edges, and walks along them, as files for other software."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .. import graph as tg
from .. import results
from ..errors import InputError
from .options import GraphPath, Io, Json, Memory, Threads, vertex_of
from .output import print_fields, print_json
from .progress import Bars


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


def walks(
    graph: GraphPath,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help=".parquet or .arrow.")
    ],
    starts: Annotated[
        list[str] | None,
        typer.Option("--start", help="A vertex to start from; repeat for more. Default: all."),
    ] = None,
    length: Annotated[int, typer.Option(min=1, max=2**20, help="Steps of a walk.")] = 80,
    repeat: Annotated[int, typer.Option(min=1, help="Walks from each vertex.")] = 1,
    p: Annotated[float, typer.Option(help="node2vec's return parameter.")] = 1.0,
    q: Annotated[float, typer.Option(help="node2vec's in-out parameter.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Another number gives other walks.")] = 0,
    memory: Memory = None,
    io: Io = "auto",
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Random walks: a row a walk, the ids of its vertices in a list."""
    path = results.check_suffix(str(output))
    if Path(path).suffix.lower() not in (".parquet", ".arrow"):
        raise InputError.of("write walks to", path, expected="`.parquet` or `.arrow`")
    pyarrow = results.pyarrow_for("write", path)
    schema = pyarrow.schema([("walk", pyarrow.list_(pyarrow.uint64(), length + 1))])
    with tg.open(graph, memory=memory, io=io, threads=threads) as opened, Bars() as bars:
        from_all = starts is None or not starts
        ids = None if from_all else [vertex_of(opened, start, "--start") for start in starts or []]
        seconds = count = 0.0

        def tables() -> Iterator[Any]:
            nonlocal seconds, count
            for batch in opened.random_walks(
                ids, length=length, repeat=repeat, p=p, q=q, seed=seed, progress=bars
            ):
                seconds += opened.last_run["seconds"]
                count += len(batch)
                flat = pyarrow.array(np.ascontiguousarray(batch).ravel())
                lists = pyarrow.FixedSizeListArray.from_arrays(flat, length + 1)
                yield pyarrow.table([lists], schema=schema)

        results.write_tables(path, schema, tables(), ["walk"])
        run = {
            "graph": opened.path,
            "walks": int(count),
            "vertices_of_a_walk": length + 1,
            "seconds": seconds,
            "output": path,
        }
    if as_json:
        print_json(run)
    else:
        print_fields(run)
