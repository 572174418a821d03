"""PyTorch on the emulated GPU: its memory is the host's, so that the CPU's tensors lie in it.

Streams finish at once there (not those that are late), so what orders them has nothing to do.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Of a name, a process has one library: PyTorch brings the compilers of real GPUs.
for name in ("libnvrtc.so.13", "libnvrtc.so.12"):
    ctypes.CDLL(name)

import torch  # noqa: E402

from tiergraph import pyg  # noqa: E402


class _Ordered:
    """A stream or an event."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        pass

    def record(self, _stream: Any = None) -> None:
        self._recorded = time.perf_counter()

    def elapsed_time(self, end: _Ordered) -> float:
        """Milliseconds from this event to another."""
        return 1e3 * (end._recorded - self._recorded)

    def wait_event(self, _event: Any) -> None:
        pass

    def wait_stream(self, _stream: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass


@contextmanager
def _on(_stream: _Ordered) -> Iterator[None]:
    yield


def use_emulated() -> None:
    """Has loaders for `cuda` put their batches into tensors of the CPU, which say `is_cuda`."""
    pyg.device = lambda name: torch.device("cpu", int(name.partition(":")[2] or 0))
    torch.cuda.is_available = lambda: True
    # Optimizers ask PyTorch's own accelerator what its streams capture.
    torch.accelerator.is_available = lambda: False
    torch.optim.Optimizer._accelerator_graph_capture_health_check = lambda _optimizer: None
    torch.cuda.Stream = torch.cuda.ExternalStream = torch.cuda.Event = _Ordered
    torch.cuda.synchronize = lambda _device=None: None
    torch.cuda.stream = _on
    torch.cuda.current_stream = _Ordered
    torch.Tensor.is_cuda = True
    torch.Tensor.pin_memory = lambda tensor: tensor.clone()
    torch.Tensor.record_stream = lambda _tensor, _stream: None
