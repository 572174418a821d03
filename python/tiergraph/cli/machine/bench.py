"""`tiergraph bench io`: what the read engines reach on a file or directory of this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from ... import _native
from ...arguments.checks import one
from ...arguments.sizes import to_bytes
from ...units import readable
from ..options import Json, Threads
from ..output import print_json, print_table

app = typer.Typer(help="Measure this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure this machine."""


@app.command("io")
def io(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A graph or a large file.")],
    engines: Annotated[str, typer.Option("--io", help="Engines, by commas.")] = "posix,uring",
    blocks: Annotated[
        str, typer.Option("--block-size", help="Bytes a read, by commas.")
    ] = "4KiB,64KiB,1MiB",
    depths: Annotated[str, typer.Option("--depth", help="Reads in flight, by commas.")] = "1,8,32",
    seconds: Annotated[float, typer.Option(min=0.01, help="Time for each measurement.")] = 1.0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Random reads past the page cache, by engine, block size and depth."""
    sizes = [size for text in blocks.split(",") if (size := to_bytes(text)) is not None]
    rows = [
        json.loads(_native.bench_io(os.fspath(path), engine, size, depth, threads, seconds))
        for engine in engines.split(",")
        for size in sizes
        for depth in depths_of(depths)
    ]
    if as_json:
        print_json(rows)
        return
    print_table(
        ("engine", "block", "depth", "bandwidth", "reads/s"),
        [
            (
                row["engine"],
                readable("bytes", row["block_bytes"]),
                str(row["depth"]),
                readable("bandwidth", row["bandwidth"]),
                f"{row['iops']:,.0f}",
            )
            for row in rows
        ],
    )


def depths_of(text: str) -> list[int]:
    """Numbers of reads in flight, by commas."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter("--depth takes whole numbers by commas, such as 1,8,32") from error
    return [one("depth", number) for number in numbers]
