"""Where algorithms run: the CPU, or an NVIDIA GPU found at run time."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

from . import _native
from .arguments.calls import checked
from .arguments.sizes import to_bytes
from .errors import DeviceError


class CudaDevice(NamedTuple):
    """A GPU that `device="cuda:N"` names."""

    name: str
    architecture: str
    """As the compiler calls it: `sm_90`."""
    free_bytes: int
    total_bytes: int


@checked
def cuda_devices() -> list[CudaDevice]:
    """The NVIDIA GPUs of this machine. Raises `DeviceError` where there is no working driver."""
    return [CudaDevice(*device) for device in _native.cuda_devices()]


def resolve(device: str) -> tuple[str, str]:
    """The device that `device` means, and why: `auto` is a GPU, or the CPU and what is missing."""
    if device != "auto":
        return device, "no GPU was asked for" if device == "cpu" else "it was asked for"
    try:
        found = cuda_devices()
    except DeviceError as error:
        return "cpu", str(error).split("\n", 1)[0]
    return ("cuda", f"there is an {found[0].name}") if found else ("cpu", "the driver knows no GPU")


def options(
    device: str, memory: int | str | None, transfers: str, residency: bool, checksums: bool
) -> _native.DeviceOptions:
    """What the native part is told of a device; for a GPU, after its libraries were looked for."""
    if device != "cpu":
        find_libraries()
    return {
        "device": device,
        "memory": to_bytes(memory),
        "transfers": transfers,
        "residency": residency,
        "checksums": checksums,
    }


@cache
def find_libraries() -> None:
    """Tells the native part where PyPI's `nvidia-*` packages (PyTorch brings them) have libraries.

    These are NVRTC and cuFile, in `nvidia/cu13/lib`, or in `nvidia/cuda_nvrtc/lib` and
    `nvidia/cufile/lib`.

    Also asks CUDA, if it has not begun yet, for as many hardware queues as there can be: with the
    default of 8, most of the streams that blocks arrive on would wait for each other.
    """
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    spec = importlib.util.find_spec("nvidia")
    roots = [] if spec is None else list(spec.submodule_search_locations or [])
    names = ("libnvrtc.so.*", "libcufile.so.*")
    found = (Path(root).glob(f"*/lib/{name}") for root in roots for name in names)
    folders = {library.parent for libraries in found for library in libraries}
    _native.add_library_folders(sorted(map(str, folders)))
