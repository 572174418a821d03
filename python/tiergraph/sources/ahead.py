"""Items that a thread of its own makes while the ones before are used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items; the next one is made while its user has the last."""
    made = iter(items)
    end = object()
    with ThreadPoolExecutor(1, "tiergraph-ahead") as thread:
        waiting = thread.submit(next, made, end)
        while (item := waiting.result()) is not end:
            waiting = thread.submit(next, made, end)
            yield item  # type: ignore[misc]
