"""What commands print: one JSON object, or a table that fits a terminal."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .._native import __version__
from ..units import readable


def print_json(value: dict[str, Any]) -> None:
    """A JSON object on stdout, which says what version of tiergraph wrote it."""
    json.dump(value | {"tiergraph": __version__}, sys.stdout, allow_nan=False)
    sys.stdout.write("\n")


def print_fields(fields: Mapping[str, Any], *, stderr: bool = False, prefix: str = "") -> None:
    """Names and values in two columns, values in units; nested objects by dotted names.

    A run's `details` are counted by how a step was done; `--json` has each of them, and where in a
    file blocks were in memory.
    """
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in _flatten(fields, prefix):
        table.add_row(name, readable(name, value))
    _console(stderr=stderr).print(table)


def print_notes(notes: Iterable[str]) -> None:
    """What was noticed or decided for the user, a line each on stderr."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for note in notes:
        console.print(Text.assemble(("note: ", "bold"), note))


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    stderr: bool = False,
    left: Sequence[int] = (),
) -> None:
    """A table; numbers to the right, but for the first column and those that `left` names."""
    table = Table(box=None, pad_edge=False)
    for i, header in enumerate(headers):
        justify = "left" if i == 0 or i in left else "right"
        table.add_column(header, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*row)
    _console(stderr=stderr).print(table)


def _console(*, stderr: bool = False) -> Console:
    """Where there is no terminal, lines are as long as tables need."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else 200)


def _flatten(fields: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for name, value in fields.items():
        if name == "residency":
            continue
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        elif name == "stages":
            yield from ((f"{prefix}{name}.{s['name']}_seconds", s["seconds"]) for s in value)
        elif name == "details":
            done = Counter(step["how"] for step in value)
            yield f"{prefix}steps", [f"{count:,} x {how}" for how, count in done.items()]
        else:
            yield f"{prefix}{name}", value
