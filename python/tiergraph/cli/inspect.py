"""`tiergraph info` and `tiergraph verify`: what a graph is, and whether its bytes are right."""

from __future__ import annotations

import json
import os
from typing import Any, Literal

from .. import _native
from .. import graph as tg
from ..errors import FormatError
from ..hetero import is_hetero, open_hetero
from .histogram import print_histogram
from .options import GraphPath, Json
from .output import print_fields, print_json, print_table
from .progress import Bars


def info(graph: GraphPath, as_json: Json = False) -> None:
    """Print counts, codec, order, bytes an edge and degrees; of a heterogeneous graph, its types.

    Degrees are counted by powers of two: how many vertices have 0, 1, 2 to 3, 4 to 7, …
    """
    if is_hetero(graph):
        _print(open_hetero(graph).info(), as_json)
        return
    opened = tg.open(graph)
    directions: tuple[Literal["out", "in"], ...] = ("out", "in") if opened.directed else ("out",)
    counted = {direction: opened.degree_histogram(direction) for direction in directions}
    if as_json:
        print_json(opened.info() | {"degrees": counted})
        return
    print_fields(opened.info())
    for direction, counts in counted.items():
        name = f"{direction}-degree" if opened.directed else "degree"
        print_histogram(name, "vertices", counts, stderr=False)


def _print(fields: dict[str, Any], as_json: bool) -> None:
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
