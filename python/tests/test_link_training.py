"""Link prediction learns, without seeing the answers in its messages."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import pyg
from tiergraph.cli import main
from tiergraph.train import LinkTrainer, TrainOptions
from tiergraph.train.links import draw_links, without_answers

try:
    torch = pyg.torch()
    pyg.geometric("nn")
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

SMALL = {"task": "link", "hidden": 16, "fanout": (4, 3), "batch_size": 200, "lr": 0.01}


@pytest.fixture(scope="module", params=[True, False], ids=["undirected", "directed"])
def path(request, tmp_path_factory):
    """Four communities that features tell apart: links are inside them."""
    path = tmp_path_factory.mktemp("links") / "g.tg"
    tg.generate(
        "sbm",
        path,
        vertices=800,
        communities=4,
        mean_degree=8,
        inside=0.95,
        features=16,
        undirected=request.param,
        layouts="both",
    )
    return str(path)


def edges_of(graph):
    """All edges as pairs of ids, in the graph's directions."""
    batch = next(iter(tg.NeighborLoader(graph, [-1], batch_size=graph.vertices)))
    return {tuple(pair) for pair in batch.n_id[batch.edge_index].T.tolist()}


@pytest.mark.parametrize("model", ["sage", "gcn", "gat"])
def test_models_learn(path, model):
    trainer = LinkTrainer(path, TrainOptions(**SMALL, model=model, heads=2, epochs=6, links=2000))
    trainer.train()
    losses = [record["loss"] for record in trainer.history]
    assert losses[-1] < losses[0]
    # Three in four negatives lie between communities: only those can be told apart, 0.85 at best.
    assert trainer.test()["roc_auc"] > 0.68


def test_drawn_links_are_the_graphs_and_are_not_shared(path):
    graph = tg.open(path)
    parts = draw_links(graph, TrainOptions(**SMALL, links=1000))
    pairs = [{tuple(pair) for pair in part.T.tolist()} for part in parts]
    everything = set.union(*pairs)
    assert sum(map(len, pairs)) == len(everything) == sum(part.shape[1] for part in parts)
    assert everything <= edges_of(graph)
    assert len(pairs[1]) == len(pairs[2]) == len(everything) // 10
    again = draw_links(graph, TrainOptions(**SMALL, links=1000))
    assert all(np.array_equal(one, other) for one, other in zip(parts, again, strict=True))


def test_links_are_drawn_evenly(tmp_path):
    """A hub's links are as likely as the others: each of 60 about as often."""
    hub = np.zeros(30, dtype=np.int64), np.arange(1, 31)
    ring = np.arange(31, 61), np.roll(np.arange(31, 61), 1)
    src, dst = (np.concatenate(pair) for pair in zip(hub, ring, strict=True))
    tg.build((dst, src), tmp_path / "g.tg", layouts="both")
    graph = tg.open(tmp_path / "g.tg", memory="128MiB")
    at_hub = total = 0
    for seed in range(60):
        for part in draw_links(graph, TrainOptions(**SMALL, links=12, seed=seed)):
            at_hub += int((part == 0).any(axis=0).sum())
            total += part.shape[1]
    # 500 draws and more of one half each: a tenth is four standard deviations.
    assert 0.4 < at_hub / total < 0.6


def test_answers_are_taken_out_of_the_messages(path):
    graph = tg.open(path)
    links, _, _ = draw_links(graph, TrainOptions(**SMALL, links=1000))
    loader = tg.LinkNeighborLoader(graph, [-1, -1], links, batch_size=50, neg_sampling_ratio=1)
    batch = next(iter(loader))

    def pairs(index):
        return {tuple(pair) for pair in batch.n_id[index].T.tolist()}

    before = pairs(batch.edge_index)
    asked = pairs(batch.edge_label_index[:, :50])
    expected = before - asked
    if not graph.directed:
        expected -= {(target, source) for source, target in asked}
    assert asked <= before
    hops = len(batch.num_sampled_edges)
    bounds = np.cumsum([0, *batch.num_sampled_nodes])
    without_answers(batch, graph.directed)
    assert pairs(batch.edge_index) == expected
    assert sum(batch.num_sampled_edges) == batch.edge_index.shape[1] == len(batch.e_id)
    col, begin = batch.edge_index[1], 0
    for hop in range(hops):
        expanded = col[begin : begin + batch.num_sampled_edges[hop]]
        assert ((bounds[hop] <= expanded) & (expanded < bounds[hop + 1])).all()
        begin += batch.num_sampled_edges[hop]


def test_a_resumed_run_is_the_run(path, tmp_path):
    given = SMALL | {"links": 500}
    whole = LinkTrainer(path, TrainOptions(**given, epochs=3))
    whole.train()
    file = tmp_path / "run.pt"
    LinkTrainer(path, TrainOptions(**given, epochs=1), checkpoint=file).train()
    resumed = LinkTrainer(path, TrainOptions(**given, epochs=3), checkpoint=file, resume=True)
    resumed.train()
    assert [r["loss"] for r in resumed.history] == [r["loss"] for r in whole.history]
    assert [r["roc_auc"] for r in resumed.history] == [r["roc_auc"] for r in whole.history]


ARGUMENTS = ["--task", "link", "--epochs", "2", "--hidden", "8", "--fanout", "3,3"]


def test_the_command_prints_what_it_measured(path, tmp_path, capsys):
    graph = tg.open(path)
    file = tmp_path / "links.npz"
    chosen = draw_links(graph, TrainOptions(**SMALL, links=300))
    np.savez(file, **dict(zip(("train", "val", "test"), chosen, strict=True)))
    assert main(["train", path, *ARGUMENTS, "--links", str(file), "--memory", "512MiB"]) == 0
    assert "0." in capsys.readouterr().out
    assert main(["train", path, *ARGUMENTS, "--draw-links", "300", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    held = report["links"]["test"]
    assert report["links"] == {"train": sum(report["links"].values()) - 2 * held} | {
        "val": held,
        "test": held,
    }
    assert 0 <= report["test"]["roc_auc"] <= 1
    for record in report["epochs"]:
        assert record["roc_auc"] >= 0
        assert record["samples_per_second"] > 0


def test_bad_links_are_named(path, tmp_path, capsys):
    file = tmp_path / "links.npz"
    assert main(["train", path, *ARGUMENTS, "--links", str(file)]) == 1
    assert f"cannot read `{file}`" in capsys.readouterr().err
    np.savez(file, train=np.zeros((2, 3), dtype=np.int64))
    assert main(["train", path, *ARGUMENTS, "--links", str(file)]) == 1
    assert "train, val, test" in capsys.readouterr().err
    assert main(["train", path, "--links", str(file)]) == 1
    assert "--task link" in capsys.readouterr().err


def test_a_graph_without_edges_is_refused(tmp_path):
    empty = np.empty(0, dtype=np.int64)
    features = np.ones((4, 2), dtype=np.float32)
    tg.build((empty, empty), tmp_path / "g.tg", vertices=4, features=features)
    with pytest.raises(tg.InputError, match="a graph with edges"):
        LinkTrainer(str(tmp_path / "g.tg"), TrainOptions(**SMALL))
