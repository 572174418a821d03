"""Batches that are made on the CPU and handed over on a GPU.

What kernels do not sample, and graphs whose neighbours fit neither GPU nor host memory, are
prepared by the CPU's loader; each batch moves while the one before is trained on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import pyg
from ..arguments.calls import warn
from ..errors import FallbackWarning

if TYPE_CHECKING:
    import torch

    from .source import Source


class Moved:
    """The batches of one epoch, with tensors on `device`."""

    def __init__(self, source: Source, device: torch.device) -> None:
        self._source, self._device = source, device
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

    def stats(self) -> dict[str, Any]:
        """What was done so far: bytes by tier, pages, seconds by stage."""
        return self._source.stats()

    def close(self) -> None:
        """Stops what prepares further batches."""
        self._ahead = None
        self._source.close()

    def _begin(self) -> tuple[Any, torch.cuda.Event] | None:
        """Starts moving the next batch, on a stream of its own."""
        data = self._source.next()
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


def fall_back(device: str, why: str) -> torch.device:
    """Says that batches for `device` are made on the CPU, and gives PyTorch's name of it."""
    to: torch.device = pyg.device(device)
    warn(f"batches for {device} are made on the CPU and moved there: {why}", FallbackWarning)
    return to
