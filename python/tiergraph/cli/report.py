"""`tiergraph report`: runs as a page to look at."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import typer

from .. import report as of_runs
from ..errors import InputError


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN.json…", help="What `pagerank --json`, `train --json` and the like printed."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.html", help="The page to write.")
    ] = Path("report.html"),
    trace: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="What --trace wrote, of the runs in their order."),
    ] = None,
) -> None:
    """Draw one run, or several side by side: one HTML file that needs no network."""
    of_runs.check(output)
    traces = trace or []
    if len(traces) > len(runs):
        raise InputError.of(
            "report", expected=f"a trace a run, {len(runs)} at most", got=str(len(traces))
        )
    of_runs.write([of_runs.read(*pair) for pair in zip_longest(runs, traces)], output)
    print(f"The report is in {output}.")
