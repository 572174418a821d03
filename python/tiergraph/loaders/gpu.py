"""Batches made on a GPU: sampled and gathered by kernels, straight into PyTorch's own memory.

What kernels do not sample the CPU samples; kernels gather its batches' features all the same, and
the rest of a batch, which is small, is moved.

PyTorch allocates a batch's tensors, on a stream of the loader's, and its own stream waits for what
fills them; so its allocator, its streams and its graphs work as with any other tensor, and nothing
here links against it. A native thread makes batches ahead of the one that is handed over, in
tensors that have room for batches as large as those before: a batch's are the first part of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native, pyg
from ..arguments.calls import warn
from ..arguments.sizes import to_bytes
from ..devices import find_libraries
from ..errors import FallbackWarning
from ..inputs import for_losses
from .moving import moved

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data

    from .given import LoaderInput


@dataclass(frozen=True)
class GpuBuffers:
    """Tensors that have room for a batch of `nodes` nodes and `edges` edges.

    The allocator has to be told of each, and few is cheap. What a user may keep of many batches,
    the seeds' ids, keeps neither numbers of edges nor features.
    """

    of_nodes: torch.Tensor
    """int64: `n_id` and `degree`, each with room for `nodes`, then `input_id`."""
    of_edges: torch.Tensor
    """int64: `edge_index`, with room for 2 · `edges`, then `e_id`."""
    x: torch.Tensor
    """float32, (`nodes`, D)."""
    nodes: int
    edges: int
    has_degree: bool
    """Whether kernels write the degrees of a batch's nodes, behind `n_id`."""

    @property
    def addresses(self) -> tuple[int, int | None, int, int, int, int]:
        """Where the native part writes `n_id`, `degree`, `edge_index`, `e_id`, `x`, `input_id`."""
        n_id, edge_index = self.of_nodes.data_ptr(), self.of_edges.data_ptr()
        degree = n_id + 8 * self.nodes if self.has_degree else None
        e_id, input_id = edge_index + 16 * self.edges, n_id + 16 * self.nodes
        return n_id, degree, edge_index, e_id, self.x.data_ptr(), input_id

    def hand_over(self, stream: torch.cuda.Stream, filled: torch.cuda.Stream) -> None:
        """Has the consumer's stream wait for `filled`, and the allocator for the consumer."""
        stream.wait_stream(filled)
        for tensor in (self.of_nodes, self.of_edges, self.x):
            tensor.record_stream(stream)

    def of(self, nodes: int, edges: int, seeds: int) -> GpuTensors:
        """The tensors of the batch of so many nodes, edges and seeds that lies in these."""
        # Each of `data`: what changes one in place has not changed the others, as autograd counts.
        of_nodes, of_edges, e_id = self.of_nodes, self.of_edges, 2 * self.edges
        return GpuTensors(
            n_id=of_nodes.data[:nodes],
            degree=of_nodes.data[self.nodes : self.nodes + nodes],
            edge_index=of_edges.data[: 2 * edges].view(2, edges),
            e_id=of_edges.data[e_id : e_id + edges],
            x=self.x[:nodes],
            input_id=of_nodes.data[2 * self.nodes : 2 * self.nodes + seeds],
        )


class GpuTensors(NamedTuple):
    """The tensors of one batch of n nodes and e edges."""

    n_id: torch.Tensor
    """int64, (n,): places in the user's order."""
    degree: torch.Tensor
    """int64, (n,); undefined where degrees are not wanted."""
    edge_index: torch.Tensor
    """int64, (2, e)."""
    e_id: torch.Tensor
    """int64, (e,)."""
    x: torch.Tensor
    """float32, (n, D)."""
    input_id: torch.Tensor
    """int64: the seeds' places in the list of all."""


