"""Tables of Markdown, with numbers of three digits."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Row = Sequence[object]
Record = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A title, the columns, and rows of text and numbers; None is an empty cell."""

    title: str
    header: Sequence[str]
    rows: Sequence[Row]
    note: str = ""
    """A note on the numbers, below the table."""

    def markdown(self, note: str) -> str:
        """The title, the table, and a note below it."""
        parts = [f"### {self.title}", table(self.header, self.rows), note.strip()]
        return "\n\n".join(filter(None, parts)) + "\n"


def table(header: Sequence[str], rows: Iterable[Row]) -> str:
    """The Markdown of a table."""
    lines = [list(header), ["---"] * len(header), *([cell(value) for value in r] for r in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(value: object) -> str:
    """A value as text: three digits of a number that is not whole."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 100:
        return f"{rounded:,.0f}"
    digits = f"{rounded:#.3g}"
    return f"{rounded:.3g}" if "e" in digits else digits.rstrip(".")


def percent(share: float | None) -> str | None:
    """A share of 1 as whole percents."""
    return None if share is None else f"{round(100 * share)}%"


def median(values: Iterable[float]) -> float | None:
    """The middle value; None of nothing."""
    known = list(values)
    return statistics.median(known) if known else None


def middle(records: Iterable[Record], key: str) -> float:
    """The median of a key that every record has."""
    return float(statistics.median(record[key] for record in records))
