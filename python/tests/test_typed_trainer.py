"""`tiergraph train` over heterogeneous graphs: the same losses, scores and memory promises."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import pyg
from tiergraph.cli import main
from tiergraph.train import LinkTrainer, TrainOptions, TypedTrainer, load

try:
    torch = pyg.torch()
    nn = pyg.geometric("nn")
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

CLASSES, PAPERS, AUTHORS, DIM = 3, 900, 400, 8
WRITES, WRITTEN = ("author", "writes", "paper"), ("paper", "written_by", "author")
CITES, COVERS = ("paper", "cites", "paper"), ("topic", "covers", "paper")
OPTIONS = TrainOptions(hidden=16, fanout=(6, 4), batch_size=64, epochs=6, lr=0.01, threads=2)
MIB = 1 << 20


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Papers are of the class of whom they are linked with; only authors' features tell it."""
    random = np.random.default_rng(4)
    paper, author = random.integers(0, CLASSES, PAPERS), random.integers(0, CLASSES, AUTHORS)

    def ends(sources, destinations, count):
        """Nine in ten edges inside a class."""
        src = random.integers(0, len(sources), 12 * count)
        dst = random.integers(0, len(destinations), 12 * count)
        alike = sources[src] == destinations[dst]
        kept = alike | (random.random(12 * count) < 0.04)
        return src[kept][:count], dst[kept][:count]

    means = 2 * random.normal(size=(CLASSES, DIM))
    part = np.arange(PAPERS) % 5
    splits = {"train": part < 3, "val": part == 3, "test": part == 4}
    writes = ends(author, paper, 4000)
    path = tmp_path_factory.mktemp("typed") / "t.tg"
    nodes = {
        "paper": {"vertices": PAPERS, "labels": paper, "splits": splits},
        "author": {"features": means[author] + random.normal(size=(AUTHORS, DIM))},
        "topic": {"features": random.normal(size=(9, 3))},
    }
    edges = {
        WRITES: writes,
        WRITTEN: writes[::-1],
        CITES: ends(paper, paper, 2000),
        COVERS: (random.integers(0, 9, 1500), random.integers(0, PAPERS, 1500)),
    }
    tg.build_hetero(path, nodes=nodes, edges=edges)
    return str(path)


def losses(trainer):
    return [record["loss"] for record in trainer.history]


def trained(path, options):
    trainer = TypedTrainer(path, options)
    trainer.train()
    return trainer


@pytest.mark.parametrize("changes", [{}, {"norm": "batch", "residual": True, "fanout": (5, 3, 2)}])
def test_classes_are_learned_through_types_that_tell_them(path, changes):
    trainer = trained(path, replace(OPTIONS, **changes))
    assert losses(trainer)[-1] < losses(trainer)[0]
    assert trainer.test()["accuracy"] > 0.85
    report = trainer.report(path)
    assert report["node_type"] == "paper"
    assert report["evaluation"] == "sampled"
    assert report["epochs"][0]["nodes"] > 0


@pytest.mark.filterwarnings("ignore:There exist node types:UserWarning")
def test_a_layer_is_pygs_sage_of_each_type_summed(path):
    """All neighbours: PyG's convolutions on the whole graph, with the values that were trained."""
    trainer = trained(path, replace(OPTIONS, fanout=(-1, -1), epochs=2))
    everything = next(iter(tg.NeighborLoader(path, [-1, -1, -1], "paper", batch_size=PAPERS)))
    model = trainer.model.eval()
    x = dict(everything.x_dict)
    x["paper"] = model.begins[0].expand(PAPERS, -1)
    with torch.no_grad():
        for number, layer in enumerate(model.layers):
            convs = {}
            for edge_type, conv in zip(layer.edge_types, layer.convs, strict=True):
                source, _, target = edge_type
                widths = x[source].shape[1], x[target].shape[1]
                twin = nn.SAGEConv(widths, conv.out_channels, root_weight=False, bias=False)
                twin.load_state_dict(conv.state_dict())
                convs[edge_type] = twin
            summed = nn.HeteroConv(convs, aggr="sum")(x, everything.edge_index_dict)
            owns = dict(zip(layer.types, layer.own, strict=True))
            x = {t: own(x[t]) + summed.get(t, 0) for t, own in owns.items()}
            if number == 0:
                x = {t: values.relu() for t, values in x.items()}
    places = np.argsort(everything["paper"].n_id.numpy()[:PAPERS])
    positions = np.flatnonzero(np.arange(PAPERS) % 5 == 4)
    found = trainer.logits(positions)
    np.testing.assert_allclose(found, x["paper"].numpy()[places][positions], rtol=1e-3, atol=1e-4)


