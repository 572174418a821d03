"""PyTorch and PyG, imported when they are first used: everything else works without them."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from typing import Any

from .errors import DeviceError, InputError

EXTRA = "pip install 'tiergraph[train]'"


@cache
def torch() -> Any:
    """The module `torch`."""
    return _import("torch")


def device(name: str) -> Any:
    """PyTorch's device `cpu`, `cuda` or `cuda:N`, a GPU with its number.

    Raises `DeviceError` for a GPU that PyTorch does not have.
    """
    if name == "cpu":
        return torch().device(name)
    kind, _, ordinal = name.partition(":")
    cuda = torch().cuda
    number = cuda.device_count() if cuda.is_available() else 0
    if kind != "cuda" or int(ordinal or 0) >= number:
        raise DeviceError.of(
            "use the device",
            name,
            expected="a GPU that PyTorch can use",
            got=f"{number} of them",
            hint="run with `--device cpu`, or a build of PyTorch with CUDA",
        )
    return torch().device(kind, int(ordinal or 0))


@cache
def geometric(module: str) -> Any:
    """The module `torch_geometric.MODULE`."""
    torch()
    return _import(f"torch_geometric.{module}")


def _import(name: str) -> Any:
    try:
        with warnings.catch_warnings():
            # PyG's own use of what PyTorch has deprecated is nothing that users can change.
            warnings.simplefilter("ignore")
            return import_module(name)
    except ImportError as error:
        raise InputError.of(
            "use PyTorch and PyG",
            expected=f"`{name.split('.')[0]}` to be installed",
            got=error,
            hint=EXTRA,
        ) from error
