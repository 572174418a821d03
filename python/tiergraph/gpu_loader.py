"""Batches made on a GPU: sampled and gathered by kernels, straight into PyTorch's own memory.

PyTorch allocates a batch's tensors, on the loader's stream, and its stream waits for what fills
them; so its allocator, its streams and its graphs work as with any other tensor, and nothing here
links against it. A batch is prepared while the one before is trained on; rows that are in no memory
are read from storage for several batches ahead.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _native, pyg
from .calls import warn
from .devices import find_libraries
from .epochs import places_of
from .errors import FallbackWarning, InputError

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data as Batch

    from .graph import Graph


STORAGE_AHEAD = 3
"""Batches that are begun and not handed over, where rows are read from storage."""

COUNTS = ("batches", "nodes", "edges", "seconds_sample", "seconds_fill", "seconds_gather")

_Begun: TypeAlias = "tuple[Batch, int | None, torch.cuda.Event]"
"""A batch, the ticket of its rows that are being read, and when the rest of it is there."""


class GpuBatches:
    """Makes the batches of one loader on the GPU `device`; `NeighborLoader(device="cuda")` has it.

    `options` are the native loader's; `labels` has a value for each vertex, in the user's order.
    """

    def __init__(
        self,
        graph: Graph,
        options: Mapping[str, Any],
        seeds: NDArray[np.uint64],
        device: str,
        device_memory: int | None,
        labels: NDArray[Any] | None,
    ) -> None:
        find_libraries()
        torch = pyg.torch()
        self.device = pyg.device(device)
        name = options["features"]
        self._dim = 0 if name is None else graph.features[name].shape[1]
        self._native = _native.GpuLoader(
            graph.path, json.dumps(options), seeds, self.device.index, device_memory
        )
        placed = self.placed()
        why = placed.get("multiprocessors_why")
        if why is not None:
            found = placed["multiprocessors"]
            text = f"batches are prepared on all {found} multiprocessors of {device}: {why}"
            warn(text, FallbackWarning)
        self._vertices = graph.vertices
        self._stream = torch.cuda.ExternalStream(self._native.stream(), device=self.device)
        self._labels = None if labels is None else torch.from_numpy(labels).to(self.device)
        ids = graph.ids.view(np.int64) if graph.has_own_ids else None
        self._ids = None if ids is None else torch.from_numpy(ids).to(self.device)
        degrees = graph.degrees(options.get("direction") or "in").astype(np.int64)
        self._degrees = torch.from_numpy(degrees).to(self.device)
        self._done: dict[str, float] = dict.fromkeys(COUNTS, 0)
        from_storage = placed["storage_rows"] > 0
        self._ahead = options.get("prefetch") or (STORAGE_AHEAD if from_storage else 1)

    def placed(self) -> dict[str, Any]:
        """Bytes and rows by tier, and how many multiprocessors prepare batches."""
        placed: dict[str, Any] = json.loads(self._native.placed())
        return placed

    def epoch(
        self, epoch: int, first: int, cut: _native.Cut, transform: Callable[[Batch], Batch]
    ) -> GpuEpoch:
        """The batches that `cut` gives of an epoch, from batch `first` on."""
        return GpuEpoch(self, self._batches(epoch, first, cut), transform)

    def _batches(self, epoch: int, first: int, cut: _native.Cut) -> Generator[Batch]:
        """The batches of an epoch; each is begun before it is asked for."""
        order = self._native.order(epoch)
        begun: deque[_Begun] = deque()
        try:
            for batch in range(first, len(cut)):
                places = np.ascontiguousarray(places_of(cut, batch, order), dtype=np.uint32)
                begun.append(self._prepare(epoch, cut.number(batch), places))
                if len(begun) > self._ahead:
                    yield self._hand_over(begun)
            while begun:
                yield self._hand_over(begun)
        finally:
            self._give_up(begun)

    def _give_up(self, begun: deque[_Begun]) -> None:
        for _, ticket, _ in begun:
            if ticket is not None:
                self._native.give_up(ticket)

    def done(self) -> dict[str, Any]:
        """Batches, nodes, edges and seconds so far, what was read from storage and submitted.

        `submissions` are the kernels, copies and fills of the native part, and `seconds_submit` the
        host's time in giving them to the GPU. `seconds_sample` has those of sampling, and a wait;
        `seconds_fill` the others, and PyTorch's own.
        """
        native: dict[str, float] = json.loads(self._native.done())
        return self._done | native

    def rows(self, most: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The features of all vertices, at most `most` at a time: `(positions, rows)` on the GPU.

        Positions are those in `Graph.ids`, int64 of shape (n,); rows are float32 of shape (n, D).
        Rows that lie in no memory are read from storage, in the order of the file.
        """
        most = min(most, self._native.most_selected())
        begun: deque[_Begun] = deque()
        try:
            for first in range(0, self._vertices, most):
                count = min(most, self._vertices - first)
                self._native.select(first, first + count)
                begun.append(self._fill(count, 0))
                if len(begun) > self._ahead:
                    yield self._rows_of(begun)
            while begun:
                yield self._rows_of(begun)
        finally:
            self._give_up(begun)

    def _rows_of(self, begun: deque[_Begun]) -> tuple[torch.Tensor, torch.Tensor]:
        data = self._hand_over(begun)
        return data.n_id, data.x

    def _prepare(self, epoch: int, number: int, places: NDArray[np.uint32]) -> _Begun:
        torch = pyg.torch()
        began = time.perf_counter()
        nodes_by_hop, edges_by_hop = self._native.sample(epoch, number, places)
        nodes, edges = sum(nodes_by_hop), sum(edges_by_hop)
        self._count(batches=1, nodes=nodes, edges=edges, seconds_sample=time.perf_counter() - began)
        began = time.perf_counter()
        data, ticket, event = self._fill(nodes, edges)
        with torch.cuda.stream(self._stream):
            if self._dim == 0:
                del data.x
            if self._labels is not None:
                data.y = self._labels[data.n_id]
            data.degree = self._degrees[data.n_id]
            if self._ids is not None:
                data.n_id = self._ids[data.n_id]
            data.input_id = torch.from_numpy(places.astype(np.int64)).to(self.device)
            event.record(self._stream)
        self._count(seconds_fill=time.perf_counter() - began)
        data.batch_size = len(places)
        data.num_sampled_nodes, data.num_sampled_edges = nodes_by_hop, edges_by_hop
        return data, ticket, event

    def _fill(self, nodes: int, edges: int) -> _Begun:
        """What was sampled or selected last, with positions in place of ids."""
        torch = pyg.torch()
        with torch.cuda.stream(self._stream):
            long = {"dtype": torch.int64, "device": self.device}
            n_id = torch.empty(nodes, **long)
            edge_index = torch.empty((2, edges), **long)
            e_id = torch.empty(edges, **long)
            x = torch.empty((nodes, self._dim), dtype=torch.float32, device=self.device)
            ticket = self._native.fill(
                n_id.data_ptr(), edge_index.data_ptr(), e_id.data_ptr(), x.data_ptr()
            )
            event = torch.cuda.Event()
            event.record(self._stream)
        data: Batch = pyg.geometric("data").Data(x=x, edge_index=edge_index, n_id=n_id, e_id=e_id)
        data.num_nodes = nodes
        return data, ticket, event

    def _hand_over(self, begun: deque[_Begun]) -> Batch:
        """Makes the consumer's stream wait for the first batch, and the allocator for the consumer.

        Rows that come from storage are waited for here.
        """
        torch = pyg.torch()
        data, ticket, event = begun[0]
        began = time.perf_counter()
        if ticket is not None:
            while not self._native.finish(ticket):
                pass  # Ctrl-C is looked for in between.
            event.record(self._stream)
        begun.popleft()
        self._count(seconds_gather=time.perf_counter() - began)
        stream = torch.cuda.current_stream(self.device)
        stream.wait_event(event)
        for value in data.to_dict().values():
            if isinstance(value, torch.Tensor):
                value.record_stream(stream)
        return data

    def _count(self, **done: float) -> None:
        for name, count in done.items():
            self._done[name] += count


