"""Batches that are made on the CPU and handed over on a GPU.

What kernels do not sample, and graphs whose neighbours fit neither GPU nor host memory, are
prepared by the CPU's loader; each batch moves while the one before is trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import pyg

if TYPE_CHECKING:
    import torch


class Moved:
    """The batches that `take` gives, with tensors on `device`."""

    def __init__(self, take: Callable[[], Any | None], device: torch.device) -> None:
        self._take, self._device = take, device
        self._stream = pyg.torch().cuda.Stream(device)
        self._ahead: tuple[Any, torch.cuda.Event] | None = None
        """The batch that moves while the one before is trained on."""

    def next(self) -> Any | None:
        """The next batch; None after the last."""
        begun = self._ahead or self._begin()
        if begun is None:
            return None
        data, event = begun
        self._ahead = self._begin()
        stream = pyg.torch().cuda.current_stream(self._device)
        stream.wait_event(event)
        # The allocator must not give the memory away while the consumer's stream reads it.
        data.apply(lambda tensor: tensor.record_stream(stream) or tensor)
        return data

    def _begin(self) -> tuple[Any, torch.cuda.Event] | None:
        """Starts moving the next batch, on a stream of its own."""
        data = self._take()
        if data is None:
            return None
        torch = pyg.torch()
        with torch.cuda.stream(self._stream):
            # Only copies from pinned memory run beside what the caller does.
            data = data.apply(
                lambda tensor: tensor.pin_memory().to(self._device, non_blocking=True)
            )
            event = torch.cuda.Event()
            event.record(self._stream)
        return data, event
