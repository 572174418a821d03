"""`tiergraph build`: a graph from files of edges."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from .. import write
from ..sources import datasets
from . import build_options as b
from .flags import with_flags_of
from .new_graph import NewGraph


@with_flags_of(NewGraph)
def build(
    graph: NewGraph,
    sources: Annotated[
        list[Path], typer.Argument(metavar="SOURCE...", help="Files of edges, or a dataset.")
    ],
    columns: b.Columns = None,
    file_format: b.FileFormat = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="auto|none|N|NAME",
            help="The weights' column of a text file or table; default: the one called so.",
        ),
    ] = None,
    ids: Annotated[
        Literal["dense", "map", "names"] | None,
        typer.Option(
            help="Ids are 0 to |V|-1, any and stored, or text; default: map if many have no edge."
        ),
    ] = None,
    vertices: Annotated[int | None, typer.Option(min=1, help="|V|: ids are 0 to |V|-1.")] = None,
    features: b.Features = None,
    feature_columns: b.FeatureColumns = None,
    labels: b.Labels = None,
    split: b.Split = None,
    allow_nan: b.AllowNan = False,
    edge_values: b.EdgeValues = None,
    edge_features: b.EdgeFeatures = None,
    node_times: b.NodeTimes = None,
) -> None:
    """Write OUT.tg from text, .npy, BVGraph, Parquet, Feather or Arrow files, or a dataset.

    A folder of GraphBolt's, IGBH's or OGB's with several types becomes a heterogeneous graph.
    """
    source = sources[0] if len(sources) == 1 else sources
    if datasets.has_types(source):
        others = {
            "--columns": columns,
            "--format": file_format,
            "--weights": weights,
            "--ids": ids,
            "--vertices": vertices,
            "--features": features,
            "--feature-columns": feature_columns,
            "--labels": labels,
            "--split": split,
            "--allow-nan": allow_nan or None,
            "--edge-values": edge_values,
            "--edge-features": edge_features,
            "--node-times": node_times,
        }
        graph.write_typed(source, others)
        return
    graph.write(
        write.build,
        source,
        columns=columns.split(",") if columns else None,
        vertices=vertices,
        format=file_format,
        weights=weights,
        ids=ids,
        features=b.named(features, "x"),
        labels=b.named(labels, "y"),
        splits=b.splits(split),
        feature_columns=feature_columns.split(",") if feature_columns else None,
        allow_nan=allow_nan,
        edge_values=b.by_name(edge_values),
        edge_features=b.named(edge_features, "edge_attr"),
        node_times=b.by_name(node_times),
    )
