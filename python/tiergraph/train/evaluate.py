"""Logits of some vertices, by the way that the model and the memory allow."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import pyg
from ..graph import Graph, open
from ..loader import NeighborLoader
from . import layers
from .models import forward, prepare
from .options import TrainOptions
from .shares import Shares, quarter

Logits = NDArray[np.float32]
Positions = NDArray[np.integer[Any]]


class Evaluator:
    """Evaluates layer by layer where it can, else on batches with all neighbours.

    Of the run's memory it takes a quarter, or what layers need, where that is more than a quarter
    and no more than half; `shares` says which. Raises `BudgetError`, with what the run would need,
    where the loader of batches does not fit.
    """

    def __init__(self, graph: Graph, options: TrainOptions, classes: int) -> None:
        self._graph = graph
        self._options = options
        self._loaders: dict[bytes, NeighborLoader] = {}
        # Of passes over layers: the graph, which has a memory of its own, and all that they need.
        self._passes: Graph | None = None
        self._need: int | None = None
        self.shares = Shares(options.memory, self._share_of)
        if layers.supports(graph, options):
            self._prepare_layers(layers.array_bytes(graph.vertices, options, classes))
        self.how: Literal["layers", "neighbours"] = "layers" if self._passes else "neighbours"

    def _prepare_layers(self, array_bytes: int) -> None:
        path, options = self._graph.path, self._options
        self._passes = open(path, threads=options.threads)
        self._need = array_bytes + layers.graph_bytes(self._passes, options)
        if options.memory is not None:
            memory = self._share_of(options.memory) - array_bytes
            fits = self._need <= options.memory // 2
            self._passes = open(path, memory=memory, threads=options.threads) if fits else None

    def _share_of(self, memory: int) -> int:
        """What evaluation takes of so much memory."""
        if self._need is not None and self._need <= memory // 2:
            return max(self._need, quarter(memory))
        return quarter(memory)

    def prepare(self, positions: Positions) -> None:
        """Makes what evaluates these vertices, so that what does not fit is said before a run."""
        if self._passes is None and len(positions) > 0:
            with self.shares.while_evaluating():
                self._loader(positions)

    def logits(self, model: Any, positions: Positions) -> Logits:
        """float32 of shape (n, C); leaves the model in evaluation mode."""
        model.eval()
        if self._passes is not None:
            logits: Logits = layers.infer(self._passes, model, self._options)[positions]
            return logits
        torch = pyg.torch()
        with torch.no_grad(), self.shares.while_evaluating():
            found = [
                forward(model, batch, prepare(batch.x, self._options), self._options)
                for batch in (b.to(self._options.device) for b in self._loader(positions))
            ]
        logits = torch.cat(found).cpu().numpy()
        return logits

    def _loader(self, positions: Positions) -> NeighborLoader:
        """A loader of these vertices, in their order, kept for the next time."""
        options = self._options
        key = positions.tobytes()
        if key not in self._loaders:
            self._loaders.clear()
            self._loaders[key] = NeighborLoader(
                self._graph,
                [-1] * len(options.fanout),
                self._graph.ids[positions],
                batch_size=options.batch_size,
                rank=0,
                world_size=1,
                features=options.features,
                memory=self.shares.evaluation,
                threads=options.threads,
                window=options.window,
            )
        return self._loaders[key]
