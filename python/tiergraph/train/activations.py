"""What PyTorch takes beside a run's memory: measured on a small step.

Activations, gradients and messages along edges grow with a batch's nodes and edges. So a step on a
made-up batch of a fraction of the largest one's size is watched, and its growth is multiplied.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from .. import pyg
from .options import TrainOptions

Step = Callable[[Any, Any], object]
"""A step of `(model, batch)`."""

PART = 4
"""One in so many of the largest batch's nodes and edges is stepped on."""
MOST_BYTES = 64 << 20
"""Features of a batch that is stepped on, at most."""


def measured_bytes(
    model: Any, step: Step, options: TrainOptions, width: int, kept: dict[str, Any]
) -> int:
    """Bytes that `step` adds to this process on the largest batch of a loader with this `kept()`.

    Leaves the model and PyTorch's random numbers as they are. On an accelerator, which has its own
    memory, there is nothing to measure: 0.
    """
    if options.device != "cpu" or not kept["most_nodes"]:
        return 0
    torch = pyg.torch()
    row_bytes = 4 * max(width, options.hidden)
    part = int(max(PART, -(-kept["most_nodes"] * row_bytes // MOST_BYTES)))
    before = _resident("VmRSS")
    _forget_peak()
    with torch.random.fork_rng(devices=[]):
        # The first makes what any step needs once; what it leaves behind counts.
        for fraction in (2 * part, part):
            step(copy.deepcopy(model), made_up(kept, options, width, fraction))
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
