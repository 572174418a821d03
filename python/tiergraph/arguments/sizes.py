"""Byte sizes as arguments: `"2GiB"`, `"512M"` or a plain number."""

from __future__ import annotations

from .. import _native


def to_bytes(size: int | str | None) -> int | None:
    """The number of bytes that `size` means; None stays None (the native default)."""
    return _native.parse_size(size) if isinstance(size, str) else size
