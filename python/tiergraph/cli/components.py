"""`tiergraph components`: what belongs together by pairs of ids, without a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .. import pairs, results
from . import build_options as b
from .options import Json, Memory, Output, Threads
from .output import print_fields, print_json
from .progress import Bars


def components(
    sources: Annotated[
        list[Path], typer.Argument(metavar="PAIRS...", help="Files or tables of pairs; -: stdin.")
    ],
    output: Output = None,
    columns: b.Columns = None,
    file_format: b.FileFormat = None,
    ids: Annotated[
        Literal["names"] | None, typer.Option(help="Ids of text files are names.")
    ] = None,
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Connected components of pairs of ids or names: one pass, nothing left on disk."""
    if output is not None:
        check = results.check_holds_text if ids == "names" else results.check_suffix
        check(str(output))
    with Bars() as bars:
        found = pairs.components(
            sources[0] if len(sources) == 1 else sources,
            columns=columns.split(",") if columns else None,
            format=file_format,
            ids=ids,
            memory=memory,
            threads=threads,
            progress=bars,
        )
    run: dict[str, Any] = {
        "pairs": found.pairs,
        "vertices": len(found),
        "components": found.components,
        "largest": found.largest,
        "seconds": found.seconds,
    }
    if output is not None:
        found.write(str(output))
        run["output"] = str(output)
    if as_json:
        print_json(run)
    else:
        print_fields(run)
