"""DGL's GraphBolt: sampling with de-duplication from a graph in memory."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("DGLBACKEND", "pytorch")  # else DGL writes a file to the home directory

import dgl
import dgl.graphbolt as gb
import numpy as np
import torch


def load(directory: str, threads: str) -> OnGraphBolt:
    """The graph in `directory` as `training_data.write_csc` left it."""
    torch.set_num_threads(int(threads))
    return OnGraphBolt(Path(directory))


class OnGraphBolt:
    """The commands."""

    def __init__(self, directory: Path) -> None:
        indptr, indices = (
            torch.from_numpy(np.load(directory / f"{name}.npy")) for name in ("indptr", "indices")
        )
        self._graph = gb.fused_csc_sampling_graph(indptr, indices.to(torch.int32))

    def versions(self) -> dict[str, str]:
        """What is measured."""
        return {"dgl": dgl.__version__, "torch": torch.__version__}

    def sample(self, seeds: str, batch_size: int, fanouts: list[int]) -> dict[str, Any]:
        """An epoch over the seeds in the file `seeds`: edges, nodes and seconds.

        What `gb.NeighborSampler` does for each batch, without the pipes around it.
        """
        order = torch.from_numpy(np.load(seeds)).to(torch.int32)
        edges = nodes = 0
        began = time.perf_counter()
        for batch in torch.split(order[torch.randperm(len(order))], batch_size):
            frontier = batch
            for fanout in fanouts:
                found = self._graph.sample_neighbors(frontier, torch.tensor([fanout])).sampled_csc
                edges += len(found.indices)
                frontier, _ = gb.unique_and_compact_csc_formats(found, frontier)
            nodes += len(frontier)
        seconds = time.perf_counter() - began
        return {"edges": edges, "nodes": nodes, "seconds": seconds}
