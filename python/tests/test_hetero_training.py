"""PyG's heterogeneous models train on the batches, trimmed and not."""

from __future__ import annotations

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import pyg

try:
    torch = pyg.torch()
    nn = pyg.geometric("nn")
    trim_to_layer = pyg.geometric("utils").trim_to_layer
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

CLASSES, PAPERS, AUTHORS, DIM = 4, 1200, 600, 8


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Papers are of their authors' and citations' class; only authors' features tell it."""
    random = np.random.default_rng(4)
    paper, author = random.integers(0, CLASSES, PAPERS), random.integers(0, CLASSES, AUTHORS)

    def ends(sources, destinations, count):
        """Nine in ten edges inside a class."""
        src = random.integers(0, len(sources), 12 * count)
        dst = random.integers(0, len(destinations), 12 * count)
        alike = sources[src] == destinations[dst]
        kept = alike | (random.random(12 * count) < 0.03)
        return src[kept][:count], dst[kept][:count]

    noise = random.normal(size=(AUTHORS, DIM)).astype(np.float32)
    means = random.normal(size=(CLASSES, DIM)).astype(np.float32)
    nodes = {
        "paper": {
            "features": random.normal(size=(PAPERS, 3)).astype(np.float32),
            "labels": paper,
            "splits": {"train": np.arange(PAPERS) < 800, "test": np.arange(PAPERS) >= 800},
        },
        "author": {"features": 2 * means[author] + noise},
    }
    src, dst = ends(author, paper, 5000)
    edges = {
        ("author", "writes", "paper"): (src, dst),
        ("paper", "written_by", "author"): (dst, src),
        ("paper", "cites", "paper"): ends(paper, paper, 3000),
    }
    path = tmp_path_factory.mktemp("typed") / "t.tg"
    tg.build_hetero(path, nodes=nodes, edges=edges)
    return tg.open_hetero(path, memory="256MiB")


class Convolutions(torch.nn.Module):
    """Two layers of GraphSAGE over every edge type; `trim` leaves out what is not needed."""

    def __init__(self, edge_types, trim):
        super().__init__()
        self.trim = trim
        self.layers = torch.nn.ModuleList(
            nn.HeteroConv({t: nn.SAGEConv((-1, -1), size) for t in edge_types})
            for size in (32, CLASSES)
        )

    def forward(self, batch):
        x, edges = batch.x_dict, batch.edge_index_dict
        counts = batch.num_sampled_nodes_dict, batch.num_sampled_edges_dict
        for number, layer in enumerate(self.layers):
            if self.trim:
                x, edges, _ = trim_to_layer(number, *counts, x, edges)
            x = layer(x, edges)
            if number == 0:
                x = {name: values.relu() for name, values in x.items()}
        return x["paper"][: batch["paper"].batch_size]


class Sage(torch.nn.Module):
    """What `to_hetero` takes apart by type."""

    def __init__(self):
        super().__init__()
        self.first = nn.SAGEConv((-1, -1), 32)
        self.second = nn.SAGEConv((-1, -1), CLASSES)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def accuracy(graph, forward, parameters):
    """Trains ten epochs; the share of the test papers that come out right."""
    optimiser = torch.optim.Adam(parameters(), lr=0.01)
    train = tg.NeighborLoader(graph, [8, 6], ("paper", "train"), batch_size=64, shuffle=True)
    for _ in range(10):
        for batch in train:
            size = batch["paper"].batch_size
            loss = torch.nn.functional.cross_entropy(forward(batch), batch["paper"].y[:size])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    right = 0
    with torch.no_grad():
        for batch in tg.NeighborLoader(graph, [-1, -1], ("paper", "test"), batch_size=200):
            size = batch["paper"].batch_size
            right += int((forward(batch).argmax(-1) == batch["paper"].y[:size]).sum())
    return right / 400


def prepared(graph, model, forward):
    """Lazy sizes are found by a first batch."""
    with torch.no_grad():
        forward(next(iter(tg.NeighborLoader(graph, [4, 4], ("paper", "train"), batch_size=8))))
    return model.parameters


@pytest.mark.parametrize("trim", [False, True])
def test_hetero_convolutions_train(graph, trim):
    torch.manual_seed(0)
    model = Convolutions(graph.edge_types, trim)
    assert accuracy(graph, model, prepared(graph, model, model)) > 0.85


def test_trimming_changes_nothing_for_the_seeds(graph):
    torch.manual_seed(1)
    model = Convolutions(graph.edge_types, trim=False)
    for batch in tg.NeighborLoader(graph, [5, 3], ("paper", "test"), batch_size=50):
        model.trim = False
        whole = model(batch)
        model.trim = True
        assert torch.allclose(whole, model(batch), atol=1e-5)


def test_a_model_by_to_hetero_trains(graph):
    torch.manual_seed(0)
    model = nn.to_hetero(Sage(), graph.metadata())

    def forward(batch):
        out = model(batch.x_dict, batch.edge_index_dict)["paper"]
        return out[: batch["paper"].batch_size]

    assert accuracy(graph, forward, prepared(graph, model, forward)) > 0.85
