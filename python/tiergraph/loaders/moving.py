"""Batches that are made on the CPU, or in part, and handed over on a GPU.

A thread makes each batch and moves it while the one before is trained on, so that neither copies to
pinned memory nor the work of making PyG's data is on the caller's thread.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from .. import pyg
from .source import END

if TYPE_CHECKING:
    import torch

    from .source import Source


def to_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The tensor on `device`, in order with the current stream; one that is on a GPU, as it is."""
    if tensor.device.type == "cuda":
        return tensor
    # Only copies from pinned memory run beside what the caller does.
    return tensor.pin_memory().to(device, non_blocking=True)


def moved(data: Any, device: torch.device) -> Any:
    """The batch with all its tensors on `device`, in order with the current stream."""
    return data.apply(lambda tensor: to_device(tensor, device))


def _copying_thread() -> ThreadPoolExecutor:
    """A thread whose copies into pinned memory leave half of PyTorch's threads to the caller.

    Each thread that copies has a team of OpenMP's, which spins for a while after each copy: two
    teams with a thread for each core, and those that sample, would wait for one another.
    """
    torch = pyg.torch()
    threads = torch.get_num_threads()
    thread = ThreadPoolExecutor(1, thread_name_prefix="moving")
    thread.submit(torch.set_num_threads, max(1, threads // 2)).result()
    # The number is also what threads that are yet to start begin with.
    torch.set_num_threads(threads)
    return thread


class Moved:
    """The batches of one epoch, with tensors on `device`, made by a thread that is one ahead."""

    def __init__(self, source: Source, device: torch.device) -> None:
        self._source, self._device = source, device
        self._stream = pyg.torch().cuda.Stream(device)
        self._thread = _copying_thread()
        self._ahead: Future[tuple[Any, torch.cuda.Event] | None] | None = None
        """The batch that is made and moved while the one before is trained on."""
        self._over = False
        self._waited = 0.0

    def next(self) -> Any:
        """The next batch; `END` after the last."""
        if self._over:
            return END
        since = time.perf_counter()
        ahead = self._ahead or self._thread.submit(self._make)
        self._ahead = ahead
        # An interrupted wait leaves it where it is.
        try:
            made = ahead.result()
        except Exception:
            self._over = True
            raise
        finally:
            self._waited += time.perf_counter() - since
        if made is None:
            self._over = True
            return END
        self._ahead = self._thread.submit(self._make)
        data, event = made
        stream = pyg.torch().cuda.current_stream(self._device)
        stream.wait_event(event)
        # The allocator must not give the memory away while the consumer's stream reads it.
        data.apply(lambda tensor: tensor.record_stream(stream) or tensor)
        return data

    def stats(self) -> dict[str, Any]:
        """What was done so far: bytes by tier, pages, seconds by stage."""
        return self._source.stats() | {"seconds_wait": self._waited}

    def close(self) -> None:
        """Stops what prepares further batches."""
        self._over, self._ahead = True, None
        self._thread.shutdown(cancel_futures=True)
        self._source.close()

    def _make(self) -> tuple[Any, torch.cuda.Event] | None:
        """The next batch on a stream of its own, and when that is done; None after the last."""
        torch = pyg.torch()
        with torch.cuda.stream(self._stream):
            data = self._source.next()
            if data is END:
                return None
            data, event = moved(data, self._device), torch.cuda.Event()
            event.record(self._stream)
        return data, event
