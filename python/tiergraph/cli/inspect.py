"""`tiergraph info` and `tiergraph verify`: what a graph is, and whether its bytes are right."""

from __future__ import annotations

import json
import os

from .. import _native
from .. import graph as tg
from ..errors import FormatError
from ..hetero import is_hetero, open_hetero
from .options import GraphPath, Json
from .output import print_fields, print_json, print_table
from .progress import Bars


def info(graph: GraphPath, as_json: Json = False) -> None:
    """Print counts, codec, order and bytes an edge; of a heterogeneous graph, its types."""
    fields = open_hetero(graph).info() if is_hetero(graph) else tg.open(graph).info()
    if as_json:
        print_json(fields)
    else:
        print_fields(fields)


def verify(graph: GraphPath, as_json: Json = False) -> None:
    """Read every byte and compare every checksum; exit 1 if anything is damaged."""
    with Bars() as bars:
        report = json.loads(_native.verify(os.fspath(graph), bars))
    damage = report["damage"]
    if as_json:
        print_json(report)
    elif damage:
        rows = [(d["file"], str(d["block"]), str(d["offset"]), d["what"]) for d in damage]
        print_table(("file", "block", "offset", "damage"), rows)
    else:
        print_fields(report)
    if damage:
        raise FormatError.of(
            "vouch for",
            graph,
            got=f"{len(damage)} places are damaged",
            hint="rebuild the graph, or restore these files from a copy",
        )
