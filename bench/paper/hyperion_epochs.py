"""Epochs by who starts the reads, for three models (Hyperion, figures 8 and 9).

`python bench/paper/hyperion_epochs.py [--out DIR] [--row-bytes 4096] [--drives 12]`

The paper has GIDS (coupled reads and a page cache) and in-memory training beside it, on 12 Intel P5510: up to 3.1
times GIDS, and 88 to 97 % of Legion, which has in host memory what GPU memory leaves. Here drives are modelled over
files in memory, the graph is an RMAT graph with random features, and every way is this library's,
so that they differ in who starts reads of rows alone, and `coupled_cache` also in that a page cache
has the GPU memory of placed rows: `bench/gpu/drives/epochs.py` measures them.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator

import _hyperion
from _hyperion import GPU, Row
from matplotlib.figure import Figure

sys.path[:0] = [str(GPU / "drives"), str(GPU)]

MODELS = ("GraphSAGE", "GCN", "GAT")
WAYS = ("coupled_cache", "coupled", "host", "gpu", "host_memory", "memory")


def main() -> None:
    """Measures, or draws saved rows."""
    args = parser().parse_args()
    _hyperion.run("hyperion_epochs", args, lambda: measure(args), line, draw)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parsed = _hyperion.parser(__doc__)
    parsed.add_argument("--row-bytes", nargs="+", type=int, default=[512, 4096])
    parsed.add_argument("--drives", type=int, default=12)
    parsed.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parsed.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parsed.add_argument("--scale", type=int, default=21)
    return parsed


def measure(args: argparse.Namespace) -> Iterator[Row]:
    """A row for each size of a row, model and way."""
    import epochs

    own = epochs.parser().parse_args(["--scale", str(args.scale)])
    for row_bytes, model in itertools.product(args.row_bytes, args.models):
        own.model = model
        path = epochs.graph(own, row_bytes)
        yield from epochs.measured(path, row_bytes, args.drives, args.ways, own)


def line(row: Row) -> str:
    """A row as a line of the table."""
    times = [f"{key} {row[key] * 1e3:7.2f}" for key in ("prepare", "train", "together")]
    what = f"{row['model']:9} {row['row_bytes']:5} B x {row['drives']:2} {row['way']:11}"
    return f"{what} ms a batch: {', '.join(times)}"


def draw(rows: list[Row]) -> Figure:
    """Batches a second, by model and way, a panel for each size of a row."""
    sizes = sorted({row["row_bytes"] for row in rows})
    figure, panels = _hyperion.panels(len(sizes), width=5)
    for panel, size in zip(panels, sizes, strict=True):
        here = [row for row in rows if row["row_bytes"] == size]
        models = list(dict.fromkeys(row["model"] for row in here))
        rate = {(row["way"], row["model"]): 1 / row["together"] for row in here}
        ways = [way for way in WAYS if any(way == key for key, _ in rate)]
        bars = {way: [rate.get((way, model), 0.0) for model in models] for way in ways}
        _hyperion.groups(panel, models, bars, "batches a second", "%.0f")
        panel.set_title(f"rows of {size} B, {here[0]['drives']} modelled drives", fontsize=9)
    return figure


if __name__ == "__main__":
    main()
