"""Logits of nodes of one type of a heterogeneous graph, on sampled batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...hetero import HeteroGraph
from ..evaluate import Evaluator, Parts, Positions
from ..options import TrainOptions
from ..shares import Part

if TYPE_CHECKING:
    from torch import Tensor


class TypedEvaluator(Evaluator):
    """Evaluates nodes of one type on sampled batches."""

    _how_batches = "sampled"

    def __init__(
        self, typed: HeteroGraph, target: str, options: TrainOptions, classes: int
    ) -> None:
        super().__init__(typed[target], options, classes)
        self._typed, self._target = typed, target

    def ways(self, positions: Sequence[Positions]) -> list[Part]:
        """Batches of the run's size, and smaller ones."""
        return self._batches(positions)

    def _make_parts(self, positions: Positions, batch_size: int, memory: int | None) -> Parts:
        options = self._options
        return Parts(
            self._typed,
            options.fanout,
            batch_size=batch_size,
            input_nodes=(self._target, self._graph.ids[positions]),
            rank=0,
            world_size=1,
            seed=options.seed,
            features=options.features,
            edge_features=None,
            edge_values=None,
            memory=memory,
            threads=options.threads,
            window=options.window,
            io=options.host_io,
        )

    def _forward(self, model: Any, batch: Any) -> Tensor:
        logits: Tensor = model(batch)
        return logits
