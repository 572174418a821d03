"""Commands in a memory cgroup, whose limit the kernel kills for."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
from common.cgroup import MemoryGroup

NUMBERS = itertools.count()

MODULES = "tiergraph.cli, numpy, pyarrow.parquet, pyarrow.dataset"
"""What a command has loaded before it begins, and what the promise of `--memory` is beside."""

PEAK = """
import ctypes, re, tiergraph
def peak():
    path, page = tiergraph._native.__file__, 4096
    with open("/proc/self/maps") as maps:
        mapped = [line.split()[:2] for line in maps if line.rstrip().endswith(path)]
    for span, rights in mapped:
        begin, end = (int(number, 16) for number in span.split("-"))
        for address in range(begin, end if "r" in rights else begin, page):
            ctypes.string_at(address, 1)
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) * 1024
"""
"""Most memory of a process, with the native part's code, all of which may come to run."""


@dataclass
class Limited:
    """How a process ended that a limit was set to."""

    killed: bool
    code: int
    out: str
    err: str
    peak_bytes: int
    """The most memory of the group, the page cache included."""


def run(command: list[Any], limit: int) -> Limited:
    """Runs a command within `limit` bytes; skips the test where the system has no such limits."""
    group = MemoryGroup.create(limit, f"tiergraph-test-{os.getpid()}-{next(NUMBERS)}")
    if isinstance(group, str):
        pytest.skip(group)
    try:
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=group.enter,
        )
        peak = group.peak_bytes() or 0
    finally:
        group.remove()
    return Limited(done.returncode == -9, done.returncode, done.stdout, done.stderr, peak)


def tiergraph(*arguments: Any, limit: int) -> Limited:
    """Runs the command line within `limit` bytes."""
    return run([sys.executable, "-m", "tiergraph", *arguments], limit)


@cache
def loaded_bytes(modules: str = MODULES) -> int:
    """What a process takes that does nothing but load `modules`, its native code included."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {modules}\n{PEAK}\nprint(peak())"],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)
