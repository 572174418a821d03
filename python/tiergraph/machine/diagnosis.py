"""What this machine gives tiergraph, what is missing, what that costs, and how to get it."""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .. import _native, devices
from ..arguments.calls import checked
from ..errors import DeviceError
from .drives import nvme_drives

MIB = 1 << 20
LOCKED_BYTES = 64 * MIB
"""Of locked memory, what two threads that read from two drives need, and some more."""


class Finding(NamedTuple):
    """One thing that tiergraph can use."""

    name: str
    works: bool
    found: str
    """What is there, or why it does not work."""
    without: str
    """What tiergraph does without it."""
    hint: str
    """How to get it."""


@checked
def doctor(path: str | os.PathLike[str] = ".") -> list[Finding]:
    """Looks at everything that tiergraph can use; `path` is a folder on the drive to be asked.

    Writes a file of a page there for a moment, and changes nothing else. Raises `IoError` where the
    folder cannot be written.
    """
    return [Finding(*fields) for find in FINDERS for fields in find(Path(path))]


Fields = tuple[str, bool, str, str, str]


def _io_uring(_: Path) -> Iterator[Fields]:
    reason = _native.why_not("io_uring")
    yield (
        "io_uring",
        reason is None,
        reason or "the kernel takes rings",
        "files are read by blocking calls on threads, with more CPU time",
        "a newer Linux, sysctl kernel.io_uring_disabled=0; containers: allow it in seccomp",
    )


