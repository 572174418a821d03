"""What PyTorch takes beside a run's memory: measured on a small step.

Activations, gradients and messages along edges grow with a batch's nodes and edges. So a step on a
made-up batch of a fraction of the largest one's size is watched, and its growth is multiplied.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from .. import pyg
from ..hetero import EdgeType, HeteroGraph
from .options import TrainOptions
from .typed.models import TypedShape

Step = Callable[[Any, Any], object]
"""A step of `(model, batch)`."""

Make = Callable[[dict[str, Any], int], Any]
"""A batch made up of a loader's `kept()` and a part."""

PART = 4
"""One in so many of the largest batch's nodes and edges is stepped on."""
MOST_BYTES = 64 << 20
"""Features of a batch that is stepped on, at most."""


def measured_bytes(model: Any, step: Step, row_bytes: int, kept: dict[str, Any], make: Make) -> int:
    """Bytes that `step` adds to this process on the largest batch of a loader with this `kept()`.

    `make` makes batches up, of one in so many of the largest one's nodes and edges; a node has
    `row_bytes` in its widest layer. Leaves the model and PyTorch's random numbers as they are.
    """
    if not kept["most_nodes"]:
        return 0
    torch = pyg.torch()
    part = int(max(PART, -(-kept["most_nodes"] * row_bytes // MOST_BYTES)))
    before = _resident("VmRSS")
    _forget_peak()
    with torch.random.fork_rng(devices=[]):
        # The first makes what any step needs once; what it leaves behind counts.
        for fraction in (2 * part, part):
            step(copy.deepcopy(model), make(kept, fraction))
    return max(_resident("VmHWM") - before, 0) * part


def made_up(kept: dict[str, Any], options: TrainOptions, width: int, part: int) -> Any:
    """A batch of one in `part` of the nodes and edges of the largest, as many by hop."""
    torch = pyg.torch()
    nodes = _scaled(kept["hop_nodes"], kept["most_nodes"], part)
    edges = _scaled(kept["hop_edges"], kept["most_edges"], part)
    found, sources, targets = 0, [], []
    for hop, count in enumerate(edges):
        found += nodes[hop]
        targets.append(torch.randint(found - nodes[hop], found, (count,)).sort().values)
        sources.append(torch.randint(found + nodes[hop + 1], (count,)))
    batch = pyg.geometric("data").Data(
        edge_index=torch.stack([torch.cat(sources), torch.cat(targets)])
    )
    total = sum(nodes)
    batch.num_nodes, batch.batch_size = total, nodes[0]
    batch.x = torch.zeros(total, width)
    batch.y = torch.zeros(total, dtype=torch.int64)
    batch.degree = torch.full((total,), max(sum(edges) // total, 1))
    batch.num_sampled_nodes, batch.num_sampled_edges = nodes, edges
    # Of links: pairs of seeds.
    pairs = torch.randint(nodes[0], (2, max(nodes[0] // 2, 1)))
    batch.edge_label_index, batch.edge_label = pairs, torch.ones(pairs.shape[1])
    batch.input_id, batch.e_id = torch.arange(0), torch.arange(sum(edges))
    return batch


def made_up_of_types(
    kept: dict[str, Any], options: TrainOptions, shape: TypedShape, graph: HeteroGraph, part: int
) -> Any:
    """As `made_up`, of a heterogeneous graph: of each type what fanouts and degrees expect."""
    torch = pyg.torch()
    nodes, edges = _expected(options, shape, graph)
    node_share = max(kept["most_nodes"] // part, 1) / sum(map(sum, nodes.values()))
    edge_share = max(kept["most_edges"] // part, 1) / max(sum(map(sum, edges.values())), 1)
    batch = pyg.geometric("data").HeteroData()
    for name, width in shape.widths.items():
        counts = [math.ceil(count * node_share) for count in nodes[name]]
        batch[name].num_sampled_nodes, batch[name].num_nodes = counts, sum(counts)
        if width:
            batch[name].x = torch.zeros(sum(counts), width)
    for edge_type in shape.edge_types:
        source, _, destination = edge_type
        counts = [math.ceil(count * edge_share) for count in edges[edge_type]]
        from_nodes, to_nodes = (batch[name].num_sampled_nodes for name in (source, destination))
        ends = []
        for hop, count in enumerate(counts):
            first, end = sum(to_nodes[:hop]), sum(to_nodes[: hop + 1])
            # No node was expanded that is not there.
            counts[hop] = count = count if end > first and sum(from_nodes[: hop + 2]) else 0
            targets = torch.randint(first, max(end, first + 1), (count,))
            sources = torch.randint(max(sum(from_nodes[: hop + 2]), 1), (count,))
            ends.append(torch.stack([sources, targets]))
        batch[edge_type].edge_index = torch.cat(ends, dim=1)
        batch[edge_type].num_sampled_edges = counts
    seeds = batch[shape.target]
    seeds.batch_size = seeds.num_sampled_nodes[0]
    seeds.y = torch.zeros(seeds.num_nodes, dtype=torch.int64)
    return batch


def _expected(
    options: TrainOptions, shape: TypedShape, graph: HeteroGraph
) -> tuple[dict[str, list[float]], dict[EdgeType, list[float]]]:
    """Nodes and edges of each type by hop, of a batch of one seed whose neighbours are all others.

    Nodes begin with the seeds.
    """
    counts, arcs = graph.num_nodes_dict, graph.num_edges_dict
    nodes = {name: [float(name == shape.target)] for name in shape.widths}
    edges: dict[EdgeType, list[float]] = {edge_type: [] for edge_type in shape.edge_types}
    for hop, fanout in enumerate(options.fanout):
        for name in nodes:
            nodes[name].append(0.0)
        for edge_type in shape.edge_types:
            source, _, destination = edge_type
            degree = arcs[edge_type] / max(counts[destination], 1)
            taken = nodes[destination][hop] * (degree if fanout == -1 else min(degree, fanout))
            edges[edge_type].append(taken)
            nodes[source][hop + 1] += taken
    return nodes, edges


def _scaled(hops: list[int], total: int, part: int) -> list[int]:
    """Counts by hop that come to a part of `total`."""
    seen = max(sum(hops), 1)
    return [max(count * total // (seen * part), 1) for count in hops]


def _resident(name: str) -> int:
    """Bytes of this process: `VmRSS` now, `VmHWM` at most."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(f"{name}:"))
    return int(line.split()[1]) << 10


def _forget_peak() -> None:
    """Has `VmHWM` begin anew; where that is not allowed, it stays, and too much is measured."""
    try:
        with open("/proc/self/clear_refs", "w") as references:
            references.write("5")
    except OSError:
        return
