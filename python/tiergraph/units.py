"""Values in the units that their names say."""

from __future__ import annotations

from typing import Any

from . import _native


def readable(name: str, value: Any) -> str:
    """`value` in the unit that `name` says: `bytes_read` → `1.5 GiB`, `seconds` → `0.31 s`."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if name.endswith(("bandwidth", "ceiling")):
            return f"{_native.format_size(int(value))}/s"
        if "bytes_per" in name:
            return f"{value:.3f}"
        if "bytes" in name:
            return _native.format_size(int(value))
        if name.endswith(("seconds", "seconds_per_iteration")):
            return f"{value:.3f} s"
        if name.endswith("per_second"):
            return f"{value / 1e6:.1f} M/s"
        return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