def _direct_reads(folder: Path) -> Iterator[Fields]:
    found, works = "the file system takes O_DIRECT", True
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".tiergraph-doctor-") as file:
            file.write(bytes(4096))
            file.flush()
            os.close(os.open(file.name, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        found, works = f"{error.strerror} ({folder})", False
    yield (
        "direct reads",
        works,
        found,
        "reads go through the page cache, which copies and evicts",
        "put graphs on ext4, XFS or Btrfs; older tmpfs and overlays refuse",
    )


def _huge_pages(_: Path) -> Iterator[Fields]:
    setting = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    chosen = setting.partition("[")[2].partition("]")[0] or "not there"
    yield (
        "huge pages",
        chosen in ("always", "madvise"),
        f"transparent huge pages: {chosen}",
        "buffers lie on 4 KiB pages, which drives and processors are slower with",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root",
    )


def _locked_memory(_: Path) -> Iterator[Fields]:
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    is_free = limit == resource.RLIM_INFINITY
    yield (
        "locked memory",
        is_free or limit >= LOCKED_BYTES,
        "no limit" if is_free else _native.format_size(limit),
        "raw NVMe drives (--io nvme:) cannot reach this process's memory",
        "ulimit -l unlimited, as root; containers: --ulimit memlock=-1",
    )


def _memory(_: Path) -> Iterator[Fields]:
    free, limit = _native.free_memory(), _cgroup_limit()
    of_limit = "no cgroup limits it" if limit is None else f"of {_native.format_size(limit)}"
    yield (
        "memory",
        free > 256 * MIB,
        f"{_native.format_size(free)} free, {of_limit}",
        "large graphs need vertex state of a few bytes a vertex in memory",
        "end other programs, or raise the limit of the cgroup or container",
    )


def _gpu(_: Path) -> Iterator[Fields]:
    devices.find_libraries()
    try:
        found = ", ".join(device.name for device in devices.cuda_devices())
        works, reason = bool(found), found or "the driver knows no GPU"
    except DeviceError as error:
        works, reason = False, _first_line(str(error))
    yield (
        "NVIDIA GPU",
        works,
        reason,
        "everything runs on the CPU",
        "install a driver for CUDA 12.0 or newer; containers: --gpus all",
    )
    missing = _native.why_not("nvrtc")
    yield (
        "CUDA compiler",
        missing is None,
        _first_line(missing) if missing else "NVRTC is there",
        "kernels cannot be compiled, so that nothing runs on a GPU",
        "pip install nvidia-cuda-nvrtc (PyTorch brings it)",
    )


def _direct_to_gpu(_: Path) -> Iterator[Fields]:
    devices.find_libraries()
    missing = _native.why_not("cufile")
    yield (
        "cuFile",
        missing is None,
        _first_line(missing) if missing else "GPUDirect Storage's library is there",
        "blocks reach a GPU through pinned memory of the host (transfers='direct' is refused)",
        "pip install nvidia-cufile-cu12 or nvidia-cufile; nvidia-fs or Linux 6.2 for direct reads",
    )
    device = Path("/dev/udmabuf")
    usable = os.access(device, os.R_OK | os.W_OK)
    yield (
        "udmabuf",
        usable,
        f"{device} can {'' if usable else 'not '}be used",
        "drives that a GPU asks write to pinned memory of the host, and not to the GPU's",
        "modprobe udmabuf, as root; give the user /dev/udmabuf",
    )


def _drives(_: Path) -> Iterator[Fields]:
    found = nvme_drives()
    free = [drive.address for drive in found if drive.why_not is None]
    yield (
        "NVMe drives",
        bool(found),
        f"{len(found)}, of which a process could have: {', '.join(free) or 'none'}",
        "graphs lie in files, which the kernel reads",
        "tiergraph drive list says what uses each",
    )
    groups = Path("/sys/kernel/iommu_groups")
    yield (
        "IOMMU",
        groups.is_dir() and any(groups.iterdir()),
        "on" if groups.is_dir() and any(groups.iterdir()) else "none that is on",
        "raw NVMe drives cannot be read past the kernel",
        "switch on VT-d or AMD-Vi in the firmware, and boot with intel_iommu=on",
    )
    driver = Path("/sys/bus/pci/drivers/vfio-pci").is_dir()
    reachable = os.access("/dev/vfio/vfio", os.R_OK | os.W_OK)
    yield (
        "VFIO",
        driver and reachable,
        f"vfio-pci is {'' if driver else 'not '}loaded, "
        f"/dev/vfio/vfio can {'' if reachable else 'not '}be used",
        "raw NVMe drives cannot be read past the kernel",
        "modprobe vfio-pci, as root; run as root or give the user /dev/vfio",
    )


def _passthrough(_: Path) -> Iterator[Fields]:
    found = sorted(Path("/dev").glob("ng*n*"))
    usable = [str(device) for device in found if os.access(device, os.R_OK)]
    polled = _read("/sys/module/nvme/parameters/poll_queues").strip() not in ("", "0")
    names = ", ".join(usable) or "none"
    yield (
        "NVMe passthrough",
        bool(usable),
        f"{len(found)} devices (/dev/ng*), of which this user can read: {names}"
        + (", polled" if polled and usable else ""),
        "raw NVMe drives are read only by a process that takes them from the kernel (--io nvme:)",
        "run as root or give the user /dev/ng*; nvme.poll_queues=4 at boot has them polled",
    )


def _gpu_reads(folder: Path) -> Iterator[Fields]:
    needed = ("NVIDIA GPU", "CUDA compiler", "NVMe drives", "IOMMU", "VFIO")
    found = (fields for find in (_gpu, _drives) for fields in find(folder))
    missing = [name for name, works, *_ in found if name in needed and not works]
    yield (
        "GPU-initiated reads",
        not missing,
        f"lacks: {', '.join(missing)}" if missing else "untested on hardware so far",
        "kernels read rows from threads in a drive's place (--io gpu), not from raw NVMe drives",
        "what is lacking is explained above; kernels read drives by --io gpu:ADDRESS",
    )


FINDERS: tuple[Callable[[Path], Iterator[Fields]], ...] = (
    _io_uring,
    _direct_reads,
    _huge_pages,
    _locked_memory,
    _memory,
    _gpu,
    _direct_to_gpu,
    _drives,
    _passthrough,
    _gpu_reads,
)


def _cgroup_limit() -> int | None:
    """Bytes that cgroups (version 2) allow this process, the least of all; None without a limit."""
    relative = _read("/proc/self/cgroup").rpartition("::/")[2].strip()
    root = Path("/sys/fs/cgroup")
    folders = [root / relative, *(root / relative).parents]
    texts = (_read(str(folder / "memory.max")).strip() for folder in folders)
    return min((int(text) for text in texts if text.isdigit()), default=None)


def _read(path: str) -> str:
    """A file of the kernel's; empty where it cannot be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0]
