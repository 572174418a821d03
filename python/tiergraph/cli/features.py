"""`tiergraph features`: what is stored with the vertices of a graph."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ..attached import features as attached
from ..attached import ordering
from ..errors import InputError
from . import build_options as b
from .options import GraphPath, Io, Json, Memory
from .output import print_fields, print_json
from .progress import Bars

app = typer.Typer(help="Change what is stored with the vertices of a graph.", no_args_is_help=True)


@app.callback()
def features() -> None:
    """Change what is stored with the vertices of a graph."""


@app.command("add")
def add(
    graph: GraphPath,
    features: b.Features = None,
    labels: b.Labels = None,
    split: b.Split = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Tables' column of the vertices' ids or names; without it, rows are in order.",
        ),
    ] = None,
    feature_columns: b.FeatureColumns = None,
    feature_dtype: b.FeatureDtype = None,
    allow_nan: b.AllowNan = False,
    overwrite: Annotated[
        bool | None, typer.Option("--overwrite", help="Replace what has the same name.")
    ] = None,
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Store features, labels and splits with a graph that is there: all of them, or none."""
    with Bars() as bars:
        stored = attached.add_features(
            graph,
            features=b.named(features, "x"),
            labels=b.named(labels, "y"),
            splits=b.splits(split),
            feature_dtype=feature_dtype,
            feature_columns=feature_columns.split(",") if feature_columns else None,
            by=by,
            allow_nan=allow_nan,
            overwrite=overwrite,
            memory=memory,
            progress=bars,
        )
    if as_json:
        print_json(stored)
    else:
        print_fields(stored)


@app.command("order")
def order(
    graph: GraphPath,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which features.")] = "x",
    by: Annotated[
        Literal["hot", "degree", "none"],
        typer.Option(help="What batches want most, most neighbours, or the graph's order."),
    ] = "hot",
    fanout: Annotated[
        str, typer.Option(metavar="A,B", help="Neighbours of each hop, nearest first.")
    ] = "25,10",
    batch_size: Annotated[int, typer.Option(min=1, help="Seeds a batch.")] = 1024,
    split: Annotated[
        str | None, typer.Option(help="Whose vertices are the seeds; default: train, or all.")
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=1, help="Batches that share reads; default: 4.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the epoch that is counted.")] = None,
    presample: Annotated[
        int | None, typer.Option(min=1, help="Batches that are counted; default: an epoch's.")
    ] = None,
    memory: Memory = None,
    io: Io = "auto",
    as_json: Json = False,
) -> None:
    """Put rows in the order in which batches want them, so that pages are read for many."""
    with Bars() as bars:
        report = ordering.order_features(
            graph,
            name,
            by=by,
            num_neighbors=_fanouts(fanout),
            batch_size=batch_size,
            input_nodes=split,
            window=window,
            seed=seed,
            presample=presample,
            memory=memory,
            io=io,
            progress=bars,
        )
    if as_json:
        print_json(report)
    else:
        print_fields(report)


@app.command("checksum")
def checksum(
    graph: GraphPath,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which features.")] = "x",
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Store a checksum of each row, for a graph of an older version; all new graphs have them."""
    with Bars() as bars:
        report = attached.checksum_features(graph, name, memory=memory, progress=bars)
    if as_json:
        print_json(report)
    else:
        print_fields(report)


def _fanouts(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError.of("use the fanout", text, expected="numbers such as 25,10") from error
