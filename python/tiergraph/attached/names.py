"""The names of vertices whose ids are numbers of names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

if TYPE_CHECKING:
    from ..opening import Opening

FEW = 64
"""Names that are read one by one."""

STEP = 1 << 16
"""Names that are read at once where all are gone through."""


class Names:
    """Names of a graph's vertices by id: `names[7]`, `names[:10]`, `names.find("alice")`.

    Made by `Graph.names`. Ids are 0 to |V| - 1, in the order in which names first came. Names are
    read when they are asked for, and are not kept.
    """

    def __init__(self, opening: Opening, vertices: int) -> None:
        self._opening = opening
        self._vertices = vertices

    def __len__(self) -> int:
        return self._vertices

    def __repr__(self) -> str:
        return f"<Names of {self._vertices:,} vertices>"

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        """The name of one vertex, or those of a slice without a step. Raises `IndexError`."""
        if isinstance(at, slice):
            start, stop, step = at.indices(self._vertices)
            if step != 1:
                raise InputError.of("use names", at, expected="a slice without a step")
            return self._texts(start, max(start, stop))
        place = at + self._vertices if at < 0 else at
        if not 0 <= place < self._vertices:
            raise IndexError(f"vertex {at} of {self._vertices}")
        return self._texts(place, place + 1)[0]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, self._vertices, STEP):
            yield from self._texts(start, start + STEP)

    @overload
    def find(self, names: str) -> int: ...
    @overload
    def find(self, names: list[str]) -> NDArray[np.uint64]: ...
    def find(self, names: str | list[str]) -> int | NDArray[np.uint64]:
        """The id of the vertex with a name, or uint64 ids of several. Raises `InputError`."""
        if isinstance(names, str):
            return int(self._opening.native.find_names([names])[0])
        return self._opening.native.find_names(names)

    def known(self, names: list[str]) -> dict[str, int]:
        """The ids of those of `names` that vertices have, by name.

        Where one of many is missing, all names are read.
        """
        try:
            return dict(zip(names, self.find(names).tolist(), strict=True)) if names else {}
        except (InputError, UnicodeEncodeError):
            if len(names) > FEW:
                wanted = set(names)
                return {name: id for id, name in enumerate(self) if name in wanted}
        half = len(names) // 2
        return self.known(names[:half]) | self.known(names[half:]) if half else {}

    def of(self, ids: NDArray[Any]) -> list[str]:
        """The names of vertices by their ids, in any order; of many, all names are read."""
        if len(ids) <= FEW:
            return [self[int(i)] for i in ids]
        found: list[str] = self.to_arrow().take(ids).to_pylist()
        return found

    def to_arrow(self, start: int = 0, stop: int | None = None) -> Any:
        """Names as a pyarrow array of `large_string`: all, or those of ids `start` to `stop`."""
        import pyarrow

        stop = self._vertices if stop is None else stop
        text, offsets = self._opening.native.names(start, stop)
        buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(text)]
        return pyarrow.Array.from_buffers(pyarrow.large_string(), len(offsets) - 1, buffers)

    def _texts(self, start: int, stop: int) -> list[str]:
        text, offsets = self._opening.native.names(start, stop)
        data, ends = text.tobytes(), offsets.tolist()
        return [data[a:b].decode() for a, b in pairwise(ends)]
