"""Whole numbers as arguments: counts, ranks, seeds."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from .errors import InputError

MOST = 2**64 - 1
"""The largest number that goes over to the native part."""


def whole(value: Any, name: str, least: int = 0, most: int = MOST) -> int:
    """The argument `name` as an int, from an integer of Python, NumPy or PyTorch.

    Raises `InputError` for what is none, and for what is not from `least` to `most`.
    """
    number = _integer(value)
    if number is not None and least <= number <= most:
        return number
    span = f"from {least} on" if most == MOST else f"from {least} to {most}"
    raise InputError.of("use", name, expected=f"a whole number {span}", got=repr(value))


def whole_or_none(value: Any, name: str, least: int = 0) -> int | None:
    """As `whole`; None stays None."""
    return None if value is None else whole(value, name, least)


def fanouts(given: Any) -> list[int]:
    """One count of neighbours a hop, -1 for all."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        expected = "a list with a fanout for each hop, as in [25, 10]"
        raise InputError.of("use", "num_neighbors", expected=expected, got=repr(given))
    return [_fanout(count) for count in given]


def _fanout(count: Any) -> int:
    number = _integer(count)
    if number is not None and number >= -1:
        return number
    expected = "a count of neighbours, or -1 for all"
    raise InputError.of("sample with the fanout", repr(count), expected=expected)


def _integer(value: Any) -> int | None:
    """The integer that it is; None for True, 1.0 and "1"."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
