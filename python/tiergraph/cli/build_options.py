"""The flags of `build` and `generate` that say how a graph is written."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Undirected = Annotated[
    bool | None,
    typer.Option("--undirected/--directed", help="Whether each edge goes both ways."),
]
Dedup = Annotated[
    bool | None, typer.Option("--dedup/--keep-duplicates", help="Keep one of several equal edges.")
]
DropSelfLoops = Annotated[
    bool | None, typer.Option("--drop-self-loops/--keep-self-loops", help="Drop edges v to v.")
]
Order = Annotated[
    Literal["none", "degree", "auto"] | None, typer.Option(help="Arrangement of vertices on disk.")
]
Codec = Annotated[Literal["packed", "raw"] | None, typer.Option(help="How edges are stored.")]
Layouts = Annotated[
    Literal["analytics", "training", "both", "sampling"] | None,
    typer.Option("--for", help="What the graph is for."),
]
Stripe = Annotated[
    str | None, typer.Option(metavar="DIR,DIR", help="Deal blocks over directories, one a drive.")
]
BlockBytes = Annotated[
    str | None, typer.Option("--block-size", metavar="SIZE", help="Bytes a block, a power of two.")
]
FeatureDtype = Annotated[
    Literal["f32", "f16", "int8"] | None,
    typer.Option(help="How features are stored; int8 has a scale a row."),
]
Overwrite = Annotated[bool | None, typer.Option("--overwrite", help="Replace OUT.tg.")]


def directories(stripe: str | None) -> list[str] | None:
    """The directories of `--stripe`."""
    return None if stripe is None else stripe.split(",")
