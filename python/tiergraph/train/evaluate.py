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

Logits = NDArray[np.float32]
Positions = NDArray[np.int64]

OPEN_BYTES = 96 << 20
"""What an opened graph holds beside the state of a pass."""


class Evaluator:
    """Evaluates layer by layer where it can, else on batches with all neighbours.

    `memory` is taken from what a run has: `share`, which its own loader must do without.
    """

    def __init__(self, path: str, options: TrainOptions, classes: int) -> None:
        self._path = path
        self._options = options
        self._loaders: dict[bytes, NeighborLoader] = {}
        graph = open(path, memory=options.memory)
        need = layers.state_bytes(graph.vertices, options, classes) + OPEN_BYTES
        roomy = options.memory is None or need <= options.memory // 2
        self.how: Literal["layers", "neighbours"] = (
            "layers" if layers.supports(graph, options) and roomy else "neighbours"
        )
        self.share: int | None = None
        if options.memory is not None:
            self.share = need if self.how == "layers" else options.memory // 4
        self._graph: Graph | None = open(path, memory=self.share) if self.how == "layers" else None

    def logits(self, model: Any, positions: Positions) -> Logits:
        """float32 of shape (n, C); leaves the model in evaluation mode."""
        model.eval()
        if self._graph is not None:
            logits: Logits = layers.infer(self._graph, model, self._options)[positions]
            return logits
        torch = pyg.torch()
        with torch.no_grad():
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
            graph = open(self._path, memory=self.share)
            self._loaders.clear()
            self._loaders[key] = NeighborLoader(
                graph,
                [-1] * len(options.fanout),
                options.batch_size,
                graph.ids[positions],
                features=options.features,
                memory=self.share,
                threads=options.threads,
                window=options.window,
            )
        return self._loaders[key]
