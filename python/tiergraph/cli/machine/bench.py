"""`tiergraph bench`: what this machine's drives, and its GPU and the link to it, give bare."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ... import _native
from ...arguments.checks import one
from ...arguments.sizes import to_bytes
from ...devices import find_libraries
from ...errors import InputError
from ...units import readable
from ..options import Json, Threads
from ..output import print_json, print_table

app = typer.Typer(help="Measure this machine.", no_args_is_help=True)

ROW_BYTES = 4096
"""Of the rows by which a link is rated in plans."""


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
    part = drive_of(rows)
    if as_json:
        print_json({"measured": rows, "part": part})
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
    print_part("drives.here", part)


def depths_of(text: str) -> list[int]:
    """Numbers of reads in flight, by commas."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter("--depth takes whole numbers by commas, such as 1,8,32") from error
    return [one("depth", number) for number in numbers]


def drive_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The drive that was read, as catalogues of parts have drives."""
    rates: dict[str, int] = {}
    for row in rows:
        size = str(row["block_bytes"])
        rates[size] = max(rates.get(size, 0), round(row["iops"]))
    shallow = min(rows, key=lambda row: (row["depth"], row["block_bytes"]))
    at_once = shallow["depth"] * shallow["threads"]
    return {
        "name": "the drive that was measured",
        "bytes_per_second": round(max(row["bandwidth"] for row in rows)),
        "reads_per_second": rates,
        "latency_us": round(1e6 * at_once / shallow["iops"], 1),
        "source": "tiergraph bench io",
    }


@app.command("gpu")
def gpu(
    device: Annotated[str, typer.Option(help="cuda, or cuda:N.")] = "cuda",
    table: Annotated[
        str, typer.Option(metavar="SIZE", help="Bytes that are read, in either memory.")
    ] = "256MiB",
    seconds: Annotated[float, typer.Option(min=0.001, help="Time for each measurement.")] = 0.2,
    as_json: Json = False,
) -> None:
    """What a GPU, its memory and the link to it give bare: copies, and rows that kernels gather."""
    kind, _, number = one("device", device).partition(":")
    if kind != "cuda":
        raise InputError.of("measure", device, expected="`cuda` or `cuda:N`")
    table_bytes = to_bytes(table) or 0
    if table_bytes < 1 << 20:
        raise InputError.of("measure on a table of", table, expected="1MiB or more")
    find_libraries()
    speeds = json.loads(_native.bench_gpu(int(number or 0), table_bytes, seconds))
    rated = next(row for row in speeds["rows"] if row["row_bytes"] == ROW_BYTES)
    part = {
        "name": f"this machine, with an {speeds['device']}",
        "link_bytes_per_second": round(rated["from_host"]),
        "source": "tiergraph bench gpu",
    }
    if as_json:
        print_json(speeds | {"part": part})
        return
    rows = [("copies, fills", speeds["copy_to_device"], speeds["fill_device"])]
    for row in speeds["rows"]:
        rows.append((f"rows of {row['row_bytes']} bytes", row["from_host"], row["from_device"]))
    print_table(
        (speeds["device"], "from host memory", "in its own"),
        [(name, *(readable("bandwidth", speed) for speed in both)) for name, *both in rows],
    )
    print(f"A fill of a few bytes every {1e6 * speeds['submission_seconds']:.1f} us.")
    print_part("machines.here", part)


def print_part(section: str, part: dict[str, Any]) -> None:
    """What was measured, as a part that `tiergraph plan --parts` takes."""
    print("\nFor a catalogue of parts (`tiergraph plan`; what is not measured is left to you):")
    print(f"[{section}]")
    for name, value in part.items():
        text = json.dumps(value)
        if isinstance(value, dict):
            text = f"{{ {', '.join(f'{size} = {rate}' for size, rate in value.items())} }}"
        print(f"{name} = {text}")
