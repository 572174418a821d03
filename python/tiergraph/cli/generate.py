"""`tiergraph generate`: a synthetic graph."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from .. import write
from . import build_options as b
from .options import Json, Memory, OutPath, Threads
from .output import print_fields, print_json
from .progress import Bars


def generate(
    kind: Annotated[
        Literal["rmat", "uniform", "sbm"],
        typer.Argument(help="rmat: Graph500's; uniform; sbm: communities."),
    ],
    out: OutPath,
    scale: Annotated[
        int | None, typer.Option(min=1, max=40, help="rmat: 2^scale vertices.")
    ] = None,
    edge_factor: Annotated[int | None, typer.Option(min=1, help="rmat: edges a vertex.")] = None,
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
    feature_dtype: b.FeatureDtype = None,
    classes: Annotated[
        int | None, typer.Option(min=1, help="Classes of labels y, and a split; features follow.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed, the same graph.")] = None,
    undirected: b.Undirected = None,
    dedup: b.Dedup = None,
    drop_self_loops: b.DropSelfLoops = None,
    order: b.Order = None,
    codec: b.Codec = None,
    layouts: b.Layouts = None,
    stripe: b.Stripe = None,
    block_bytes: b.BlockBytes = None,
    overwrite: b.Overwrite = None,
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Write a synthetic graph to OUT.tg."""
    with Bars() as bars:
        stats = write.generate(
            kind,
            out,
            progress=bars,
            scale=scale,
            edge_factor=edge_factor,
            vertices=vertices,
            edges=edges,
            communities=communities,
            mean_degree=mean_degree,
            inside=inside,
            weights=weights,
            features=features,
            feature_dtype=feature_dtype,
            classes=classes,
            seed=seed,
            undirected=undirected,
            dedup=dedup,
            drop_self_loops=drop_self_loops,
            order=order,
            codec=codec,
            layouts=layouts,
            stripe=b.directories(stripe),
            block_bytes=block_bytes,
            overwrite=overwrite,
            memory=memory,
            threads=threads,
        )
    if as_json:
        print_json(stats)
    else:
        print_fields(stats)
