"""PyTorch's tensors in a GPU's memory, which native calls read and write where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from .. import pyg
from ..errors import InputError
from ..opening import Opening

if TYPE_CHECKING:
    from torch import Tensor

    from .. import _native

How: TypeAlias = "tuple[str, bool, bool, str | None, _native.Progress | None]"
"""What `_native.Graph.propagate` is told beside the values."""


def is_on_gpu(values: Any) -> bool:
    """Whether they are a tensor in a GPU's memory."""
    return bool(getattr(values, "is_cuda", False))


def propagate_tensor(opening: Opening, x: Tensor, vertices: int, how: How) -> tuple[Tensor, str]:
    """`Graph.propagate` of a tensor on the graph's GPU: a tensor there, and the run's report."""
    torch = pyg.torch()
    x = x.detach()
    if x.dtype not in (torch.float32, torch.float64):
        x = x.double()
    x = x.contiguous()
    if x.ndim not in (1, 2) or x.shape[0] != vertices:
        expected = f"shape ({vertices},) or ({vertices}, F)"
        raise InputError.of("propagate", "x", expected=expected, got=tuple(x.shape))
    ordinal, is_on = opening.ordinal, x.device.index or 0
    if ordinal != is_on:
        where = "the CPU" if ordinal is None else f"`cuda:{ordinal}`"
        raise InputError.of(
            "propagate",
            "x",
            expected=f"values in host memory, or on the graph's device: {where}",
            got=f"a tensor on `cuda:{is_on}`",
            hint=f"open the graph with `--device cuda:{is_on}`",
        )
    y = torch.empty_like(x)
    # Native calls have streams of their own.
    torch.cuda.current_stream(x.device).synchronize()
    width = x.shape[1] if x.ndim == 2 else 1
    report = opening.native.propagate_on_device(
        x.data_ptr(), y.data_ptr(), width, x.dtype == torch.float64, *how
    )
    return y, report