class GpuEpoch:
    """One epoch on the GPU; `transform` comes last."""

    def __init__(
        self, made: GpuBatches, batches: Generator[Batch], transform: Callable[[Batch], Batch]
    ) -> None:
        self._made, self._batches, self._transform = made, batches, transform
        self._before, self._waited = made.done(), 0.0

    def next(self) -> Batch | None:
        """The next batch; None after the last."""
        began = time.perf_counter()
        batch = next(self._batches, None)
        self._waited += time.perf_counter() - began
        return None if batch is None else self._transform(batch)

    def stats(self) -> dict[str, Any]:
        """What was done so far: counts and seconds by stage."""
        done = {name: count - self._before[name] for name, count in self._made.done().items()}
        return done | {"seconds_wait": self._waited}

    def close(self) -> None:
        """Gives up the batches that were begun."""
        self._batches.close()


def check_device(device: str) -> None:
    """Refuses what is neither the CPU nor a GPU."""
    if device != "cpu" and device.split(":")[0] != "cuda":
        raise InputError.of("load batches on", device, expected="`cpu`, `cuda` or `cuda:N`")


def not_sampled_there(options: Mapping[str, Any]) -> str | None:
    """What of a loader's options kernels do not sample; None if they do all."""
    for name, what in {
        "weight_attr": "neighbours drawn by weight",
        "time_attr": "neighbours drawn by time",
        "edge_features": "features of edges",
        "disjoint": "disjoint trees",
    }.items():
        if options.get(name):
            return f"the GPU's sampler has no {what} yet"
    return None
