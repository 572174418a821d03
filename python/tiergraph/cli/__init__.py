"""The `tiergraph` command: progress on stderr, results on stdout or in files.

Exit codes: 0, 1 for an error that is printed as `error: …` with a hint, 2 for wrong usage, 130
after Ctrl-C. With `TIERGRAPH_TRACEBACK=1` in the environment, where an error came from is shown.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from .._native import __version__
from ..arguments.words import as_command_line
from ..errors import Error, InternalError
from . import (
    algorithms,
    build,
    components,
    demo,
    edges,
    export,
    features,
    generate,
    inspect,
    registered,
    report,
    train,
)
from .machine import bench, doctor, drive, plan

INTERRUPTED = 130
TRACEBACK = "TIERGRAPH_TRACEBACK"
WHERE = f"`{TRACEBACK}=1` in the environment shows where it came from"

app = typer.Typer(
    name="tiergraph",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tiergraph {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Graphs that do not fit in memory, at the speed of this machine's SSDs."""


app.command("generate")(generate.generate)
app.command("build")(build.build)
app.command("components")(components.components)
app.command("info")(inspect.info)
app.command("verify")(inspect.verify)
app.command("export")(export.export)
app.command("pagerank")(algorithms.pagerank)
app.command("wcc")(algorithms.wcc)
app.command("bfs")(algorithms.bfs)
app.command("sssp")(algorithms.sssp)
for name, command in registered.commands().items():
    app.command(name)(command)
app.command("walks")(export.walks)
app.command("train")(train.train)
app.command("report")(report.report)
app.add_typer(features.app, name="features")
app.add_typer(edges.app, name="edges")
app.add_typer(drive.app, name="drive")
app.add_typer(bench.app, name="bench")
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("plan")(plan.plan)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    with as_command_line():
        try:
            app(args=arguments)
        except SystemExit as stop:
            if stop.code == INTERRUPTED:
                _complain("interrupted")
            return stop.code if isinstance(stop.code, int) else 0
        except Exception as error:
            if os.environ.get(TRACEBACK):
                traceback.print_exception(error)
            ours = isinstance(error, Error)
            _complain(str(error) if ours else f"{InternalError.wrapping(error)}; {WHERE}")
            return 1
        return 0


def _complain(message: str) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text.assemble(("error: ", "bold red"), message))
