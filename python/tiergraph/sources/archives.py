"""Arrays of an `.npz` archive, read from front to back: no more in memory than is asked for."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..errors import InputError
from .reading import reading


def members(path: Path) -> set[str]:
    """The names of an archive's arrays."""
    with reading(path, "an .npz archive"), zipfile.ZipFile(path) as archive:
        return {name.removesuffix(".npy") for name in archive.namelist()}


class Member:
    """One array of an archive, as a stream of its elements in C order.

    Its file is open until the last element was taken, or something went wrong.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.name = f"{path}:{name}"
        with reading(self.name, "an array in an .npz archive"), zipfile.ZipFile(path) as archive:
            self._file = archive.open(f"{name}.npy")
        try:
            self.shape, self.dtype = self._header()
        except BaseException:
            self._file.close()
            raise
        self._left = int(np.prod(self.shape))

    def _header(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        with reading(self.name, "an array in an .npz archive"):
            version = npy.read_magic(self._file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(self._file)
        if (fortran and len(shape) > 1) or dtype.hasobject:
            raise InputError.of(
                "read", self.name, expected="numbers in C order", got="Fortran order or objects"
            )
        return shape, dtype

    def take(self, count: int) -> NDArray[Any]:
        """The next `count` elements, one-dimensional."""
        want = count * self.dtype.itemsize
        data = b""
        try:
            with reading(self.name, f"{want} more bytes"):
                data = self._file.read(want)
        finally:
            self._left -= count
            if self._left <= 0 or len(data) != want:
                self._file.close()
        if len(data) != want:
            raise InputError.of(
                "read", self.name, expected=f"{want} more bytes", got=f"{len(data)}"
            )
        return np.frombuffer(data, dtype=self.dtype)

    def close(self) -> None:
        """Closes the file of an array that is not read."""
        self._file.close()

    def array(self) -> NDArray[Any]:
        """All of it."""
        return self.take(int(np.prod(self.shape))).reshape(self.shape)
