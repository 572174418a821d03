"""Graphs on raw NVMe drives, which a process reads by commands of its own, past the file system.

A drive that holds a graph has no file system: `write_drives` replaces whatever is on it. A process
takes the drive from the kernel's driver to read it by queue pairs of its own
(`open(..., io="nvme:0000:01:00.0")`), or leaves it there and has its commands passed on
(`io="passthrough:/dev/ng0n1"`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from os import PathLike
from typing import NamedTuple

from .. import _native
from ..arguments.calls import checked


class NvmeDrive(NamedTuple):
    """An NVMe drive of this machine."""

    address: str
    """On the PCI bus: `0000:01:00.0`."""
    model: str | None
    """As the kernel's driver knows it; None while that does not have the drive."""
    bytes: int | None
    """Its size; None while the kernel's driver does not have it."""
    driver: str
    """Who has it: `nvme` (the kernel), `vfio-pci` (a process may have it), `none` or another."""
    devices: list[str]
    """The kernel's block devices on it, such as `nvme0n1`."""
    partitions: list[str]
    why_not: str | None
    """Why a process cannot have it now: something is mounted, for example."""


@checked
def nvme_drives() -> list[NvmeDrive]:
    """The NVMe drives of this machine, by their address on the PCI bus."""
    return [NvmeDrive(**drive) for drive in json.loads(_native.drives())]


@checked
def write_drives(
    graph: str | PathLike[str],
    addresses: list[str],
    *,
    force: bool = False,
    progress: Callable[[str, int, int, str], None] | None = None,
) -> int:
    """Writes the blocks of the graph directory `graph` to raw NVMe drives; returns their bytes.

    `addresses` are of the PCI bus (`"0000:01:00.0"`; `nvme_drives` lists them), or all of them
    devices of drives that stay with the kernel (`"/dev/ng0n1"`). Several drives get parts of every
    file in turn and are then named together. **Everything that is on them is lost.** A drive that
    holds anything is refused unless `force` is set, and one that is mounted or otherwise in use
    always. The directory stays, and is what `open` is given: the manifest and the indexes are read
    from there, the blocks from the drives.

    Needs root and, for addresses, an IOMMU and the kernel's module `vfio-pci`.
    `progress(stage, done, total, unit)` is called now and then. Raises `InputError` for drives that
    are refused, `FormatError` for a directory that is no graph, `IoError` where the system or a
    drive fails: the drives then hold no graph.
    """
    return _native.write_drives(os.fspath(graph), addresses, force, progress)


def engine_of(addresses: list[str]) -> str:
    """The name of the engine that reads the drives which `write_drives` writes for these words."""
    is_device = any(address.startswith("/") for address in addresses)
    return f"{'passthrough' if is_device else 'nvme'}:{','.join(addresses)}"


@checked
def release_drive(address: str) -> None:
    """Gives the NVMe drive at `address` to the kernel's driver, where a process left it without.

    Needed only after a process and its keeper were both killed. Needs root. Raises `InputError` for
    an address of no NVMe drive, `IoError` where the system refuses.
    """
    _native.release_drive(address)
