"""Node classification of graphs with types of nodes and edges."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ...graph import Graph
from ...hetero import open_hetero
from ...loaders.node import NeighborLoader
from ..activations import made_up_of_types
from ..data import shape_of, target_of
from ..evaluate import Evaluator
from ..trainer import Record, Trainer
from .evaluate import TypedEvaluator
from .models import build_typed_model


class TypedTrainer(Trainer):
    """Classification of the nodes of one type of the heterogeneous graph at `path`.

    The type is `options.node_type`; otherwise as `Trainer`, but that nodes are evaluated on sampled
    batches, always the same, with the fanouts that are trained with.
    """

    def _open(self, path: str) -> Graph:
        self.typed = open_hetero(path)
        self._target = target_of(self.typed, self.options)
        return self.typed[self._target]

    def _width(self, graph: Graph) -> int:
        self._shape = shape_of(self.typed, self._target, self.options.features)
        return max(self._shape.widths.values())

    def _build_model(self) -> Any:
        return build_typed_model(self.options, self._shape, self.outputs)

    def _make_evaluator(self) -> Evaluator:
        return TypedEvaluator(self.typed, self._target, self.options, self.classes)

    def _loader(self, graph: Graph, memory: int | None) -> NeighborLoader:
        seeds = self._target, graph.ids[self._train]
        return self._neighbors(self.typed, seeds, memory, edge_features=None)

    def _made_up(self, kept: Record, part: int) -> Any:
        return made_up_of_types(kept, self.options, self._shape, self.typed, part)

    def _seeds(self, batch: Any) -> Any:
        return batch[self._target]

    def _logits(self, model: Any, batch: Any) -> Any:
        return model(batch)

    def _described(self) -> Record:
        return super()._described() | {"node_type": self._target}

    def _saved(self) -> Record:
        nodes, edges = self.typed.num_nodes_dict, self.typed.num_edges_dict
        graph = {"vertices": sum(nodes.values()), "edges": sum(edges.values())}
        return {
            "features": self.width,
            "graph": graph | {"directed": True, "source": self.typed.path},
            "types": asdict(self._shape),
        }
