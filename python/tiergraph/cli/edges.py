"""`tiergraph edges`: what is stored with the edges of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..attached import edges as stored
from . import build_options as b
from .options import GraphPath, Json, Memory
from .output import print_fields, print_json
from .progress import Bars

app = typer.Typer(help="Change what is stored with the edges of a graph.", no_args_is_help=True)


@app.callback()
def edges() -> None:
    """Change what is stored with the edges of a graph."""


@app.command("add")
def add(
    graph: GraphPath,
    sources: Annotated[
        list[Path], typer.Argument(metavar="SOURCE...", help="What the graph was built from.")
    ],
    values: b.EdgeValues = None,
    features: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]FILE", help="Edges' features. Name: edge_attr."),
    ] = None,
    node_times: b.NodeTimes = None,
    feature_dtype: b.FeatureDtype = None,
    columns: b.Columns = None,
    file_format: b.FileFormat = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace all values that the edges have.")
    ] = False,
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Store weights, times and features of edges, in the order of SOURCE, for samplers.

    Without --values and --features: a third column as `weight`, or all that a dataset has.
    """
    with Bars() as bars:
        report = stored.add_edge_values(
            graph,
            sources[0] if len(sources) == 1 else sources,
            values=b.by_name(values),
            features=b.named(features, "edge_attr"),
            node_times=b.by_name(node_times),
            feature_dtype=feature_dtype,
            columns=columns.split(",") if columns else None,
            format=file_format,
            overwrite=overwrite,
            memory=memory,
            progress=bars,
        )
    if as_json:
        print_json(report)
    else:
        print_fields(report)
