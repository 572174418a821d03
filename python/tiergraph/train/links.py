"""The links that are trained on: given, or drawn from the graph; kept out of the messages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import pyg
from ..errors import InputError
from ..graph import Graph
from ..loaders.ends import links_of
from ..loaders.node import NeighborLoader
from ..sources.reading import reading
from .options import TrainOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data

Links = NDArray[np.uint64]

HELD_OUT = 10
"""One link in so many is for validation, another for the test."""
DRAWN_TOGETHER = 1 << 13
STREAM = (1 << 64) - 1
"""Of draws, so that none is shared with what the loaders draw."""


def read_links(path: Path) -> tuple[Links, Links, Links]:
    """`train`, `val` and `test` of an `.npz`: vertex ids of shape (2, L) each."""
    with reading(path, "an `.npz` archive"), np.load(path) as archive:
        missing = {"train", "val", "test"} - set(archive.files)
        if missing:
            raise InputError.of(
                "train on the links of", path, expected="train, val, test", got=archive.files
            )
        return links_of(archive["train"]), links_of(archive["val"]), links_of(archive["test"])


def draw_links(graph: Graph, options: TrainOptions) -> tuple[Links, Links, Links]:
    """Different links of the graph, uniformly: for training, and a tenth each to validate and test.

    A vertex is drawn in proportion to the links that enter it, and then one of these: every link
    is equally likely. Reads the neighbours of the vertices drawn.
    """
    ends = np.cumsum(graph.degrees("in"), dtype=np.int64)
    if len(ends) == 0 or ends[-1] == 0:
        raise InputError.of("train on links", graph.path, expected="a graph with edges")
    key = np.array([options.seed & STREAM, STREAM], dtype=np.uint64)
    random = np.random.Generator(np.random.Philox(key=key))
    wanted = min(options.links, graph.edges)
    drawn = np.searchsorted(ends, random.integers(ends[-1], size=wanted), side="right")
    # Disjoint: a vertex that was drawn twice draws its neighbours twice.
    loader = NeighborLoader(
        graph,
        [1],
        graph.ids[drawn],
        io=options.host_io,
        batch_size=DRAWN_TOGETHER,
        rank=0,
        world_size=1,
        disjoint=True,
        seed=options.seed,
        memory=options.memory,
        threads=options.threads,
        features=None,
        edge_values=None,
    )
    pairs = np.concatenate([b.n_id.numpy()[b.edge_index.numpy()] for b in loader], axis=1)
    if not graph.directed:
        pairs = np.sort(pairs, axis=0)
    unique = np.unique(pairs.view(np.uint64), axis=1)
    unique = unique[:, random.permutation(unique.shape[1])]
    held = max(1, unique.shape[1] // HELD_OUT)
    return unique[:, 2 * held :], unique[:, :held], unique[:, held : 2 * held]


def without_answers(batch: Data, directed: bool) -> Data:
    """The batch without the edges that it is asked about, in the graph's directions.

    Else a model would learn to look whether a message came along the link.
    """
    torch = pyg.torch()
    source, target = batch.edge_label_index[:, : len(batch.input_id)]
    asked = source * batch.num_nodes + target
    if not directed:
        asked = torch.cat([asked, target * batch.num_nodes + source])
    row, col = batch.edge_index
    kept = ~torch.isin(row * batch.num_nodes + col, asked)
    counts = torch.tensor(batch.num_sampled_edges)
    hops = torch.arange(len(counts)).repeat_interleave(counts)
    left = torch.bincount(hops[kept.cpu()], minlength=len(counts))
    batch.edge_index, batch.e_id = batch.edge_index[:, kept], batch.e_id[kept]
    batch.num_sampled_edges = left.tolist()
    return batch


def scores_of(values: Any, batch: Data) -> Any:
    """How much a model believes in each of a batch's links: inner products of their ends."""
    source, target = batch.edge_label_index
    return (values[source] * values[target]).sum(dim=-1)
