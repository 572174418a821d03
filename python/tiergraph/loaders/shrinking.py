"""What a loader says that had to do with less than it was asked for."""

from __future__ import annotations

from typing import Any

from ..arguments.words import in_callers_words


def notes_of(kept: dict[str, Any]) -> list[str]:
    """What `NeighborLoader.kept` shows to be smaller than asked for."""
    window, asked = kept.get("window", 0), kept.get("asked_window", 0)
    if window >= asked:
        return []
    batches = "1 batch is" if window == 1 else f"{window} batches are"
    note = f"{batches} prepared together in place of {asked}, and more pages may be read"
    return [in_callers_words(f"{note}: a larger `--memory` holds more batches")]
