"""WholeGraph (`pylibwholegraph`) doing what `sampling.py` measures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pylibwholegraph.torch as wgth
import torch
from _adjacency import adjacency
from pylibwholegraph.torch.initialize import init_torch_env_and_create_wm_comm

import tiergraph as tg

PLACES = {"device": "cuda", "host": "cpu"}


class Peer:
    """One process, one GPU; tables of continuous memory on either side."""

    def __init__(self, seeds: int, fanouts: list[int], rows: int, table_rows: int) -> None:
        self.comm, _ = init_torch_env_and_create_wm_comm(0, 1, 0, 1)
        self.seeds, self.fanouts, self.rows, self.table_rows = seeds, fanouts, rows, table_rows

    def samplers(self, path: Path) -> dict[str, Callable[[], int]]:
        """Samplers of the same graph, read back from its raw blocks."""
        raw = path.with_name(path.name.replace("sample", "raw"))
        if not raw.exists():
            scale = int(path.stem.split("-")[1])
            tg.generate("rmat", raw, scale=scale, codec="raw", order="degree")
        indptr, indices, _ = adjacency(raw)
        indptr, indices = torch.from_numpy(indptr).long(), torch.from_numpy(indices)
        candidates = torch.nonzero(indptr[1:] > indptr[:-1]).flatten().int()
        return {f"WholeGraph {p}": self._sampler(p, indptr, indices, candidates) for p in PLACES}

    def gathers(self, dim: int) -> dict[str, Callable[[], int]]:
        """Gathers of random rows of `dim` float32."""
        return {f"WholeGraph {place}": self._gather(place, dim) for place in PLACES}

    def _table(self, place: str, like: torch.Tensor) -> wgth.WholeMemoryTensor:
        sizes = list(like.shape)
        table = wgth.create_wholememory_tensor(
            self.comm, "continuous", PLACES[place], sizes, like.dtype, None
        )
        local, _ = table.get_local_tensor(host_view=place == "host")
        local.copy_(like)
        return table

    def _sampler(
        self, place: str, indptr: torch.Tensor, indices: torch.Tensor, candidates: torch.Tensor
    ) -> Callable[[], int]:
        graph = wgth.GraphStructure()
        graph.set_csr_graph(self._table(place, indptr), self._table(place, indices))
        candidates = candidates[torch.randperm(len(candidates))].cuda()
        begin = 0

        def sample() -> int:
            nonlocal begin
            seeds = candidates[begin : begin + self.seeds]
            begin += self.seeds
            _, edges, _, _ = graph.multilayer_sample_without_replacement(seeds, self.fanouts)
            return sum(hop.shape[1] for hop in edges)

        return sample

    def _gather(self, place: str, dim: int) -> Callable[[], int]:
        table = self._table(place, torch.rand(self.table_rows, dim))
        order = torch.randperm(self.table_rows)[: self.rows].int().cuda()

        def gather() -> int:
            table.gather(order)
            return 4 * dim * self.rows

        return gather