class GpuPart:
    """Makes the batches of one loader on the GPU `device`; `NeighborLoader(device="cuda")` has it.

    `options` are the native loader's. With `sampled_on_cpu`, the CPU's batches get their features
    here, and kernels sample none.
    """

    def __init__(
        self, given: LoaderInput, options: Mapping[str, Any], device: str, sampled_on_cpu: bool
    ) -> None:
        find_libraries()
        torch, graph = pyg.torch(), given.graph
        self._device, self.sampled_on_cpu = pyg.device(device), sampled_on_cpu
        name = options["features"][0]
        self._dim = 0 if name is None else graph.features[name].shape[1]
        self._most_seeds = options["batch_size"]
        told = given.path, json.dumps(options), given.seeds, given.times, self._device.index
        memory = to_bytes(given.how.device_memory)
        self._native = _native.GpuLoader(*told, memory, sampled_on_cpu)
        self._collate, labels = given.collate, given.collate.labels.get(None)
        placed = self.placed()
        why = placed.get("multiprocessors_why")
        if why is not None:
            found = placed["multiprocessors"]
            text = f"batches are prepared on all {found} multiprocessors of {device}: {why}"
            warn(text, FallbackWarning)
        streams = self._native.allocating(), self._native.handing()
        self._allocating, self._handing = (
            torch.cuda.ExternalStream(stream, device=self._device) for stream in streams
        )
        self._labels = None if labels is None else self._moved(for_losses(labels))
        masks = given.collate.masks.get(None, {})
        self._masks = {name: self._moved(mask) for name, mask in masks.items()}
        self._ids = self._moved(graph.ids.view(np.int64)) if graph.has_own_ids else None
        # Kernels know the degrees of their own batches.
        degrees = graph.degrees(options.get("direction") or "in") if sampled_on_cpu else None
        self._degrees = None if degrees is None else self._moved(degrees.astype(np.int64))

    def placed(self) -> dict[str, Any]:
        """Bytes and rows by tier, and how many multiprocessors prepare batches.

        `predicted` has the transactions over PCIe of the presampled batches: `host_lists`,
        `storage_lists`, `host_rows` and `storage_rows`, as `transactions` of `last_epoch` has those
        that were made.

        Where the CPU samples, also what it keeps to do so.
        """
        placed: dict[str, Any] = json.loads(self._native.placed())
        return placed | (json.loads(self._native.kept_to_sample()) or {})

    def epoch(
        self,
        epoch: int,
        first: int,
        rank: int,
        ranks: int,
        seeds: NDArray[np.uint64] | None = None,
        bounds: list[int] | None = None,
    ) -> _native.GpuEpoch:
        """The batches of a rank's epoch, as `_native.GpuLoader` has them."""
        return self._native.epoch(epoch, first, rank, ranks, self._allocate, seeds, bounds)

    def rows(self, most: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The features of all vertices, at most `most` at a time: `(positions, rows)` on the GPU.

        Positions are those in `Graph.ids`, int64 of shape (n,); rows are float32 of shape (n, D).
        Rows that lie in no memory are read from storage, in the order of the file.
        """
        batches = self._native.rows(most, self._allocate)
        try:
            while (native := batches.next()) is not None:
                tensors = self._taken(native)
                yield tensors.n_id, tensors.x
        finally:
            batches.close()

    def _moved(self, array: NDArray[Any]) -> torch.Tensor:
        """An array with a value a vertex as a tensor on the device."""
        # What is mapped cannot be written to, of which PyTorch warns.
        own = array if array.flags.writeable else array.copy()
        tensor: torch.Tensor = pyg.torch().from_numpy(own).to(self._device)
        return tensor

    def _allocate(self, nodes: int, edges: int) -> GpuBuffers:
        """Tensors that have room for a batch of so many nodes and edges."""
        torch = pyg.torch()
        with torch.cuda.stream(self._allocating):
            long = {"dtype": torch.int64, "device": self._device}
            return GpuBuffers(
                of_nodes=torch.empty(2 * nodes + self._most_seeds, **long),
                of_edges=torch.empty(3 * edges, **long),
                x=torch.empty((nodes, self._dim), dtype=torch.float32, device=self._device),
                nodes=nodes,
                edges=edges,
                has_degree=not self.sampled_on_cpu,
            )

    def _taken(self, native: _native.GpuBatch) -> GpuTensors:
        """The tensors of a batch, in order with the current stream."""
        buffers: GpuBuffers = native["buffers"]
        buffers.hand_over(pyg.torch().cuda.current_stream(self._device), self._handing)
        nodes, edges = sum(native["num_sampled_nodes"]), sum(native["num_sampled_edges"])
        return buffers.of(nodes, edges, native["batch_size"])

    def collate(self, native: _native.GpuBatch) -> Data:
        """PyG's `Data` over the tensors of a batch, in order with the current stream."""
        tensors, by_cpu = self._taken(native), native["by_cpu"]
        n_id = tensors.n_id
        if by_cpu is None:
            data: Data = pyg.geometric("data").Data(edge_index=tensors.edge_index)
            data.num_nodes = len(n_id)
            data.e_id, data.input_id = tensors.e_id, tensors.input_id
            data.batch_size = native["batch_size"]
            data.num_sampled_nodes = native["num_sampled_nodes"]
            data.num_sampled_edges = native["num_sampled_edges"]
        else:
            data = moved(self._collate(by_cpu, known=False), self._device)
        if self._dim > 0:
            data.x = tensors.x
        if self._labels is not None:
            data.y = self._labels[n_id]
        for name, mask in self._masks.items():
            data[name] = mask[n_id]
        data.degree = tensors.degree if self._degrees is None else self._degrees[n_id]
        data.n_id = n_id if self._ids is None else self._ids[n_id]
        return data
