"""What the scripts on a GPU take, each worded once."""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments(doc: str | None, scale: int = 24) -> argparse.ArgumentParser:
    """A parser with the graph's scale, where generated data goes, and where results go."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n\n")[0])
    parser.add_argument("--scale", type=int, default=scale, help="2^SCALE vertices, 16 edges each")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"), help="for generated data")
    parser.add_argument("--out", type=Path, help="one JSON object a row goes here")
    return parser
