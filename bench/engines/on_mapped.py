"""The plain PyTorch way: features in a memory map, neighbours in memory, a `DataLoader` around.

Neighbours are sampled in NumPy, uniformly without replacement, and de-duplicated, as tiergraph
does it; processes of the `DataLoader` sample and index the map beside the one that trains.
"""

from __future__ import annotations

import mmap
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader

Ids = NDArray[np.int64]


def load(directory: str) -> OnMapped:
    """The neighbours that `training_data.write_csc` left in `directory`."""
    return OnMapped(Path(directory))


class Sampler:
    """K-hop sampling from a compressed sparse graph in memory."""

    def __init__(self, indptr: Ids, indices: NDArray[np.int32], fanouts: list[int]) -> None:
        self._indptr, self._indices, self._fanouts = indptr, indices, fanouts
        self._places = np.full(len(indptr) - 1, -1, dtype=np.int32)

    def sample(self, seeds: Ids, random: np.random.Generator) -> tuple[Ids, Ids]:
        """Node ids, seeds first, and local edges of shape (2, e)."""
        nodes, frontier, edges = seeds, seeds, []
        self._places[nodes] = np.arange(len(nodes))
        for fanout in self._fanouts:
            sources, counts = self._neighbors(frontier, fanout, random)
            targets = np.repeat(self._places[frontier], counts)
            fresh = np.unique(sources[self._places[sources] < 0])
            self._places[fresh] = np.arange(len(nodes), len(nodes) + len(fresh))
            nodes, frontier = np.concatenate([nodes, fresh]), fresh
            edges.append(np.stack([self._places[sources], targets]).astype(np.int64))
        self._places[nodes] = -1
        return nodes, np.concatenate(edges, axis=1)

    def _neighbors(
        self, frontier: Ids, fanout: int, random: np.random.Generator
    ) -> tuple[Ids, Ids]:
        """Up to `fanout` neighbours of each, and how many; by Floyd's algorithm, all at once."""
        begin = self._indptr[frontier]
        degrees = self._indptr[frontier + 1] - begin
        counts = np.minimum(degrees, fanout)
        chosen = np.tile(np.arange(fanout), (len(frontier), 1))
        many = np.flatnonzero(degrees > fanout)
        picked = np.full((len(many), fanout), -1)
        for i in range(fanout):
            last = degrees[many] - fanout + i
            drawn = (random.random(len(many)) * (last + 1)).astype(np.int64)
            taken = (picked[:, :i] == drawn[:, None]).any(axis=1)
            picked[:, i] = np.where(taken, last, drawn)
        chosen[many] = picked
        places = (chosen + begin[:, None])[np.arange(fanout) < counts[:, None]]
        return self._indices[places].astype(np.int64), counts


class OnMapped:
    """The commands."""

    def __init__(self, directory: Path) -> None:
        self._indptr, self._indices = (
            np.load(directory / f"{name}.npy") for name in ("indptr", "indices")
        )

    def epoch(
        self,
        features: str,
        dim: int,
        seeds: str,
        batch_size: int,
        fanouts: list[int],
        workers: int,
        advice: str,
        most_seconds: float,
    ) -> dict[str, Any]:
        """An epoch over the seeds in the file `seeds`; `advice` `random` stops reading ahead.

        It ends after `most_seconds`, with the share of its batches that were done.
        """
        mapped = np.memmap(features, dtype=np.float32, mode="r").reshape(-1, dim)
        if advice == "random":
            mapped._mmap.madvise(mmap.MADV_RANDOM)
        sampler = Sampler(self._indptr, self._indices, fanouts)

        def collate(chosen: list[Any]) -> tuple[Any, Any, Any]:
            batch = torch.stack(chosen).numpy()
            random = np.random.default_rng(int(batch[0]))
            nodes, edges = sampler.sample(batch, random)
            x = torch.from_numpy(mapped[nodes])
            return torch.from_numpy(nodes), torch.from_numpy(edges), x

        loader = DataLoader(
            torch.from_numpy(np.load(seeds)),
            batch_size,
            shuffle=True,
            collate_fn=collate,
            num_workers=workers,
        )
        done = nodes = edges = 0
        began = time.perf_counter()
        for n_id, edge_index, x in loader:
            assert len(x) == len(n_id)
            done, nodes, edges = done + 1, nodes + len(n_id), edges + edge_index.shape[1]
            if (seconds := time.perf_counter() - began) > most_seconds:
                break
        share = done / len(loader)
        return {"nodes": nodes, "edges": edges, "share": share, "seconds": seconds}

    def gather(self, rows: int, dim: int, wanted: int, repetitions: int, threads: int) -> float:
        """Bytes a second of PyTorch indexing of `rows` rows in memory, `wanted` at a time."""
        torch.set_num_threads(threads)
        x = torch.rand(rows, dim)
        orders = [torch.randint(rows, (wanted,)) for _ in range(repetitions)]
        began = time.perf_counter()
        for order in orders:
            held = x[order]
        seconds = time.perf_counter() - began
        return held.numel() * held.element_size() * repetitions / seconds
