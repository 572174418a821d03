"""What a run was made on, with no host name and no path in it."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
GIB = 1 << 30
LOAD_AT_START = os.getloadavg()[0]


def device() -> dict[str, object]:
    """Processor, cores, memory, the disk below the repository, and the system."""
    lscpu = dict(line.split(":", 1) for line in _output("lscpu").splitlines() if ":" in line)
    return {
        "cpu": lscpu.get("Model name", platform.machine()).strip(),
        "l2": lscpu.get("L2 cache", "").strip(),
        "l3": lscpu.get("L3 cache", "").strip(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_total(),
        "disk": _disk(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average_at_start": LOAD_AT_START,
    }


def label() -> str:
    """The machine in a folder's name, such as `2-core-xeon-2.50ghz-24gib`."""
    cpu = re.sub(r"\((R|TM)\)|CPU|Processor|Intel|AMD|@", " ", str(device()["cpu"]))
    words = "-".join(cpu.lower().split()) or platform.machine()
    return f"{os.cpu_count()}-core-{words}-{round(memory_total() / GIB)}gib"


def commit() -> str:
    """The repository's commit, with `-dirty` where the tree differs from it."""
    head = _output("git", "-C", str(ROOT), "rev-parse", "HEAD").strip()
    if not head:
        return "unknown"
    changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    return head + ("-dirty" if changed else "")


def memory_total() -> int:
    """Bytes of memory of the machine."""
    return _meminfo("MemTotal")


def memory_available() -> int:
    """Bytes that a process could take now without swapping."""
    return _meminfo("MemAvailable")


def drop_page_cache() -> str:
    """Empties the page cache if the user may; says what state it is in then."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except OSError:
        return "page cache not emptied: needs root"
    return "page cache emptied"


def _meminfo(key: str) -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    return 0


def _disk() -> dict[str, object]:
    source = _output("findmnt", "--noheadings", "--output", "SOURCE,FSTYPE", "--target", str(ROOT))
    if not source.split():
        return {}
    name, file_system = source.split()[:2]
    columns = _output("lsblk", "--noheadings", "--nodeps", "--output", "SIZE,ROTA,MODEL", name)
    size, rotational, *model = columns.split() or ["unknown", "unknown"]
    kind = Path(name).name
    return {
        "device": kind,
        "model": " ".join(model) or "none given",
        "size": size,
        "rotational": rotational == "1",
        "file_system": file_system,
    }


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def processor_seconds() -> float:
    """What this process has used so far, all its threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
