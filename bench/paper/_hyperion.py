"""What the commands of Hyperion's figures share: arguments, saved rows, and how figures look.

A command measures on a GPU, or draws rows that were saved before (`--rows FILE`), which needs none.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Row = dict[str, Any]

GPU = Path(__file__).resolve().parents[1] / "gpu"
"""The scripts on a GPU, whose measurements these are."""
SHADES = ("0.2", "0.45", "0.65", "0.85", "0.95", "1")


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser with where rows and figures go, and rows to draw without measuring."""
    parsed = argparse.ArgumentParser(description=(doc or "").split("\n\n")[0])
    parsed.add_argument("--out", type=Path, default=Path(), help="folder of rows and figure")
    parsed.add_argument("--rows", type=Path, help="draw these rows, and measure nothing")
    return parsed


def run(
    name: str,
    args: argparse.Namespace,
    measure: Callable[[], Iterable[Row]],
    line: Callable[[Row], str],
    draw: Callable[[list[Row]], Figure],
) -> None:
    """Measures, prints and saves each row, or reads them, and draws the figure of them."""
    rows: list[Row] = []
    if args.rows:
        rows = saved(args.rows)
    else:
        check_gpu(name)
        args.out.mkdir(parents=True, exist_ok=True)
        for row in measure():
            print(line(row), flush=True)
            rows.append(row)
            text = "".join(json.dumps(r) + "\n" for r in rows)
            (args.out / f"gpu_{name}.jsonl").write_text(text)
    target = args.out / f"{name}.png"
    figure = draw(rows)
    figure.tight_layout()
    figure.savefig(target, dpi=150)
    plt.close(figure)
    print(f"figure: {target}")


def saved(path: Path) -> list[Row]:
    """The rows of a file, one at least."""
    try:
        rows = [json.loads(text) for text in path.read_text().splitlines() if text]
    except (OSError, ValueError) as error:
        sys.exit(f"cannot draw the rows of {path}: {error}")
    if not rows:
        sys.exit(f"cannot draw the rows of {path}: it has none; measure without `--rows`")
    return rows


def check_gpu(name: str) -> None:
    """Ends the process, in one sentence, where there is no GPU."""
    import tiergraph as tg

    try:
        tg.cuda_devices()
    except tg.Error as error:
        sys.exit(f"{name} measures on a GPU, and draws without one (`--rows FILE`): {error}")


def groups(
    panel: Axes,
    names: Sequence[str],
    bars: dict[str, Sequence[float]],
    unit: str,
    label: str = "%.1f",
) -> None:
    """Bars side by side for each name, one for each key of `bars`."""
    width = 0.8 / max(len(bars), 1)
    for number, (key, heights) in enumerate(bars.items()):
        places = [i + number * width for i in range(len(names))]
        shade = SHADES[number % len(SHADES)]
        drawn = panel.bar(places, heights, 0.95 * width, color=shade, edgecolor="0", label=key)
        panel.bar_label(drawn, fmt=label, fontsize=6)
    middle = 0.4 - width / 2
    panel.set_xticks([i + middle for i in range(len(names))], names, fontsize=8)
    panel.set_ylabel(unit)
    panel.set_ylim(0, 1.35 * max(itertools.chain(*bars.values()), default=1))
    panel.legend(frameon=False, fontsize=7, ncols=2, loc="upper left")


def curves(panel: Axes, lines: dict[str, Sequence[tuple[float, float]]], x: str, y: str) -> None:
    """A line for each key, of points in the order of x."""
    for number, (key, points) in enumerate(lines.items()):
        xs, ys = zip(*sorted(points), strict=True)
        marker, style = "os^vD*"[number % 6], ("-", "--", ":", "-.")[number % 4]
        shade = SHADES[min(number, 2)]
        panel.plot(xs, ys, style, marker=marker, color=shade, fillstyle="none", label=key)
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    panel.set_ylim(bottom=0)
    panel.legend(frameon=False, fontsize=7)


def panels(count: int, width: float = 4.2) -> tuple[Figure, list[Axes]]:
    """A figure of panels side by side."""
    figure, axes = plt.subplots(1, count, figsize=(width * count, 3.4), squeeze=False)
    return figure, list(axes[0])
