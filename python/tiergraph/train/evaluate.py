"""Logits of some vertices, by the way that the model and the memory allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import pyg
from ..devices import cuda_devices
from ..errors import BudgetError, DeviceError
from ..graph import Graph, open
from ..loaders.node import NeighborLoader
from ..loaders.source import END
from . import layers
from .models import forward, prepare
from .options import TrainOptions
from .shares import Part, quarter

if TYPE_CHECKING:
    from torch import Tensor

Logits = NDArray[np.float32]
Positions = NDArray[np.integer[Any]]

SMALLER = 4
"""Batches that do not fit become smaller by so much, until one seed is left."""


DEVICE_PART = 4
"""Evaluation on a GPU has one in so many of the bytes that are free there before the run."""


class Evaluator:
    """Evaluates layer by layer where it can, else on batches with all neighbours.

    `ways` are what it can be made as, the best first: layers on the run's GPU where a part of its
    memory holds them; then layers where they take no more than half of the run's memory, batches,
    layers all the same, and smaller batches, whose logits are the same. `how` says which one was
    made last.

    On the GPU, features are those that `loader`'s loader, which trains, keeps there.
    """

    how: Literal["layers on the GPU", "layers", "neighbours", "sampled"]
    _how_batches: Literal["neighbours", "sampled"] = "neighbours"

    def __init__(
        self,
        graph: Graph,
        options: TrainOptions,
        classes: int,
        loader: Callable[[], NeighborLoader | None] = lambda: None,
    ) -> None:
        self._graph = graph
        self._options = options
        self._classes = classes
        self._loader_of_run = loader
        # One of both.
        self._passes: layers.Inference | None = None
        self._loader: Parts | None = None

    def ways(self, positions: Sequence[Positions]) -> list[Part]:
        """How the vertices `positions` can be evaluated, one array of them after the other."""
        if not layers.supports(self._graph, self._options):
            return self._batches(positions)
        need = self._layers_bytes()
        memory = self._options.memory_bytes
        usual = partial(_at_least, need)
        by_layers = Part(self._make_layers, usual=usual)
        batches = self._batches(positions)
        if memory is None or need <= memory // 2:
            ways = [by_layers, *batches]
        else:
            ways = [batches[0], by_layers, *batches[1:]]
        if self._options.device == "cpu":
            return ways
        try:
            need = self._device_layers_bytes()
        except DeviceError as error:
            note = f"evaluation runs on the CPU: {str(error).splitlines()[0]}"
            return [replace(way, note=note) for way in ways]
        return [Part(self._make_device_layers, usual=partial(_at_least, need)), *ways]

    def _batches(self, positions: Sequence[Positions]) -> list[Part]:
        """Batches of the run's size, and smaller ones."""
        options = self._options
        all_of_them = np.concatenate([*positions, np.empty(0, dtype=np.int64)]).astype(np.int64)
        size = options.seeds_a_batch
        batches = [Part(partial(self._make_batches, all_of_them, size))]
        while size > 1:
            size = max(1, size // SMALLER)
            note = (
                f"evaluation takes batches of {size} in place of {options.seeds_a_batch} seeds, "
                "which a larger `--memory` would hold"
            )
            batches.append(Part(partial(self._make_batches, all_of_them, size), note=note))
        return batches

    def _array_bytes(self, place: layers.Place = layers.HOST) -> int:
        graph, options = self._graph, self._options
        width = graph.features[options.features].shape[1]
        return layers.array_bytes(graph.vertices, options, self._classes, width, place)

    def _open(self, memory: int | None, **place: Any) -> Graph:
        """The graph, for passes."""
        io, threads = self._options.host_io, self._options.threads
        return open(self._graph.path, memory=memory, io=io, threads=threads, **place)

    def _layers_bytes(self) -> int:
        graph = self._open(None)
        return self._array_bytes() + layers.graph_bytes(graph, self._options)

    def _make_layers(self, memory: int | None) -> int:
        self._passes = self._loader = None
        need = self._layers_bytes()
        if memory is not None:
            _check(memory, need)
            memory -= self._array_bytes()
        graph = self._open(memory)
        self._passes = layers.Inference(graph, self._options, layers.HOST)
        self.how = "layers"
        return need

    @cached_property
    def _device_memory(self) -> int:
        """Bytes of GPU memory that the graph's blocks and its passes have."""
        ordinal = int(self._options.device.partition(":")[2] or 0)
        part = cuda_devices()[ordinal].free_bytes // DEVICE_PART
        need = self._array_bytes(layers.GPU)
        if need >= part:
            raise DeviceError.of(
                "evaluate on the GPU",
                expected=f"less than {part >> 20} MiB of values, a quarter of its free memory",
                got=f"{need >> 20} MiB",
            )
        return part - need

    def _open_on_device(self, memory: int | None) -> Graph:
        """The graph, as far as it fits on the GPU."""
        options = self._options
        graph = self._open(memory, device=options.device, device_memory=self._device_memory)
        # A pass, which puts blocks there, and reserves what any pass does.
        torch = pyg.torch()
        graph.propagate(torch.zeros((graph.vertices, 1), device=pyg.device(options.device)))
        graph.features[options.features].read(graph.ids[:1])
        return graph

    def _device_layers_bytes(self) -> int:
        """Host memory that layers on the GPU take."""
        graph, options = self._graph, self._options
        width = graph.features[options.features].shape[1]
        rows = 2 * 4 * width * min(layers.GPU.rows, graph.vertices)
        with self._open_on_device(None) as opened:
            reserved = int(opened.info()["reserved_bytes"])
        return reserved + 4 * graph.vertices + rows + layers.READING_BYTES

    def _make_device_layers(self, memory: int | None) -> int:
        self._passes = self._loader = None
        need = self._device_layers_bytes()
        if memory is not None:
            _check(memory, need)
        graph = self._open_on_device(memory)
        self._passes = layers.Inference(graph, self._options, layers.GPU, self._rows_of_run)
        self.how = "layers on the GPU"
        return need

    def _rows_of_run(self, most: int) -> Iterator[layers.Block] | None:
        """Features where the run's loader keeps them on the GPU."""
        loader = self._loader_of_run()
        return None if loader is None else loader.rows_on_device(most)

    def _make_batches(self, positions: Positions, batch_size: int, memory: int | None) -> int:
        self._passes = self._loader = None
        self.how = self._how_batches
        if len(positions) == 0:
            return 0
        self._loader = self._make_parts(positions, batch_size, memory)
        return int(self._loader.kept()["enough_bytes"])

    def _make_parts(self, positions: Positions, batch_size: int, memory: int | None) -> Parts:
        """A loader for any of the vertices `positions`."""
        options = self._options
        return Parts(
            self._graph,
            [-1] * len(options.fanout),
            batch_size=batch_size,
            input_nodes=self._graph.ids[positions],
            rank=0,
            world_size=1,
            features=options.features,
            memory=memory,
            io=options.host_io,
            threads=options.threads,
            window=options.window,
        )

    def _forward(self, model: Any, batch: Any) -> Tensor:
        """What a model gives for the seeds of a batch."""
        return forward(model, batch, prepare(batch.x, self._options), self._options)

    def kept(self) -> dict[str, Any] | None:
        """What the loader of batches keeps, and how large they are; None where there is none."""
        return None if self._loader is None else self._loader.kept()

    def logits(self, model: Any, positions: Positions, watch: layers.Watch | None = None) -> Logits:
        """float32 of shape (n, C); leaves the model in evaluation mode.

        `watch` is told of steps that are done: batches, or blocks of vertices and passes.
        """
        return np.concatenate(list(self.parts(model, positions, watch)))

    def parts(
        self, model: Any, positions: Positions, watch: layers.Watch | None = None
    ) -> Iterator[Logits]:
        """As `logits`, some of the vertices after the others."""
        if self._passes is not None:
            everything = self._passes.logits(model, watch)
            wanted = pyg.torch().from_numpy(positions.astype(np.int64)).to(everything.device)
            yield everything[wanted].cpu().numpy()
            return
        assert self._loader is not None, "`ways` had these vertices"
        model.eval()
        options = self._options
        batches = -(-len(positions) // self._loader.batch_size)
        with pyg.torch().no_grad():
            found = self._loader.batches_of(self._graph.ids[positions])
            for done, batch in enumerate(found, 1):
                moved = batch.to(pyg.device(options.device))
                yield self._forward(model, moved).cpu().numpy()
                if watch is not None:
                    watch(done, batches)


def _at_least(need: int, memory: int) -> int:
    """What evaluation has of a run's memory, where it needs so many bytes."""
    return max(need, quarter(memory))


def _check(memory: int, need: int) -> None:
    """Refuses memory that layers do not fit."""
    if need > memory:
        error = BudgetError.of("evaluate layer by layer", expected=f"{need} bytes", got=memory)
        error.enough_bytes = need
        raise error


class Parts(NeighborLoader):
    """A loader for any part of its seeds, in order."""

    seeds_vary = True

    def batches_of(self, ids: NDArray[np.uint64]) -> Iterator[Any]:
        """The batches of these seeds."""
        ends = range(self.batch_size, len(ids) + self.batch_size, self.batch_size)
        bounds = [0, *(min(end, len(ids)) for end in ends)]
        seeds = np.ascontiguousarray(ids)
        batches = self.maker.epoch(0, 0, (0, 1), lambda _, data: data, seeds, bounds)
        try:
            while (batch := batches.next()) is not END:
                yield batch
        finally:
            batches.close()