@pytest.mark.filterwarnings("ignore::tiergraph.errors.FallbackWarning")
def test_little_memory_changes_no_loss_and_a_refusal_names_enough(path):
    roomy = trained(path, OPTIONS)
    with pytest.raises(tg.BudgetError, match="cannot train: expected") as said:
        TypedTrainer(path, replace(OPTIONS, memory=30 * MIB))
    enough = int(re.search(r'run with `memory="(\d+)MiB"`', str(said.value))[1]) * MIB
    tight = trained(path, replace(OPTIONS, memory=enough))
    assert losses(tight) == losses(roomy)
    assert [r["accuracy"] for r in tight.history] == [r["accuracy"] for r in roomy.history]
    assert tight.test() == roomy.test()
    memory = tight.memory
    parts = memory["training_bytes"] + memory["evaluation_bytes"] + memory["held_bytes"]
    assert parts == memory["bytes"] == enough


def test_a_run_goes_on_from_its_checkpoint(path, tmp_path):
    whole = trained(path, OPTIONS)
    half = TypedTrainer(path, replace(OPTIONS, epochs=3), checkpoint=tmp_path / "c.pt")
    half.train()
    rest = TypedTrainer(path, OPTIONS, checkpoint=tmp_path / "c.pt", resume=True)
    rest.train()
    assert losses(rest) == losses(whole)


def test_the_command_line_trains_predicts_and_saves(path, tmp_path, capsys):
    saved, predicted = tmp_path / "m.pt", tmp_path / "p.npy"
    command = ["train", path, "--fanout", "6,4", "--hidden", "16", "--epochs", "6", "--lr", "0.01"]
    command += ["--save", str(saved), "--predict", str(predicted), "--json", "--memory", "400MiB"]
    assert main([*command, "--node-type", "paper"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["test"]["accuracy"] > 0.85
    rows = np.load(predicted)
    labels = tg.open_hetero(path)["paper"].labels["y"]
    assert len(rows) == PAPERS
    assert (rows["class"] == labels).mean() > 0.85
    model = load(saved)
    logits = model.logits(path, "test")
    truth = np.asarray(labels)[np.arange(PAPERS) % 5 == 4]
    assert (logits.argmax(axis=1) == truth).mean() == report["test"]["accuracy"]
    other = tmp_path / "o.tg"
    nodes = {"paper": {"features": np.ones((4, 3))}}
    tg.build_hetero(other, nodes=nodes, edges={CITES: ([0], [1])})
    with pytest.raises(tg.InputError, match="expected types and features as"):
        model.logits(other)


def test_what_cannot_be_trained_is_said(path, tmp_path, capsys):
    nodes = {
        name: {"features": np.ones((9, 2)), "labels": np.arange(9) % 2, "splits": {"train": [1, 2]}}
        for name in ("paper", "author")
    }
    both = tmp_path / "b.tg"
    tg.build_hetero(both, nodes=nodes, edges={WRITES: (np.arange(9), np.arange(9))})
    for match, where, changes in [
        ("model `gcn`: expected `sage`", path, {"model": "gcn"}),
        ("labels `z`: expected one type of nodes with them .*got none", path, {"labels": "z"}),
        ("got paper, author", both, {}),
        ("node type `venue`: expected one of paper, author", both, {"node_type": "venue"}),
        ("features `z`: expected one of x", path, {"features": "z"}),
        ("labels `y`: expected one of the labels", path, {"node_type": "topic"}),
    ]:
        with pytest.raises(tg.InputError, match=match):
            TypedTrainer(str(where), replace(OPTIONS, **changes))
    assert TypedTrainer(str(both), replace(OPTIONS, node_type="author")).report("b")["classes"] == 2
    with pytest.raises(tg.InputError, match="a graph of one type, got a heterogeneous one"):
        LinkTrainer(path, replace(OPTIONS, task="link"))
    assert main(["train", str(both)]) == 1
    assert "`--node-type` says which is classified" in capsys.readouterr().err
