"""What a caller gives as edges: files, tables or batches, and whether ids are names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from .. import _native
from ..errors import InputError
from .edges import Batch, as_batches, as_files
from .names import are_texts
from .tables import Table, have_names, tables_of


@dataclass(frozen=True)
class Given:
    """Edges in one of three kinds; the others are None."""

    files: list[str] | None
    """Files that the native part reads."""
    tables: list[Table] | None
    batches: Iterator[Batch] | None
    names: _native.Names | None
    """What numbers ids that are names."""

    @classmethod
    def of(
        cls,
        source: Any,
        columns: Sequence[str] | None,
        format: str | None,
        weights: str | None,
        ids: str | None,
    ) -> Given:
        """Finds what `source` is; the other arguments are `tiergraph.build`'s.

        Raises `InputError` for options that such a source does not have.
        """
        tables = tables_of(source) if format is None else None
        files = as_files(source) if tables is None else None
        batches = None
        if tables is not None:
            are_names = have_names(tables, columns, weights)
        elif files is not None:
            are_names = ids == "names"
        else:
            _of_files(columns=columns, format=format, weights=weights)
            batches = as_batches(source)
            first = next(batches, None)
            are_names = ids == "names" if first is None else are_texts(first[0])
            batches = batches if first is None else chain([first], batches)
            if weights == "none":
                batches = (batch[:2] for batch in batches)
        if are_names and ids not in (None, "names"):
            raise InputError.of("use the option", f"ids={ids!r}", expected="integers", got="text")
        if ids == "names" and not are_names:
            raise InputError.of("use the option", "ids='names'", expected="text", got="integers")
        return cls(files, tables, batches, _native.Names() if are_names else None)


def _of_files(**given: Any) -> None:
    """Refuses options of files where edges are in memory."""
    for name, value in given.items():
        if value not in (None, "none"):
            raise InputError.of(
                "use the option", name, expected="a file or a table", got="arrays or batches"
            )
