"""Batches of random loaders, each compared with the graph's own lists of neighbours."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

import tiergraph as tg

from .calls import WrongValueError
from .graphs import Expected, Random, pick

HAS_PYG = find_spec("torch_geometric") is not None


def check_loader(random: Random, graph: tg.Graph, wanted: Expected) -> str:
    """Goes through an epoch: seeds complete, every edge there, fanouts kept."""
    count = len(wanted.ids)
    if not HAS_PYG or count == 0:
        return "no loader"
    fanouts = [int(k) for k in random.choice([-1, 1, 2, 5], int(random.integers(1, 4)))]
    options: dict[str, Any] = {
        "batch_size": int(random.integers(1, 40)),
        "input_nodes": random.choice(wanted.ids, int(random.integers(1, 60))),
        "shuffle": bool(random.random() < 0.5),
        "disjoint": bool(random.random() < 0.3),
        "direction": pick(random, ["in", "out"]),
        "threads": int(random.integers(1, 3)),
        "window": int(random.integers(1, 4)),
        "seed": int(random.integers(100)),
    }
    call = f"NeighborLoader({fanouts}, **{options | {'input_nodes': len(options['input_nodes'])}})"
    src, dst, _ = wanted.arcs()
    expanded, neighbors = (dst, src) if options["direction"] == "in" else (src, dst)
    arcs: dict[tuple[int, int], int] = {}
    for pair in zip(wanted.ids[expanded].tolist(), wanted.ids[neighbors].tolist(), strict=True):
        arcs[pair] = arcs.get(pair, 0) + 1
    degrees = dict(
        zip(wanted.ids.tolist(), np.bincount(expanded, minlength=count).tolist(), strict=True)
    )
    seeds: list[int] = []
    try:
        loader = tg.NeighborLoader(graph.path, fanouts, **options)
    except tg.InputError as error:
        if "with the layout" in str(error):
            return f"no {options['direction']}-neighbours"
        raise
    for batch in loader:
        ids = batch.n_id.numpy().view(np.uint64)
        seeds += ids[: batch.batch_size].tolist()
        _check_edges(call, batch, ids, arcs)
        _check_counts(call, batch, ids, fanouts, degrees)
    if sorted(seeds) != sorted(options["input_nodes"].tolist()):
        raise WrongValueError(f"{call}: other seeds than the input's")
    return call


def _check_edges(call: str, batch: Any, ids: Any, arcs: dict[tuple[int, int], int]) -> None:
    """No edge that the graph has not, and none more often: a node is expanded once a batch."""
    rows, columns = batch.edge_index.numpy()
    taken: dict[tuple[int, int], int] = {}
    for column, row in zip(columns.tolist(), rows.tolist(), strict=True):
        pair = (column, int(ids[row]))
        taken[pair] = taken.get(pair, 0) + 1
    for (column, neighbor), often in taken.items():
        if often > arcs.get((int(ids[column]), neighbor), 0):
            raise WrongValueError(f"{call}: edge {int(ids[column])}, {neighbor}, {often} times")


def _check_counts(
    call: str, batch: Any, ids: Any, fanouts: list[int], degrees: dict[int, int]
) -> None:
    """Each node that a hop expands has as many neighbours as the fanout says, or all of its own."""
    found = np.bincount(batch.edge_index[1].numpy(), minlength=len(ids))
    first = 0
    for fanout, nodes in zip(fanouts, batch.num_sampled_nodes, strict=False):
        for node in range(first, first + nodes):
            degree = degrees[int(ids[node])]
            if found[node] != (degree if fanout < 0 else min(fanout, degree)):
                raise WrongValueError(f"{call}: {found[node]} neighbours of {int(ids[node])}")
        first += nodes
    if found[first:].any():
        raise WrongValueError(f"{call}: neighbours of nodes that no hop expands")
