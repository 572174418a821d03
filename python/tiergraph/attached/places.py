"""Which vertex a row of a table belongs to: by a column of ids or names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..arguments.sizes import to_bytes
from ..errors import InputError
from ..opening import Opening
from ..sources import rows, tables
from ..sources.dataset import MAIN_FEATURES, MAIN_LABELS, narrowed
from ..sources.names import are_texts, is_text, numbers, of_arrow
from .names import Names
from .nodes import positions_of

Array = NDArray[Any]
Positions = NDArray[np.uint32]


class Vertices:
    """The vertices of a graph on disk, which ids and names are looked up among."""

    def __init__(self, path: str | os.PathLike[str], memory: int | str | None) -> None:
        self._path = Path(path)
        self._memory = to_bytes(memory)

    @cached_property
    def count(self) -> int:
        """How many there are."""
        manifest = json.loads((self._path / "manifest.json").read_text(encoding="utf-8"))
        return int(manifest["vertices"])

    @cached_property
    def _names(self) -> _native.Names | None:
        has_names = (self._path / "names").is_dir()
        return _native.Names.of_graph(str(self._path), self._memory) if has_names else None

    @cached_property
    def _ids(self) -> Array | None:
        """The user's own ids, ascending and mapped; None where ids are positions."""
        if not (self._path / "user.ids").is_file():
            return None
        _native.check_array(str(self._path), "user.ids")
        return np.memmap(self._path / "user.ids", np.uint64, "r")

    def rows(self, given: Any, by: str, columns: Sequence[str] | None) -> dict[str, rows.Rows]:
        """Features of tables, by name, with the positions of their rows' vertices."""
        found = {}
        for name, table in _tables(given, MAIN_FEATURES).items():
            positions = self.of_table(table, by)
            made = rows.from_table(table, columns, by)
            found[name] = rows.Rows(made.described, made.source, len(positions), positions)
        return found

    def labels(self, given: Any, by: str) -> dict[str, Array]:
        """Labels of tables, by name, in the user's order of vertices."""
        found = {}
        for name, table in _tables(given, MAIN_LABELS).items():
            positions, values = self.of_table(table, by), rows.whole_table(table, by)
            placed = np.empty_like(values)
            placed[positions] = values
            found[name] = narrowed(placed)
        return found

    def splits(self, given: Any) -> Any:
        """The same splits, with the positions of vertices in place of names."""
        if not isinstance(given, Mapping):
            return given
        return {
            name: self._of_names(one, name)
            if not isinstance(one, str | os.PathLike) and are_texts(one)
            else one
            for name, one in given.items()
        }

    def _of_names(self, given: Any, name: str) -> Positions:
        return numbers(self._named(name), given, name)

    def of_table(self, table: tables.Table, by: str) -> Positions:
        """The positions of the vertices in a column, each of which must be there once."""
        if by not in table.schema.names:
            got = ", ".join(table.schema.names)
            raise InputError.of("find the ids in", table.name, expected=f"a column `{by}`", got=got)
        has_texts = is_text(table.schema.field(by).type)
        parts = []
        for batch in table.to_batches(columns=[by], batch_size=rows.CSV_LINES):
            column = batch.column(by)
            if column.null_count:
                raise self._refused(table, by, "an id in every row", "rows without")
            if has_texts:
                parts += of_arrow(self._named(by), [column])
            else:
                parts.append(self._of_ids(column.to_numpy(zero_copy_only=False), by))
        found = np.concatenate(parts) if parts else np.empty(0, np.uint32)
        self._check_all(table, by, found)
        return found

    def _of_ids(self, ids: Array, name: str) -> Positions:
        if ids.dtype.kind not in "iu":
            expected = "integers" if self._names is None else "texts, as the graph's names are"
            raise InputError.of("use the ids", name, expected=expected, got=str(ids.dtype))
        if self._names is not None:
            got = "integers"
            raise InputError.of(
                "use the ids", name, expected="names, which this graph has", got=got
            )
        wide = ids.astype(np.uint64)
        negative = ids < 0 if ids.dtype.kind == "i" else np.zeros(len(ids), bool)
        places = positions_of(self._ids, self.count, wide)
        known = ~negative & (places >= 0)
        if not known.all():
            unknown = ids[int(np.argmin(known))]
            raise InputError.of("find the vertex", str(unknown), expected="an id of the graph")
        return places.astype(np.uint32)

    def _named(self, name: str) -> _native.Names:
        if self._names is None:
            got = "texts"
            raise InputError.of("use the ids", name, expected="integers: it has no names", got=got)
        return self._names

    def _check_all(self, table: tables.Table, by: str, found: Positions) -> None:
        counts = np.zeros(self.count, np.uint8)
        step = 1 << 20
        for first in range(0, len(found), step):
            part, times = np.unique(found[first : first + step], return_counts=True)
            seen = counts[part] + times
            counts[part] = np.minimum(seen, 2)
            if (seen > 1).any():
                twice = self._shown(int(part[np.argmax(seen > 1)]))
                raise self._refused(table, by, "each vertex once", f"`{twice}` twice")
        if not counts.all():
            missing = self._shown(int(np.argmin(counts)))
            got = f"{len(found)} rows, and none of `{missing}`"
            raise self._refused(table, by, f"a row for each of {self.count} vertices", got)

    def _shown(self, position: int) -> str:
        """A vertex as messages name it."""
        if self._names is None:
            return str(position if self._ids is None else self._ids[position])
        opening = Opening(str(self._path), None, "auto", 1, "cpu", None, "async")
        try:
            return Names(opening, self.count)[position]
        finally:
            opening.close()

    def _refused(self, table: tables.Table, by: str, expected: str, got: str) -> InputError:
        return InputError.of("use the column", f"{table.name}:{by}", expected=expected, got=got)


def _tables(given: Any, main: str) -> dict[str, tables.Table]:
    """The tables, by name, that sources with a column of ids must be."""
    named = given if isinstance(given, Mapping) else {main: given}
    return {name: _table(one) for name, one in named.items() if one is not None}


def _table(source: Any) -> tables.Table:
    found = tables.tables_of(source)
    if found is None or len(found) != 1:
        raise InputError.of(
            "find vertices by a column of",
            source if isinstance(source, str | os.PathLike) else type(source).__name__,
            expected=f"one table ({', '.join(tables.TABLE_SUFFIXES)}), or one in memory",
        )
    return found[0]
