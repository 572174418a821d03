"""Feature rows in the order in which batches want them, so that pages are read for many rows."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .. import _native
from ..arguments.calls import checked
from ..arguments.checks import arguments, choice, text
from ..arguments.sizes import to_bytes
from ..graph import Graph, open
from ..inputs import seeds_of

PathLike = str | os.PathLike[str]

RowOrder: TypeAlias = Literal["hot", "degree", "none"]


@checked
@arguments(path=None, name=text, by=choice("hot", "degree", "none"))
def order_features(
    path: PathLike | Graph,
    name: str = "x",
    *,
    by: RowOrder = "hot",
    num_neighbors: Sequence[int] = (25, 10),
    batch_size: int = 1024,
    input_nodes: ArrayLike | str | None = None,
    window: int | None = None,
    direction: Literal["in", "out"] | None = None,
    seed: int | None = None,
    presample: int | None = None,
    memory: int | str | None = None,
    io: str | None = None,
    progress: _native.Progress | None = None,
) -> dict[str, Any]:
    """Moves the rows of the features `name`, once; everything else about the graph stays.

    `hot` samples an epoch of the batches that are meant to be trained on (`num_neighbors`,
    `batch_size`, `input_nodes`, by default the split `train` or all, `window` and `seed`;
    `presample` bounds its batches), counts which rows are wanted, and puts the hottest first; of
    three ways to arrange the others it takes the one that reads the fewest pages of a second
    epoch. `degree` puts the vertices with the most neighbours first, `none` is the graph's order.

    Streamed: `memory` bounds what is held. Graphs that are open keep what they opened. Returns what
    was counted (`hot`: windows, wanted rows, pages of every trial), `rows`, `bytes` and seconds.

    Raises `InputError` for features that the graph does not have, `BudgetError` where `memory` does
    not hold 28 bytes a vertex and the neighbours' index, `FormatError` for damaged pages.
    """
    graph = path if isinstance(path, Graph) else open(path)
    seeds = np.empty(0, dtype=np.uint64)
    if by == "hot":
        if input_nodes is None and "train" in graph.splits:
            input_nodes = "train"
        seeds = seeds_of(graph, input_nodes)
    options = {
        "by": by,
        "edges": [{"fanouts": list(num_neighbors)}],
        "features": [None],
        "inputs": [0],
        "batch_size": batch_size,
        "window": window,
        "direction": direction,
        "seed": seed,
        "presample": presample,
        "memory": to_bytes(memory),
        "io": io,
        "disjoint": False,
        "shuffle": True,
        "drop_last": False,
    }
    report: dict[str, Any] = json.loads(
        _native.order_features(graph.path, name, json.dumps(options), seeds, progress)
    )
    return report
