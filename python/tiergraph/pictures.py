"""Pictures by matplotlib, which is asked for where one is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .errors import InputError, IoError


def check() -> None:
    """Complains now, and not after the run, where pictures cannot be drawn."""
    _figure_class()


def figure(width: float, height: float) -> Any:
    """An empty figure of so many inches."""
    return _figure_class()(figsize=(width, height), layout="constrained")


def save(drawn: Any, path: Path, what: str) -> None:
    """Writes a figure of `what`, in the format that the suffix says (`.png`, `.svg`, `.pdf`)."""
    try:
        drawn.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise IoError.of(f"write {what}", path, got=error) from error


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError.of(
            "draw a curve", got="matplotlib is not installed", hint="pip install matplotlib"
        ) from error
    return Figure
