"""What every script shares: its arguments, its table, and its raw results as JSON."""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from common import machine

BENCH = Path(__file__).resolve().parent.parent
DATA = BENCH / "data"
PATH_KEYS = {"graph", "source", "output", "damage"}

Record = dict[str, Any]


def arguments(doc: str, scale: int, repetitions: int = 5) -> argparse.ArgumentParser:
    """A parser with what all scripts take."""
    parser = argparse.ArgumentParser(
        description=doc.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--scale", type=int, default=scale, help="2^SCALE vertices, 16 edges each")
    parser.add_argument("--repetitions", type=int, default=repetitions, help="of each measurement")
    parser.add_argument("--threads", type=int, default=2, help="of every engine")
    parser.add_argument("--runs", type=Path, default=BENCH / "runs", help="where results go")
    parser.add_argument("--keep", action="store_true", help="keep the generated data")
    return parser


@contextmanager
def data_directory(script: str, keep: bool) -> Iterator[Path]:
    """`bench/data/SCRIPT`, empty; deleted at the end unless `keep`."""
    path = DATA / script
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        if not keep:
            shutil.rmtree(path)
            with suppress(OSError):  # another script's data is there
                DATA.rmdir()


def save(options: argparse.Namespace, script: str, cache_state: str, results: Any) -> Path:
    """Writes the raw results to `runs/DATE-MACHINE/SCRIPT.json`."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    path: Path = options.runs / f"{today}-{machine.label()}" / f"{script}.json"
    configuration = {k: v for k, v in vars(options).items() if not isinstance(v, Path)}
    text = json.dumps(
        {
            "script": script,
            "date": today,
            "commit": machine.commit(),
            "configuration": configuration,
            "device": machine.device(),
            "cache_state": cache_state,
            "results": without_paths(results),
        },
        indent=1,
        default=str,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    # Reasons of failures name files.
    path.write_text(text.replace(str(machine.ROOT), ".") + "\n")
    say(f"raw results: {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    return path


def without_paths(value: Any) -> Any:
    """`value` less what reports say about where files are."""
    if isinstance(value, dict):
        return {k: without_paths(v) for k, v in value.items() if k not in PATH_KEYS}
    if isinstance(value, list | tuple):
        return [without_paths(v) for v in value]
    return value


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints an aligned table: text to the left, numbers to the right."""
    cells = [list(map(str, header))] + [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    print(f"\n{title}")
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        print("  ".join([first, *rest]).rstrip())


def say(text: str) -> None:
    """A line on stderr, beside the table."""
    print(text, file=sys.stderr, flush=True)


def median(values: Sequence[float]) -> float | None:
    """The middle value; None of nothing."""
    return statistics.median(values) if values else None


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
