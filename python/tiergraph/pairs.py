"""Connected components of pairs of ids, without a graph: entity resolution in one call."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _native, results
from .arguments.arrays import to_endpoints
from .arguments.calls import checked
from .arguments.checks import arguments
from .arguments.sizes import to_bytes
from .sources import objects
from .sources.ahead import ahead
from .sources.edges import Batch, Source, batch_edges, pieces, waiting_bytes
from .sources.given import Given
from .sources.names import numbered
from .sources.tables import read_batches, reader_bytes


@dataclass(frozen=True)
class Components:
    """Every id of the pairs, in the order in which they first came, and what it belongs to."""

    least: NDArray[np.uint32]
    """The place of the least id of each one's component, uint32 of shape (n,)."""
    ids: NDArray[np.uint64] | None
    """The ids, uint64 of shape (n,); None where they are names."""
    pairs: int
    components: int
    """How many components there are."""
    largest: int
    """How many ids the largest has."""
    seconds: float
    _names: tuple[NDArray[np.uint8], NDArray[np.uint64]] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.least)

    @property
    def names(self) -> Any:
        """The names, a pyarrow array of `large_string`; None where ids are integers."""
        if self._names is None:
            return None
        import pyarrow

        text, ends = self._names
        offsets = np.concatenate([[0], ends]).astype(np.int64)
        buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(text)]
        return pyarrow.Array.from_buffers(pyarrow.large_string(), len(ends), buffers)

    def table(self) -> Any:
        """A pyarrow table of `vertex` and `component`: the least id, or the first name, of each."""
        pyarrow = results.pyarrow_for("make a table of", "components")
        keys = self.names if self.ids is None else pyarrow.array(self.ids)
        return pyarrow.table({"vertex": keys, "component": keys.take(pyarrow.array(self.least))})

    def write(self, path: str) -> None:
        """Writes the columns of `table` to `path`, by its suffix: `.parquet`, `.arrow` or `.csv`.

        `.npy` too, where ids are integers. Holds a step of rows beside what is held already.
        """
        ids = self.ids
        if ids is not None:
            labels = ids[self.least]
            results.write(path, lambda start, stop: ids[start:stop], "component", labels)
            return
        results.write_tables(path, *self._steps(results.pyarrow_for("write", path)))

    def _steps(self, pyarrow: Any) -> tuple[Any, Iterator[Any]]:
        """The schema of a table of names, and the table step by step."""
        text, names = pyarrow.large_string(), self.names
        schema = pyarrow.schema([("vertex", text), ("component", text)])

        def rows() -> Iterator[Any]:
            for start in range(0, len(self), results.STEP_VALUES):
                least = pyarrow.array(self.least[start : start + results.STEP_VALUES])
                own = names.slice(start, len(least))
                yield pyarrow.table([own, names.take(least)], schema=schema)

        return schema, rows()


@checked
@arguments(source=None)
def components(
    source: Source,
    *,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    ids: Literal["names"] | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: _native.Progress | None = None,
) -> Components:
    """Connected components of pairs of ids: which are the same, if each pair is of the same.

    `source` is what `tiergraph.build` takes: files, tables of pandas, Polars or pyarrow, arrays,
    batches, the edges of a graph of NetworkX, igraph, NetworKit or SciPy; `columns` and `format` as
    there. Ids are integers of up to 64 bits, or text: a table's
    or an array's type says so, and of text files `ids="names"`. Pairs are read once and have no
    direction; nothing is written to disk. Memory is for the distinct ids alone: 27 to 37 bytes each
    and, of names, their text.

    Gives `Components`: `table()` has a row an id. The component of an id is called by its least id,
    or by the first name in the order of bytes. Raises `BudgetError` where `memory` (half of what is
    free) is too little, and what `build` raises for input that cannot be used.
    """
    began = time.perf_counter()
    limit = to_bytes(memory)
    most = batch_edges(limit)
    found = objects.find(source, "none")
    given = Given.of(source if found is None else found.edges, columns, format, "none", ids)
    if given.batches is None and given.tables is None:
        options: dict[str, Any] = {"memory": limit, "threads": threads}
        native = _native.Components(_encoded(options), given.names, progress)
        of_file = {"format": format, "columns": columns, "weights": "none", "threads": threads}
        native.add_files(given.files or [], _encoded(of_file))
        return _found(native, began)
    beside = 0 if given.tables is None else reader_bytes(given.tables)
    held = waiting_bytes(most, beside)["held_bytes"]
    on_their_way = {"memory": limit, "held_bytes": held}
    native = _native.Components(_encoded(on_their_way), given.names, progress)
    for src, dst, *_ in ahead(_batches(given, columns, most)):
        native.add(to_endpoints(src, "src"), to_endpoints(dst, "dst"))
    return _found(native, began)


def _batches(given: Given, columns: Sequence[str] | None, most: int) -> Iterator[Batch]:
    if given.tables is not None:
        return read_batches(given.tables, columns, most, "none", given.names)
    batches = pieces(given.batches or (), most)
    return batches if given.names is None else map(partial(numbered, given.names), batches)


def _encoded(options: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in options.items() if value is not None})


def _found(native: _native.Components, began: float) -> Components:
    (ids, text), ends, least, (pairs, count, largest) = native.finish()
    names = None if text is None or ends is None else (text, ends)
    return Components(least, ids, pairs, count, largest, time.perf_counter() - began, names)
