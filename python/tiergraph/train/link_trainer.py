"""Link prediction: the graph's links are told apart from pairs of vertices drawn at random."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import pyg
from ..errors import BudgetError, InputError
from ..graph import Graph
from ..hetero import is_hetero
from ..loaders.link import LinkNeighborLoader
from .links import draw_links, read_links, scores_of, without_answers
from .models import dropped, forward, prepare
from .options import TrainOptions
from .scores import roc_auc
from .shares import Part, Shares, share
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
        predicts: bool = False,
    ) -> None:
        self._file = links
        self._evaluated: dict[int, LinkNeighborLoader] = {}
        # What drawing links takes.
        self._least = 0
        super().__init__(path, options, checkpoint=checkpoint, resume=resume, predicts=predicts)

    def _open(self, path: str) -> Graph:
        if is_hetero(path):
            raise InputError.of(
                "predict links of", path, expected="a graph of one type", got="a heterogeneous one"
            )
        return super()._open(path)

    def _prepare(self, graph: Graph) -> int:
        given = self._file
        self._train, self._val, self._test = (
            self._draw(graph) if given is None else read_links(given)
        )
        self._directed = graph.directed
        self.score_name = "roc_auc"
        return self.options.hidden

    def _draw(self, graph: Graph) -> tuple[Chosen, Chosen, Chosen]:
        try:
            return draw_links(graph, self.options)
        except BudgetError as error:
            if error.enough_bytes is None:
                raise
            # What the run needs, which is more, is said once it is known.
            self._least = error.enough_bytes
            return draw_links(graph, replace(self.options, memory=None))

    def _share(self, predicts: bool) -> Shares:
        if predicts:
            raise InputError.of("predict", expected="the task `node`", got="`link`")
        return share(
            self.options.memory_bytes,
            self._held_bytes(),
            Part(self._make_loader),
            [Part(self._make_evaluation)],
            least=self._least,
        )

    def _held_bytes(self) -> int:
        links = sum(part.nbytes for part in (self._train, self._val, self._test))
        return 3 * links + 8 * self.graph.vertices

    def _make_evaluation(self, memory: int | None) -> int:
        """Makes what validates; what tests takes its place later, and must fit as well."""
        self._evaluated.clear()
        self._evaluation_memory = memory
        needs, refused = [0], None
        for links in (self._test, self._val):
            if links.shape[1] > 0:
                try:
                    needs.append(self._evaluation_of(links).kept()["enough_bytes"])
                except BudgetError as error:
                    if error.enough_bytes is None:
                        raise
                    needs.append(error.enough_bytes)
                    refused = error
        if refused is not None:
            refused.enough_bytes = max(needs)
            raise refused
        return max(needs)

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
            batch_size=options.seeds_a_batch,
            rank=0,
            world_size=1,
            neg_sampling_ratio=negatives,
            shuffle=shuffle,
            seed=options.seed,
            memory=memory,
            threads=options.threads,
            window=options.window,
            features=options.features,
            edge_values=None,
            io=options.host_io,
        )

    def _evaluation_kept(self) -> Record | None:
        # Batches like those of training, and without gradients.
        return None

    def _logits(self, model: Any, batch: Any) -> Any:
        """A number for each of a batch's pairs, positive for links."""
        asked = without_answers(batch, self._directed)
        asked.batch_size = asked.num_sampled_nodes[0]
        x = dropped(prepare(asked.x, self.options), self.options, model.training)
        return scores_of(forward(model, asked, x, self.options), asked)

    def _loss(self, model: Any, batch: Any) -> tuple[Any, int, int]:
        logits = self._logits(model, batch)
        loss_of = pyg.torch().nn.functional.binary_cross_entropy_with_logits
        hits = int(((logits > 0) == (batch.edge_label > 0)).sum())
        return loss_of(logits, batch.edge_label), hits, len(logits)

    def _scores(self, positions: Any) -> Record:
        """The area under the ROC curve, and the share of pairs told right."""
        if positions.shape[1] == 0:
            return {"accuracy": None, self.score_name: None}
        self.model.eval()
        found, labels = [], []
        with pyg.torch().no_grad():
            batches = self._evaluation_of(positions)
            for done, batch in enumerate(batches, 1):
                moved = batch.to(self.device)
                found.append(self._logits(self.model, moved).cpu().numpy())
                labels.append(batch.edge_label.cpu().numpy())
                self._tell_evaluated(done, len(batches))
        values, truth = np.concatenate(found), np.concatenate(labels)
        right = float(((values > 0) == (truth > 0)).mean())
        return {"accuracy": right, self.score_name: roc_auc(values, truth)}

    def _evaluation_of(self, links: Chosen) -> LinkNeighborLoader:
        """Always the same batches of these links, with as many negatives."""
        key = id(links)
        if key not in self._evaluated:
            self._evaluated.clear()
            memory = self._evaluation_memory
            self._evaluated[key] = self._batches(self.graph, links, memory, 1.0, shuffle=False)
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
