"""`tiergraph generate`: a synthetic graph."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from .. import write
from .flags import with_flags_of
from .new_graph import NewGraph


@with_flags_of(NewGraph)
def generate(
    graph: NewGraph,
    kind: Annotated[
        Literal["rmat", "uniform", "sbm"],
        typer.Argument(help="rmat: Graph500's; uniform; sbm: communities."),
    ],
    scale: Annotated[
        int | None, typer.Option(min=1, max=40, help="rmat: 2^scale vertices.")
    ] = None,
    edge_factor: Annotated[
        int | None, typer.Option(min=1, help="rmat: edges a vertex; default: 16.")
    ] = None,
    vertices: Annotated[int | None, typer.Option(min=1, help="uniform, sbm: vertices.")] = None,
    edges: Annotated[int | None, typer.Option(min=1, help="uniform: edges.")] = None,
    communities: Annotated[int | None, typer.Option(min=1, help="sbm: communities.")] = None,
    mean_degree: Annotated[float | None, typer.Option(min=0, help="sbm: mean degree.")] = None,
    inside: Annotated[
        float | None, typer.Option(min=0, max=1, help="sbm: share of edges inside a community.")
    ] = None,
    weights: Annotated[
        Literal["unit", "byte"] | None,
        typer.Option(help="Random weights: in [0, 1), or integers 1 to 255."),
    ] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Columns of random features x.")
    ] = None,
    classes: Annotated[
        int | None, typer.Option(min=1, help="Classes of labels y, and a split; features follow.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The same seed, the same graph; default: 1.")
    ] = None,
) -> None:
    """Write a synthetic graph to OUT.tg."""
    graph.write(
        write.generate,
        kind,
        scale=scale,
        edge_factor=edge_factor,
        vertices=vertices,
        edges=edges,
        communities=communities,
        mean_degree=mean_degree,
        inside=inside,
        weights=weights,
        features=features,
        classes=classes,
        seed=seed,
    )
