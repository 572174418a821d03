"""`tiergraph doctor`: what this machine gives tiergraph, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...machine import diagnosis
from ..options import Json
from ..output import print_json


def doctor(
    path: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder on the drive to be asked.")
    ] = Path(),
    as_json: Json = False,
) -> None:
    """Say what works here, what its lack costs, and how to get it."""
    findings = diagnosis.doctor(path)
    if as_json:
        print_json({"findings": [finding._asdict() for finding in findings]})
        return
    for finding in findings:
        print(f"{'works' if finding.works else 'missing':8} {finding.name}: {finding.found}")
        if not finding.works:
            print(f"{'':8} without it: {finding.without}")
            print(f"{'':8} to get it: {finding.hint}")
