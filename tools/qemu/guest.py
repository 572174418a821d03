"""Runs a command as root in a virtual machine that sees this machine's files and has NVMe drives.

The guest boots a kernel of its own, and its root file system is this machine's, through 9P and
below a layer in memory: it reads the clone, its virtual environment and everything else, and what
it writes is gone with it. Its drives are empty, sit behind root ports of their own and a virtual
IOMMU, so that VFIO can hand them to a process, and belong to the kernel's NVMe driver at first.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .kernel import CLONE, archive, kernel

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MIB = 1 << 20
SECONDS = 600.0
"""A limit against hangs only: the checks take one minute on fast machines, two on slow ones."""
MEMORY_MIB = 1280
HUGE_PAGES = 64

BOOT_OPTIONS = (
    "console=ttyS0 quiet panic=-1 intel_iommu=on mitigations=off tsc=reliable no_timer_check"
)

START = "QEMU-GUEST-START\n"
STATUS = re.compile(r"\nQEMU-GUEST-STATUS (\d+)\n")
"""What `init.sh` prints around the command's output."""


@dataclass(frozen=True)
class Drive:
    """An emulated NVMe controller with one empty namespace."""

    serial: str
    """No two drives of a guest have the same."""
    block_bytes: int = 512
    """Bytes of a logical block."""
    mdts: int = 7
    """Maximum data transfer size: a command moves at most 2^mdts times 4 KiB."""
    mebibytes: int = 256
    queues: int = 8
    """Most pairs of I/O queues that the controller gives."""


DRIVES = (Drive("tiergraph-512"), Drive("tiergraph-4096", block_bytes=4096, mdts=3))


@dataclass(frozen=True)
class Outcome:
    """How a command ended in a guest."""

    output: str
    """Standard output and standard error, and what the kernel said meanwhile."""
    status: int


class GuestError(Exception):
    """A guest ended, or was ended, before its command did."""


def boot(
    command: Sequence[str], *, drives: Sequence[Drive] = DRIVES, seconds: float = SECONDS
) -> Outcome:
    """Boots a guest, runs `command` in the clone, and prints what the guest says as it says it.

    The first boot downloads a kernel. Raises `UnavailableError` where this machine lacks something
    that a guest needs, and `GuestError` where the command did not end within `seconds` of the boot.
    """
    with tempfile.TemporaryDirectory(prefix="tiergraph-qemu-") as folder:
        said = _run(_machine(Path(folder), command, drives), seconds)
    ended = list(STATUS.finditer(said))
    if not ended:
        raise GuestError(
            f"cannot run `{shlex.join(command)}` in a guest: expected its status within "
            f"{seconds:g} s, got none"
        )
    output = said[said.index(START) + len(START) : ended[-1].start()]
    return Outcome(output, int(ended[-1][1]))


def _run(machine: Sequence[str], seconds: float) -> str:
    """What a machine prints, which is printed here, too; it ends in time, or with this process."""
    with_parent = ("setpriv", "--pdeathsig", "TERM")
    in_time = ("timeout", "--kill-after=5", str(seconds))
    said = []
    with subprocess.Popen(
        [*with_parent, *in_time, *machine],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
                said.append(line)
        finally:
            process.terminate()
    return "".join(said)


def _machine(folder: Path, command: Sequence[str], drives: Sequence[Drive]) -> list[str]:
    """QEMU's command line for one guest, whose files are made in `folder`."""
    found = kernel()
    initramfs = folder / "initramfs.cpio"
    initramfs.write_bytes(found.initramfs.read_bytes() + _boot_files(folder / "root", command))
    return [
        "qemu-system-x86_64",
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"),
        *("-machine", "q35,kernel-irqchip=split", "-smp", "2", "-m", f"{MEMORY_MIB}M"),
        # Emulated everywhere: guests of a guest may hang, and minutes are enough.
        *("-accel", "tcg,thread=multi", "-cpu", "max"),
        *("-kernel", str(found.image), "-initrd", str(initramfs)),
        *("-append", f"{BOOT_OPTIONS} hugepages={HUGE_PAGES} drives={len(drives)}"),
        *("-device", "intel-iommu,intremap=on"),
        # Other file systems may be mounted below `/`: their inode numbers are told apart.
        *("-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap"),
        *("-device", "virtio-9p-pci,fsdev=host,mount_tag=host"),
        *(word for number, drive in enumerate(drives) for word in _drive(folder, number, drive)),
    ]


def _boot_files(root: Path, command: Sequence[str]) -> bytes:
    """An archive of the guest's first process, and of the script that it runs."""
    root.mkdir()
    shutil.copy(Path(__file__).with_name("init.sh"), root / "init")
    (root / "init").chmod(0o755)
    path = f"{Path(sys.executable).parent}:{SYSTEM_PATH}"
    (root / "command").write_text(
        f"export HOME=/root LANG=C.UTF-8 PYTHONUNBUFFERED=1 PATH={shlex.quote(path)}\n"
        f"cd {shlex.quote(str(CLONE))} && exec {shlex.join(command)}\n"
    )
    return archive(root)


def _drive(folder: Path, number: int, drive: Drive) -> list[str]:
    """QEMU's options for a drive behind its own root port; its file is sparse and not synced."""
    image = folder / f"{drive.serial}.img"
    image.touch()
    os.truncate(image, drive.mebibytes * MIB)
    limits = f"mdts={drive.mdts},max_ioqpairs={drive.queues}"
    return [
        *("-drive", f"file={image},if=none,id=image{number},format=raw,cache=unsafe"),
        *("-device", f"pcie-root-port,id=port{number},chassis={number}"),
        *("-device", f"nvme,id=nvme{number},bus=port{number},serial={drive.serial},{limits}"),
        "-device",
        f"nvme-ns,bus=nvme{number},drive=image{number},logical_block_size={drive.block_bytes}"
        f",physical_block_size={drive.block_bytes}",
    ]
