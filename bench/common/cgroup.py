"""A memory limit that the kernel holds a process and its page cache to: cgroup v1 or v2."""

from __future__ import annotations

import os
from pathlib import Path

V1 = Path("/sys/fs/cgroup/memory")
V2 = Path("/sys/fs/cgroup")
NAME = "tiergraph-bench"


class MemoryGroup:
    """A cgroup of `limit` bytes; `MemoryGroup.create` makes it, `remove` takes it away."""

    def __init__(self, path: Path, peak: str, kind: str) -> None:
        self._path = path
        self._peak = peak
        self.kind = kind

    @classmethod
    def create(cls, limit: int, name: str = NAME) -> MemoryGroup | str:
        """The group, or why there is none."""
        if (V1 / "memory.limit_in_bytes").exists():
            path, limit_file, peak = V1 / name, "memory.limit_in_bytes", "memory.max_usage_in_bytes"
            kind = "cgroup v1, memory.limit_in_bytes"
        elif (V2 / "cgroup.controllers").exists():
            path, limit_file, peak = V2 / name, "memory.max", "memory.peak"
            kind = "cgroup v2, memory.max, no swap"
        else:
            return "no memory cgroup is mounted"
        try:
            if path.exists():
                path.rmdir()
            if path.parent == V2:
                (V2 / "cgroup.subtree_control").write_text("+memory")
            path.mkdir()
            (path / limit_file).write_text(str(limit))
            if (path / "memory.swap.max").exists():
                (path / "memory.swap.max").write_text("0")
        except OSError as error:
            return f"no permission to make a memory cgroup ({error.strerror}); needs root"
        return cls(path, peak, kind)

    def enter(self, process: int | None = None) -> None:
        """Puts a process, the calling one by default, into the group.

        What is in its memory by then is not counted there.
        """
        (self._path / "cgroup.procs").write_text(str(process or os.getpid()))

    def peak_bytes(self) -> int | None:
        """The most memory so far, page cache included; None where the kernel does not tell."""
        try:
            return int((self._path / self._peak).read_text())
        except FileNotFoundError:
            return None

    def remove(self) -> None:
        """Takes the group away; its processes have ended."""
        self._path.rmdir()
