"""Training with and without the pipeline, for three models (Hyperion, figure 11).

`python bench/paper/hyperion_pipeline.py [--out DIR] [--row-bytes 4096] [--drives 12]`

The paper compares its pipeline with one stage after the other: up to 1.74 times for GraphSAGE, 1.39
for GCN, 1.23 for GAT. Here the pipeline prepares batches while others train (`together`); without
it a batch is prepared, with none begun ahead of it, and then trained on: the sum of the two, each
measured alone. Drives are modelled, and the graph is an RMAT graph with random features.

With `--multiprocessors 4 8 16 …`, batches are also prepared on at most so many of the GPU's:
`least` is the smallest number by which preparing takes at most 5 % longer than by the best, as the
paper's optimizer looks for the least share of the GPU that saturates preparing.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import _hyperion
from _hyperion import GPU, Row
from matplotlib.figure import Figure

sys.path[:0] = [str(GPU / "drives"), str(GPU)]

PAPER = {"GraphSAGE": 1.74, "GCN": 1.39, "GAT": 1.23}
"""The most that the paper's pipeline brings, of all its data sets."""


def main() -> None:
    """Measures, or draws saved rows."""
    args = parser().parse_args()
    _hyperion.run("hyperion_pipeline", args, lambda: measure(args), line, draw)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parsed = _hyperion.parser(__doc__)
    parsed.add_argument("--row-bytes", nargs="+", type=int, default=[512, 4096])
    parsed.add_argument("--drives", type=int, default=12)
    parsed.add_argument("--models", nargs="+", choices=list(PAPER), default=list(PAPER))
    parsed.add_argument("--scale", type=int, default=21)
    parsed.add_argument("--multiprocessors", nargs="+", type=int, default=[])
    return parsed


def measure(args: argparse.Namespace) -> Iterator[Row]:
    """A row for each size of a row and model."""
    import epochs

    own = epochs.parser().parse_args(["--scale", str(args.scale)])
    for row_bytes, model in itertools.product(args.row_bytes, args.models):
        own.model = model
        path = epochs.graph(own, row_bytes)
        run = functools.partial(measured, path, row_bytes, args.drives, own)
        alone = run(prefetch=1)
        row = run() | {
            "apart": alone["prepare"] + alone["train"],
            "prepare_alone": alone["prepare"],
        }
        # How long preparing takes does not depend on the model.
        if model == args.models[0] and args.multiprocessors:
            row |= least_share([run(multiprocessors=most) for most in args.multiprocessors])
        yield row


def measured(
    path: Path,
    row_bytes: int,
    drives: int,
    own: argparse.Namespace,
    prefetch: int | None = None,
    multiprocessors: int | None = None,
) -> Row:
    """Times of batches whose rows the GPU reads, with so many begun ahead by so much of the GPU."""
    import epochs

    own.prefetch, own.multiprocessors = prefetch, multiprocessors
    row: Row = epochs.measured(path, row_bytes, drives, ["gpu"], own)[0]
    return row


def least_share(by_share: list[Row]) -> Row:
    """The fewest multiprocessors that prepare at most 5 % slower than the best number of them."""
    best = min(row["prepare"] for row in by_share)
    enough = [row for row in by_share if row["prepare"] <= 1.05 * best]
    least = min(enough, key=lambda row: row["multiprocessors"])
    told = ("multiprocessors", "prepare", "together")
    return {
        "least": least["multiprocessors"],
        "together_by_least": least["together"],
        "by_share": [{key: row[key] for key in told} for row in by_share],
    }


def line(row: Row) -> str:
    """A row as a line of the table."""
    what = f"{row['model']:9} {row['row_bytes']:5} B x {row['drives']:2}"
    times = f"apart {row['apart'] * 1e3:7.2f}, together {row['together'] * 1e3:7.2f} ms a batch"
    text = f"{what}: {times}: {row['apart'] / row['together']:.2f} x"
    if "least" in row:
        together = f"together {row['together_by_least'] * 1e3:.2f} ms"
        text += f"; {row['least']} multiprocessors are enough to prepare: {together}"
    return text


def draw(rows: list[Row]) -> Figure:
    """How much faster together is than apart, beside the most of the paper."""
    sizes = sorted({row["row_bytes"] for row in rows})
    models = list(dict.fromkeys(row["model"] for row in rows))
    gain = {(r["row_bytes"], r["model"]): r["apart"] / r["together"] for r in rows}
    bars = {f"rows of {size} B": [gain.get((size, m), 0.0) for m in models] for size in sizes}
    bars["paper, at most"] = [PAPER[model] for model in models]
    figure, (panel,) = _hyperion.panels(1, width=5.5)
    _hyperion.groups(panel, models, bars, "together, times as fast as apart", "%.2f")
    panel.axhline(1, linestyle=":", color="0.5")
    return figure


if __name__ == "__main__":
    main()
