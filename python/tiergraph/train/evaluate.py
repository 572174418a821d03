"""Logits of some vertices, by the way that the model and the memory allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import pyg
from ..errors import BudgetError
from ..graph import Graph, open
from ..loaders.node import NeighborLoader
from . import layers
from .models import forward, prepare
from .options import TrainOptions
from .shares import Part, quarter

Logits = NDArray[np.float32]
Positions = NDArray[np.integer[Any]]

SMALLER = 4
"""Batches that do not fit become smaller by so much, until one seed is left."""


class Evaluator:
    """Evaluates layer by layer where it can, else on batches with all neighbours.

    `ways` are what it can be made as, the best first: layers where they take no more than half of
    the run's memory, batches, layers all the same, and smaller batches, whose logits are the same.
    `how` says which one was made last.
    """

    how: Literal["layers", "neighbours"]

    def __init__(self, graph: Graph, options: TrainOptions, classes: int) -> None:
        self._graph = graph
        self._options = options
        self._classes = classes
        # One of both.
        self._passes: Graph | None = None
        self._loader: Parts | None = None

    def ways(self, positions: Sequence[Positions]) -> list[Part]:
        """How the vertices `positions` can be evaluated, one array of them after the other."""
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
        if not layers.supports(self._graph, options):
            return batches
        need = self._layers_bytes()
        memory = options.memory_bytes
        by_layers = Part(self._make_layers, usual=lambda memory: max(need, quarter(memory)))
        if memory is None or need <= memory // 2:
            return [by_layers, *batches]
        return [batches[0], by_layers, *batches[1:]]

    def _array_bytes(self) -> int:
        graph, options = self._graph, self._options
        width = graph.features[options.features].shape[1]
        return layers.array_bytes(graph.vertices, options, self._classes, width)

    def _layers_bytes(self) -> int:
        graph = open(self._graph.path, threads=self._options.threads)
        return self._array_bytes() + layers.graph_bytes(graph, self._options)

    def _make_layers(self, memory: int | None) -> int:
        self._passes = self._loader = None
        need = self._layers_bytes()
        if memory is not None:
            if need > memory:
                error = BudgetError.of(
                    "evaluate layer by layer", expected=f"{need} bytes", got=memory
                )
                error.enough_bytes = need
                raise error
            memory -= self._array_bytes()
        self._passes = open(self._graph.path, memory=memory, threads=self._options.threads)
        self.how = "layers"
        return need

    def _make_batches(self, positions: Positions, batch_size: int, memory: int | None) -> int:
        self._passes = self._loader = None
        self.how = "neighbours"
        if len(positions) == 0:
            return 0
        options = self._options
        self._loader = Parts(
            self._graph,
            [-1] * len(options.fanout),
            batch_size=batch_size,
            input_nodes=self._graph.ids[positions],
            rank=0,
            world_size=1,
            features=options.features,
            memory=memory,
            threads=options.threads,
            window=options.window,
        )
        return int(self._loader.kept()["enough_bytes"])

    def kept(self) -> dict[str, Any] | None:
        """What the loader of batches keeps, and how large they are; None where there is none."""
        return None if self._loader is None else self._loader.kept()

    def logits(self, model: Any, positions: Positions) -> Logits:
        """float32 of shape (n, C); leaves the model in evaluation mode."""
        return np.concatenate(list(self.parts(model, positions)))

    def parts(self, model: Any, positions: Positions) -> Iterator[Logits]:
        """As `logits`, some of the vertices after the others."""
        model.eval()
        if self._passes is not None:
            yield layers.infer(self._passes, model, self._options)[positions]
            return
        assert self._loader is not None, "`ways` had these vertices"
        options = self._options
        with pyg.torch().no_grad():
            for batch in self._loader.batches_of(self._graph.ids[positions]):
                moved = batch.to(options.device)
                logits = forward(model, moved, prepare(moved.x, options), options)
                yield logits.cpu().numpy()


class Parts(NeighborLoader):
    """A loader for any part of its seeds, in order."""

    seeds_vary = True

    def batches_of(self, ids: NDArray[np.uint64]) -> Iterator[Any]:
        """The batches of these seeds."""
        ends = range(self.batch_size, len(ids) + self.batch_size, self.batch_size)
        bounds = [0, *(min(end, len(ids)) for end in ends)]
        seeds = np.ascontiguousarray(ids)
        batches = self.maker.epoch_of(0, seeds, bounds, 0, (0, 1), self.given.collate)
        try:
            while (batch := batches.next()) is not None:
                yield batch
        finally:
            batches.close()
