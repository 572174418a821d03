"""Histograms in the terminal: how many things there are of each size, by powers of two."""

from __future__ import annotations

from collections.abc import Sequence

from .output import print_table

BAR_WIDTH = 40
PARTS = " ▏▎▍▌▋▊▉█"
"""Eighths of a character."""


def print_histogram(size: str, counted: str, counts: Sequence[int], *, stderr: bool) -> None:
    """Prints a line for each class of sizes: the sizes, how many have them, and a bar.

    `counts` has how many are of size 0, of size 1, of 2 to 3, of 4 to 7, and so on; classes of
    which there are none are left out at both ends.
    """
    there = [i for i, count in enumerate(counts) if count]
    if not there:
        return
    most = max(counts)
    rows = [
        (_sizes(i), f"{counts[i]:,}", _bar(counts[i] / most))
        for i in range(there[0], there[-1] + 1)
    ]
    print_table((size, counted, ""), rows, stderr=stderr, left=(2,))


def _sizes(place: int) -> str:
    """The sizes that are counted at a place."""
    first, last = (1 << place) >> 1, (1 << place) - 1
    return f"{first:,}" if last <= first else f"{first:,} - {last:,}"


def _bar(share: float) -> str:
    """A bar as long as the share; of what is there at all, at least a sliver."""
    eighths = max(round(share * BAR_WIDTH * 8), 1 if share else 0)
    whole, part = divmod(eighths, 8)
    return (PARTS[8] * whole + PARTS[part]).rstrip()
