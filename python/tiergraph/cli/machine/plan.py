"""`tiergraph plan`: which hardware gives a training job most for a dollar."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ... import planning
from ...arguments.checks import MisfitError
from ...errors import InputError
from ..options import Json
from ..output import print_json, print_table


def plan(
    job: Annotated[
        Path,
        typer.Argument(metavar="JOB.json", help="What `tg.measure_job(...)._asdict()` says."),
    ],
    machine: Annotated[str, typer.Option(help="A machine of the catalogue of parts.")] = "a",
    gpu: Annotated[
        str, typer.Option(help="The GPU on which training was timed; `none` for a CPU.")
    ] = "a100",
    drive: Annotated[str, typer.Option(help="A drive of the catalogue of drives.")] = "p5510",
    budget: Annotated[
        float | None, typer.Option(help="The most dollars for five years, with electricity.")
    ] = None,
    parts: Annotated[
        Path | None, typer.Option(help="A catalogue of parts (TOML) in place of the program's.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say how many drives give a training job most for a dollar, and what limits it."""
    found = planning.plan(
        _read(job), machine=machine, gpu=gpu, drive=drive, budget=budget, parts=parts
    )
    if as_json:
        estimates = [estimate._asdict() for estimate in found.estimates]
        print_json(found._asdict() | {"estimates": estimates, "best": found.best._asdict()})
        return
    rows = [
        (
            f"{estimate.drives}{' *' if estimate == found.best else ''}",
            f"{estimate.drive_seconds * 1e3:.2f}",
            f"{estimate.link_seconds * 1e3:.2f}",
            f"{estimate.train_seconds * 1e3:.2f}",
            estimate.bottleneck,
            f"{estimate.seeds_per_second:,.0f}",
            f"{estimate.dollars:,.0f}",
            f"{estimate.seeds_per_second_and_dollar:.3f}",
        )
        for estimate in found.estimates
    ]
    headers = ("drives", "drives, ms", "link, ms", "training, ms", "limit")
    print_table((*headers, "seeds/s", "dollars", "seeds/s and dollar"), rows)
    print(f"* gives most for a dollar. {found.limit}")
    if found.one_more is not None:
        print(f"One drive more: {found.one_more:+.1%} seeds a second.")


def _read(file: Path) -> planning.Job:
    """The job of a file."""
    names = planning.Job._fields
    try:
        found = json.loads(planning.read_text(file))
    except ValueError as error:
        raise InputError.of("read the job", file, expected="JSON", got=error) from None
    if not isinstance(found, dict) or set(found) != set(names):
        expected = f"an object with {', '.join(f'`{name}`' for name in names)}"
        got = ", ".join(map(str, found)) if isinstance(found, dict) else type(found).__name__
        raise InputError.of("read the job", file, expected=expected, got=got or "no entry")
    for name, check in planning.OF_JOB.items():
        try:
            check(found[name])
        except MisfitError as misfit:
            expected, got = f"{misfit} as `{name}`", json.dumps(found[name])
            raise InputError.of("read the job", file, expected=expected, got=got) from None
    return planning.Job(**found)
