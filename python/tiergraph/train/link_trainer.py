"""Link prediction: the graph's links are told apart from pairs of vertices drawn at random."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import pyg
from ..graph import Graph
from ..link import LinkNeighborLoader
from .links import draw_links, read_links, scores_of, without_answers
from .models import forward, prepare
from .options import TrainOptions
from .scores import roc_auc
from .shares import Shares
from .trainer import Chosen, Record, Trainer


class LinkTrainer(Trainer):
    """Link prediction on the graph at `path`; otherwise as `Trainer`.

    `links` is an `.npz` with `train`, `val` and `test`, vertex ids of shape (2, L) each; without
    it, links are drawn from the graph. The model's vectors of a pair's ends are multiplied; the
    loss is binary cross-entropy, the score the area under the ROC curve beside as many negatives.
    """

    def __init__(
        self,
        path: str,
        options: TrainOptions,
        *,
        links: Path | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
    ) -> None:
        self._file = links
        self._evaluated: dict[int, LinkNeighborLoader] = {}
        super().__init__(path, options, checkpoint=checkpoint, resume=resume)

    def _prepare(self, graph: Graph) -> int:
        given = self._file
        chosen = draw_links(graph, self.options) if given is None else read_links(given)
        self._train, self._val, self._test = chosen
        self._directed = graph.directed
        self.score_name = "roc_auc"
        return self.options.hidden

    def _prepare_evaluation(self, graph: Graph) -> Shares:
        self._graph = graph
        self.shares = Shares(self.options.memory)
        if self._val.shape[1] > 0:
            with self.shares.while_evaluating():
                self._evaluation_of(self._val)
        return self.shares

    def _loader(self, graph: Graph, memory: int | None) -> LinkNeighborLoader:
        return self._batches(graph, self._train, memory, self.options.negatives, shuffle=True)

    def _batches(
        self, graph: Graph, links: Chosen, memory: int | None, negatives: float, shuffle: bool
    ) -> LinkNeighborLoader:
        options = self.options
        return LinkNeighborLoader(
            graph,
            options.fanout,
            links,
            batch_size=options.batch_size,
            rank=0,
            world_size=1,
            neg_sampling_ratio=negatives,
            shuffle=shuffle,
            seed=options.seed,
            memory=memory,
            threads=options.threads,
            window=options.window,
            features=options.features,
        )

    def _logits(self, batch: Any) -> Any:
        """A number for each of a batch's pairs, positive for links."""
        asked = without_answers(batch, self._directed)
        asked.batch_size = asked.num_sampled_nodes[0]
        values = forward(self.model, asked, self._input(asked), self.options)
        return scores_of(values, asked)

    def _input(self, batch: Any) -> Any:
        x, options = prepare(batch.x, self.options), self.options
        if options.input_dropout > 0:
            dropout = pyg.torch().nn.functional.dropout
            x = dropout(x, options.input_dropout, training=self.model.training)
        return x

    def _step(self, batch: Any) -> tuple[float, int, int]:
        loss_of = pyg.torch().nn.functional.binary_cross_entropy_with_logits
        self.optimizer.zero_grad()
        logits = self._logits(batch)
        loss = loss_of(logits, batch.edge_label)
        loss.backward()
        self.optimizer.step()
        hits = int(((logits > 0) == (batch.edge_label > 0)).sum())
        return float(loss.detach()), hits, len(logits)

    def _scores(self, positions: Any) -> Record:
        """The area under the ROC curve, and the share of pairs told right."""
        if positions.shape[1] == 0:
            return {"accuracy": None, self.score_name: None}
        self.model.eval()
        found, labels = [], []
        with pyg.torch().no_grad(), self.shares.while_evaluating():
            for batch in self._evaluation_of(positions):
                moved = batch.to(self.options.device)
                found.append(self._logits(moved).cpu().numpy())
                labels.append(batch.edge_label.cpu().numpy())
        values, truth = np.concatenate(found), np.concatenate(labels)
        right = float(((values > 0) == (truth > 0)).mean())
        return {"accuracy": right, self.score_name: roc_auc(values, truth)}

    def _evaluation_of(self, links: Chosen) -> LinkNeighborLoader:
        """Always the same batches of these links, with as many negatives."""
        key = id(links)
        if key not in self._evaluated:
            self._evaluated.clear()
            memory = self.shares.evaluation
            self._evaluated[key] = self._batches(self._graph, links, memory, 1.0, shuffle=False)
        self._evaluated[key].set_epoch(0)
        return self._evaluated[key]

    def _described(self) -> Record:
        links = {
            name: int(part.shape[1])
            for name, part in zip(
                ("train", "val", "test"), (self._train, self._val, self._test), strict=True
            )
        }
        return {"links": links, "evaluation": "sampled"}
