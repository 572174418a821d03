"""What makes a loader's batches: the native part of it, opened once in each process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _native, pyg
from ..arguments.calls import warn
from ..arguments.words import in_callers_words
from ..errors import BudgetError, FallbackWarning
from ..handles import Handle
from .collate import Finish
from .given import LoaderInput
from .gpu import GpuPart
from .moving import Moved
from .source import Source

if TYPE_CHECKING:
    import torch


class BatchMaker:
    """Makes the batches of `given` where it says: on the CPU, or on a GPU if it can there."""

    def __init__(self, given: LoaderInput, seeds_vary: bool = False) -> None:
        self._given, self._seeds_vary = given, seeds_vary
        self._handle: Handle[_native.Loader | GpuPart] = Handle("loader", given.path)
        self._device: torch.device | None = None
        """Where the CPU's batches are moved to."""
        self._why: str | None = None
        self.open()

    def open(self) -> _native.Loader | GpuPart:
        """The native part, as this process has it."""
        return self._handle.get(self._open)

    def _open(self) -> _native.Loader | GpuPart:
        given, device = self._given, self._given.how.device or "cpu"
        native = given.native() | {"seeds_vary": self._seeds_vary}
        if device != "cpu":
            made = self._open_on(device, native)
            self._handle.device = device
            if isinstance(made, GpuPart):
                return made
            self._device, self._why = pyg.device(device), made
            text = f"batches for {device} are made on the CPU and moved there: {made}"
            warn(text, FallbackWarning)
        loaded = _native.Loader(given.path, json.dumps(native), given.seeds, given.times)
        for note in notes_of(json.loads(loaded.kept())):
            warn(note, FallbackWarning)
        return loaded

    def _open_on(self, device: str, native: dict[str, Any]) -> GpuPart | str:
        """What makes batches on a GPU, or gathers them there; or why neither can be."""
        given, why = self._given, self._given.not_on_gpu
        ways = [False, True] if why is None else [True]
        if not given.gathered_on_gpu:
            ways.remove(True)
        for sampled_on_cpu in ways:
            try:
                part = GpuPart(given, native, device, sampled_on_cpu)
            except BudgetError as error:
                why = f"{why}; {error}" if why else str(error)
                continue
            if sampled_on_cpu:
                self._device, self._why = pyg.device(device), why
            return part
        assert why is not None, "a way that was tried failed"
        return why

    @property
    def seeds(self) -> NDArray[np.uint64]:
        """The seeds that it was made with."""
        return self._given.seeds

    def epoch(
        self,
        epoch: int,
        first: int,
        rank: tuple[int, int],
        finish: Finish,
        seeds: NDArray[np.uint64] | None = None,
        bounds: list[int] | None = None,
    ) -> Source | Moved:
        """The batches of an epoch as PyG's data, where they are to be handed over.

        With `seeds` other than those given, batch i has those from `bounds[i]` to `bounds[i + 1]`.
        """
        part = self.open()
        native = part.epoch(epoch, first, *rank, seeds, bounds)
        # Looked up for each batch: what is closed meanwhile keeps no file of labels open.
        given = self._given
        collate = part.collate if isinstance(part, GpuPart) else lambda batch: given.collate(batch)
        source = Source(native, lambda batch: finish(batch, collate(batch)))
        return source if self._device is None else Moved(source, self._device)

    def rows_on_device(self, most: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]] | None:
        """The features of all vertices where batches are made on a GPU; None where they are not."""
        part = self.open()
        return part.rows(most) if isinstance(part, GpuPart) else None

    def kept(self) -> dict[str, Any]:
        """What is kept in memory, and where batches are made: why not on a GPU, where asked for."""
        part = self.open()
        if isinstance(part, GpuPart):
            made = {"made_on": "both", "why": self._why} if self._why else {"made_on": "gpu"}
            return part.placed() | made
        kept: dict[str, Any] = json.loads(part.kept())
        return kept if self._why is None else kept | {"made_on": "cpu", "why": self._why}

    def close(self) -> None:
        """Lets go of threads, files and memory, the GPU's too."""
        self._handle.close()
        self._given.close()


def notes_of(kept: dict[str, Any]) -> list[str]:
    """What `NeighborLoader.kept` shows to be smaller than asked for."""
    window, asked = kept.get("window", 0), kept.get("asked_window", 0)
    if window >= asked:
        return []
    batches = "1 batch is" if window == 1 else f"{window} batches are"
    note = f"{batches} prepared together in place of {asked}, and more pages may be read"
    return [in_callers_words(f"{note}: a larger `--memory` holds more batches")]
