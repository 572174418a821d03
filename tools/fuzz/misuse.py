"""Calls with arguments that make no sense: they work, or raise tiergraph's own errors."""

from __future__ import annotations

from typing import Any

import numpy as np

import tiergraph as tg

from .graphs import Expected, Random, pick

MANY = 2**31

GARBAGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    MANY,
    2**63,
    2**64,
    10**20,
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    1j,
    "",
    "a",
    "1",
    b"x",
    [],
    [0],
    [-1],
    ["a"],
    [[0, 1]],
    {},
    object(),
    np.array([]),
    np.array([0.5]),
    np.array(["a"]),
    np.array([[0, 1]]),
    np.zeros((2, 2, 2)),
)
"""What may be handed over by mistake."""

METHODS: dict[str, tuple[str, ...]] = {
    "pagerank": ("damping", "iterations", "tolerance", "sources", "trace", "progress"),
    "wcc": ("trace", "progress"),
    "bfs": ("source", "trace", "progress"),
    "sssp": ("source", "trace", "progress"),
    "propagate": ("x", "reduce", "transpose", "weights"),
    "degrees": ("direction",),
    "propagate_bytes": ("columns",),
}

ENDS = np.arange(2)

OPENING = ("memory", "io", "threads", "device", "device_memory", "transfers", "modelled_bandwidth")
BUILDING = (
    *("memory", "threads", "undirected", "dedup", "drop_self_loops", "ids", "order", "codec"),
    *("layouts", "stripe", "block_bytes", "vertices", "columns", "format", "weights"),
    *("features", "labels", "splits", "feature_dtype", "edge_values", "edge_features"),
)


def check_misuse(random: Random, graph: tg.Graph, _: Expected) -> str:
    """Hands one or two parameters of a random call something out of `GARBAGE`."""
    name = pick(random, [*METHODS, "open", "build"])
    parameters = {**METHODS, "open": OPENING, "build": BUILDING}[name]
    chosen = random.choice(parameters, min(len(parameters), int(random.integers(1, 3))), False)
    given = {str(p): pick(random, GARBAGE) for p in chosen}
    if given.get("iterations") is MANY:
        # That is a number of iterations, and takes hours.
        given["iterations"] = 3
    if name in ("bfs", "sssp"):
        given.setdefault("source", 0)
    if name == "propagate":
        given.setdefault("x", np.ones(graph.vertices))
    call = f"{name}({', '.join(f'{k}={v!r}' for k, v in given.items())})"
    try:
        if name == "open":
            tg.open(graph.path, **given)
        elif name == "build":
            tg.build((ENDS, ENDS + 1), graph.path + "-2.tg", overwrite=True, **given)
        else:
            getattr(graph, name)(**given)
    except tg.Error:
        pass
    return call
