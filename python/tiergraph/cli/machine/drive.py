"""`tiergraph drive`: raw NVMe drives that hold a graph, read past the kernel."""

from __future__ import annotations

from typing import Annotated

import typer

from ...machine import drives
from ...units import readable
from ..options import GraphPath, Json
from ..output import print_fields, print_json, print_table
from ..progress import Bars

app = typer.Typer(help="Raw NVMe drives that hold a graph.", no_args_is_help=True)

Addresses = Annotated[
    list[str],
    typer.Argument(metavar="ADDRESS...", help="Of the PCI bus: 0000:01:00.0; see drive list."),
]
Drives = Annotated[
    list[str],
    typer.Argument(
        metavar="DRIVE...",
        help="Addresses of the PCI bus (0000:01:00.0; see drive list) or devices (/dev/ng0n1).",
    ),
]


@app.callback()
def drive() -> None:
    """Raw NVMe drives that hold a graph."""


@app.command("list")
def list_drives(as_json: Json = False) -> None:
    """The NVMe drives of this machine, which driver has each, and why one cannot be taken."""
    found = drives.nvme_drives()
    if as_json:
        print_json({"drives": [drive._asdict() for drive in found]})
        return
    rows = [
        (
            drive.address,
            drive.model or "",
            readable("bytes", drive.bytes) if drive.bytes is not None else "",
            drive.driver,
            ", ".join(drive.devices + drive.partitions),
            "no" if drive.why_not else "yes",
        )
        for drive in found
    ]
    print_table(("address", "model", "size", "driver", "devices", "free"), rows)
    for drive in found:
        if drive.why_not:
            print(f"{drive.address}: {drive.why_not.splitlines()[0]}")


@app.command("write")
def write(
    graph: GraphPath,
    addresses: Drives,
    force: Annotated[
        bool, typer.Option("--force", help="Write drives that hold something, which is lost.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a graph's blocks to raw drives. EVERYTHING THAT IS ON THEM IS LOST.

    The directory stays: commands are given it, with --io nvme:ADDRESS (several by commas) or
    --io passthrough:/dev/ng0n1, whichever of both wrote the drives.
    """
    with Bars() as bars:
        written = drives.write_drives(graph, addresses, force=force, progress=bars)
    fields = {"graph": str(graph), "bytes": written, "io": drives.engine_of(addresses)}
    (print_json if as_json else print_fields)(fields)


@app.command("release")
def release(addresses: Addresses) -> None:
    """Give drives back to the kernel that a killed process has left with vfio-pci."""
    for address in addresses:
        drives.release_drive(address)
