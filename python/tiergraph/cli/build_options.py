"""Flags about what is stored, which several commands that write have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..errors import InputError

FeatureDtype = Annotated[
    Literal["f32", "f16", "int8"] | None,
    typer.Option(help="How features are stored; int8 has a scale a row."),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]FILE",
        help="Vertices' features: .npy, .npz, Parquet, .csv; or a dataset. Name: x.",
    ),
]
FeatureColumns = Annotated[
    str | None, typer.Option(metavar="A,B", help="Columns of a table that are features.")
]
Labels = Annotated[
    list[str] | None, typer.Option(metavar="[NAME=]FILE", help="Vertices' labels. Name: y.")
]
Split = Annotated[
    list[str] | None,
    typer.Option(metavar="[NAME=]FILE", help="An .npz of masks or positions, or one a .npy file."),
]
AllowNan = Annotated[
    bool, typer.Option("--allow-nan", help="Store NaN in features and labels as it is.")
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="SRC,DST[,W]",
        help="Columns of a table or of text; default: by names such as src, dst, weight.",
    ),
]
FileFormat = Annotated[
    str | None,
    typer.Option("--format", help="text, u32, u64, npy, graphalytics, adjacency, …"),
]
EdgeValues = Annotated[
    list[str] | None,
    typer.Option(
        "--edge-values",
        "--values",
        metavar="NAME=FILE",
        help="A weight or time an edge, in the order of the edges: .npy, .csv, Parquet.",
    ),
]
NodeTimes = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=FILE", help="A time a vertex, to sample neighbours by."),
]
EdgeFeatures = Annotated[
    list[str] | None,
    typer.Option(metavar="[NAME=]FILE", help="Edges' features. Name: edge_attr."),
]


def named(given: list[str] | None, default: str) -> dict[str, str] | None:
    """Paths by name; one without a name has the default's."""
    if given is None:
        return None
    parts = [text.partition("=") for text in given]
    return {name if equals else default: path or name for name, equals, path in parts}


def by_name(given: list[str] | None) -> dict[str, str] | None:
    """Paths by name, which each must have."""
    for text in given or []:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise InputError.of("use the values", text, expected="NAME=FILE")
    return None if given is None else dict(text.split("=", 1) for text in given)


def splits(given: list[str] | None) -> Any:
    """One path, or paths by name; a path without a name has its file's."""
    if given is None or (len(given) == 1 and "=" not in given[0]):
        return given and given[0]
    return {
        name if equals else Path(name).name.split(".")[0]: path or name
        for name, equals, path in (text.partition("=") for text in given)
    }
