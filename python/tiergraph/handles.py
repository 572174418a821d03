"""What a process opens for itself, and another one opens again.

Threads, rings of reads and GPU memory belong to one process. A forked child has none of them, and
what is pickled takes none along: both open their own when they first need it, by the same path.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .errors import DeviceError, InputError

Part = TypeVar("Part")


class Handle(Generic[Part]):
    """The native part of the `kind` (a graph, a loader) called `name`, as this process has it."""

    def __init__(self, kind: str, name: str) -> None:
        self._kind, self._name = kind, name
        self.device = "cpu"
        """Where the part is."""
        self._part: Part | None = None
        self._process = 0
        self.closed = False

    def get(self, make: Callable[[], Part]) -> Part:
        """What this process opened; `make` opens it where it has not yet.

        Raises `InputError` after `close`, and `DeviceError` in a forked child for what is on a GPU.
        """
        if self.closed:
            raise was_closed(self._kind, self._name)
        if self._part is None or self._process != os.getpid():
            self._check_fork()
            # The native part of a parent process leaves its threads and memory alone here.
            self._part, self._process = make(), os.getpid()
        return self._part

    def close(self) -> None:
        """Lets go of it: threads, files and memory, the GPU's too."""
        self._part, self.closed = None, True

    def _check_fork(self) -> None:
        """CUDA does not work in a child that was forked after its parent used it."""
        if self._part is not None and self.device != "cpu":
            raise DeviceError.of(
                f"use {self.device} in",
                "a forked process",
                expected="a process of its own",
                hint='start processes with `multiprocessing.get_context("spawn")`',
            )

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_part": None, "_process": 0}


def without(state: dict[str, Any], *names: str) -> dict[str, Any]:
    """What is pickled of an object's attributes: those but `names`, which are made again."""
    return {name: value for name, value in state.items() if name not in names}


def was_closed(kind: str, name: str) -> InputError:
    """For a call on what was closed before."""
    return InputError.of(
        f"use the {kind}",
        name,
        expected="an open one",
        got="one that was closed",
        hint="open it again",
    )
