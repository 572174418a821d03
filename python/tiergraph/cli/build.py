"""`tiergraph build`: a graph from files of edges."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from .. import write
from . import build_options as b
from .options import Json, Memory, OutPath, Threads
from .output import print_fields, print_json
from .progress import Bars


def build(
    sources: Annotated[list[Path], typer.Argument(metavar="SOURCE...", help="Files of edges.")],
    out: OutPath,
    columns: Annotated[
        str | None,
        typer.Option(metavar="SRC,DST[,W]", help="Columns of a table; default: src, dst, weight."),
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="text, u32, u64, npy, graphalytics, adjacency, …"),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="auto|none|N|NAME", help="The weights' column in a text file."),
    ] = None,
    ids: Annotated[
        Literal["dense", "map"] | None,
        typer.Option(help="Ids are 0 to |V|-1, or any and stored."),
    ] = None,
    vertices: Annotated[
        int | None, typer.Option(min=1, help="|V|, where the last vertices have no edge.")
    ] = None,
    undirected: b.Undirected = None,
    dedup: b.Dedup = None,
    drop_self_loops: b.DropSelfLoops = None,
    order: b.Order = None,
    codec: b.Codec = None,
    layouts: b.Layouts = None,
    stripe: b.Stripe = None,
    block_bytes: b.BlockBytes = None,
    overwrite: b.Overwrite = None,
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Write OUT.tg from text, .npy, BVGraph, Parquet, Feather or Arrow files."""
    with Bars() as bars:
        stats = write.build(
            sources,
            out,
            progress=bars,
            columns=columns.split(",") if columns else None,
            vertices=vertices,
            format=file_format,
            weights=weights,
            ids=ids,
            undirected=undirected,
            dedup=dedup,
            drop_self_loops=drop_self_loops,
            order=order,
            codec=codec,
            layouts=layouts,
            stripe=b.directories(stripe),
            block_bytes=block_bytes,
            overwrite=overwrite,
            memory=memory,
            threads=threads,
        )
    if as_json:
        print_json(stats)
    else:
        print_fields(stats)
