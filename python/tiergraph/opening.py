"""How a graph is opened, in this process and in others."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from . import _native
from .arguments import words
from .arguments.checks import interval
from .arguments.sizes import to_bytes
from .devices import options, resolve
from .errors import InputError
from .handles import Handle

Transfers: TypeAlias = Literal["async", "sync", "direct"]

CHECKPOINT_EVERY = "5min"
"""How often runs leave checkpoints, unless they are told."""

IDENTITY = ("vertices", "edges", "arcs", "directed", "weights", "codec", "order", "source")
"""What stays the same of a graph whatever is added to it."""


@dataclass
class Opening:
    """A graph's path and the options of `tiergraph.open`, and what this process opened so."""

    path: str
    memory: int | str | None
    io: str
    threads: int | None
    device: str
    device_memory: int | str | None
    transfers: Transfers
    device_residency: bool = True
    checksums: bool = True
    modelled_bandwidth: int | str | None = None
    checkpoint: str | None = None
    """The folder of the checkpoints of runs; None: runs leave none."""
    checkpoint_every: int | str = CHECKPOINT_EVERY
    """From one to the next: iterations, or a time."""
    resume: bool = False
    """Whether runs go on from the checkpoints that are there."""
    for_run: bool = False
    """Whether there is one run: it refuses too little memory, and names all that it needs."""
    device_why: str = ""
    """Why algorithms run where they do."""
    _handle: Handle[_native.Graph] = field(init=False, repr=False)
    _identity: dict[str, Any] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if self.resume and self.checkpoint is None:
            raise InputError.of("resume", expected="`--checkpoint DIR`", got="none")
        if self.checkpoint_every != CHECKPOINT_EVERY and self.checkpoint is None:
            every = words.named("checkpoint_every", self.checkpoint_every)
            raise InputError.of("use", every, expected="`--checkpoint DIR`", got="none")
        of_gpus = {"device_memory": None, "device_residency": True, "transfers": "async"}
        for name, usual in of_gpus.items():
            if self.device == "cpu" and getattr(self, name) != usual:
                raise InputError.of(
                    "use",
                    words.named(name, getattr(self, name)),
                    expected="a GPU to run on",
                    got="`--device cpu`",
                    hint="give `--device cuda`, or `--device auto`, which takes a GPU if any",
                )
        self._handle = Handle("graph", self.path)

    @property
    def native(self) -> _native.Graph:
        """The opened graph."""
        return self._handle.get(self._open)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._handle.closed

    @property
    def ordinal(self) -> int | None:
        """The number of the GPU that algorithms run on; None on the CPU."""
        device = resolve(self.device)[0]
        return None if device == "cpu" else int(device.partition(":")[2] or 0)

    def close(self) -> None:
        """Lets go of what was opened."""
        self._handle.close()

    def _open(self) -> _native.Graph:
        device, self.device_why = resolve(self.device)
        if self.modelled_bandwidth is not None and self.transfers == "direct" and device != "cpu":
            raise InputError.of(
                "model a drive for transfers",
                self.transfers,
                expected="`async` or `sync`: nothing holds back what cuFile reads",
            )
        self._handle.device = device
        place = options(
            device, self.device_memory, self.transfers, self.device_residency, self.checksums
        )
        bandwidth = to_bytes(self.modelled_bandwidth)
        # One run leaves its memory to what writes the result.
        keep_freed = not self.for_run
        opened = _native.open(
            self.path, to_bytes(self.memory), self.io, self.threads, bandwidth, place, keep_freed
        )
        if self.checkpoint is not None:
            opened.leave_checkpoints(self.checkpoint, interval(self.checkpoint_every), self.resume)
        if not self.for_run:
            opened.check_memory()
        self._recognise(json.loads(opened.info()))
        return opened

    def _recognise(self, info: dict[str, Any]) -> None:
        """Refuses another graph than the one that was opened first, in another process."""
        found = {name: info[name] for name in IDENTITY}
        if self._identity is None:
            self._identity = found
        elif self._identity != found:
            raise InputError.of(
                "open the graph again",
                self.path,
                expected="the graph that it was",
                got="another one at its path",
                hint="call `tiergraph.open` in this process",
            )

    def __getstate__(self) -> dict[str, Any]:
        # Another process may be somewhere else.
        folder = self.checkpoint and os.path.abspath(self.checkpoint)
        return self.__dict__ | {"path": os.path.abspath(self.path), "checkpoint": folder}
